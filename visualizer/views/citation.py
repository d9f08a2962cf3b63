"""The citation of a worked example, and the check that every published number comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import streamlit as st

from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.safe_text import as_code, markdown_safe
from visualizer.settings.settings import Settings
from visualizer.stages.check_line import check_line
from visualizer.stages.checks import PUBLISHED_TOLERANCE, Check, published_difference, short
from visualizer.state import state

say = texts_of(__name__)


def citation(run: Run) -> None:
    """Cite the example of a run and tick its published numbers; nothing for a model."""
    example = run.example
    if example is None:
        return
    with st.container(key="citation", horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{markdown_safe(example.title)}**", width="content")
        st.caption(say("source", source=markdown_safe(example.source)), width="content")
        with st.popover(say("recipe"), type="tertiary"):
            st.markdown(markdown_safe(example.description))
            st.caption(say("made_by", recipe=as_code(example.recipe)))
        if run.published:
            st.caption(check_line(summary(run)), width="content")
    if not run.published:
        _without_its_mask()


def verdicts(run: Run) -> Mapping[str, bool]:
    """For every stage with published numbers, whether these come out."""
    return {path: difference <= PUBLISHED_TOLERANCE for path, difference in _differences(run).items()}


def summary(run: Run) -> Check:
    """Say whether all published numbers come out, and where they do not."""
    found, count = verdicts(run), sum(numbers.numel() for numbers in run.published.values())
    wrong = ", ".join(_name(path) for path, comes_out in found.items() if not comes_out)
    largest = short(max(_differences(run).values()))
    if wrong:
        return Check(say("not_all", n=count, n_stages=len(found), largest=largest, wrong=wrong), holds=False)
    return Check(say("all", n=count, n_stages=len(found), largest=largest), holds=True)


def _differences(run: Run) -> Mapping[str, float]:
    return run.once("published differences", lambda: dict(_compared(run)))


def _compared(run: Run) -> Iterator[tuple[str, float]]:
    for path, numbers in run.published.items():
        yield path, published_difference(run.trace[path].value, numbers)


def _without_its_mask() -> None:
    """Say that the mask of the example was left out, and offer the way back."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(say("without_mask"), icon=":material/visibility_off:")
        st.button(say("with_mask"), key="as_published", on_click=state.callback(state.change, mask=Settings().mask))


def _name(path: str) -> str:
    """``weights``, or ``self_attention.weights`` where the stage is of a part of a layer."""
    return ".".join(path.split(".")[1:]) or path
