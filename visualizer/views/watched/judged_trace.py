"""A trace of any model, wherever it came from: what is wrong with it, and each attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from headlight.attentions import Attention
from headlight.masks.mask_case import Finding, Severity
from headlight.report import cells_of, named, said_once
from model.texts import texts_of
from visualizer.runs.operations_run import run_of_operations
from visualizer.runs.recording_run import run_recording
from visualizer.runs.run import Run
from visualizer.runs.watched import WatchedRun, n_items
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.stages.operations import operation_at
from visualizer.state import state, widgets
from visualizer.state.places import query_of
from visualizer.state.state import Choices
from visualizer.views import RENDER
from visualizer.views.watched.window import choose_window

say = texts_of(__name__)
_ICONS: dict[Severity, str] = {
    "error": ":red[:material/error:]",
    "warning": ":orange[:material/warning:]",
    "note": ":material/info:",
}
_FEW = 4
_KEEPS = 'with headlight.watch(model, keep="{what}") as trace:\n    model(**batch)'


def show_trace(run: WatchedRun, choices: Choices) -> None:
    """Draw a trace: what is wrong with it, the attention that is chosen, then the verdict and the list of all.

    Args:
        run: the trace, and what is known of its tokens. The same object gives what was computed of it before.
        choices: what is chosen.
    """
    view = choices.selection.view
    if not run.trace and view != "step":
        st.info(say("no_attention"), icon=":material/info:")
        _notes(run)
        return
    if (missing := _missing(run, view)) is not None:
        sentence, keep = missing
        st.info(sentence, icon=":material/info:")
        st.code(_KEEPS.format(what=keep), language="python")
        return
    if view in ("way", "step"):
        if run.trace and max(map(n_items, run.trace)) > 1:
            widgets.number("batch", width=130)
        show_operations(run_of_operations(run, choices.selection.batch), choices)
    else:
        _of_one_attention(run, *_looked_at(run, choices))


def show_operations(run: Run, choices: Choices) -> None:
    """Draw the operations of a pass, or the stream that a token takes through them."""
    selection = replace(choices.selection, guided=False, query=query_of(choices), cell=True)
    if selection.view == "step":
        found = operation_at(run, selection.stage, selection.layer)
        if found is None and "stage" in choices.named:
            widgets.notices([say("no_operation", name=selection.stage)])
        selection = replace(selection, stage=found or next(iter(run.trace)))
    RENDER[selection.view](run, selection)


def _looked_at(run: WatchedRun, choices: Choices) -> tuple[Attention, Choices]:
    """The attention that is looked at; where none is named, the first one with an error."""
    near = run.attention_near(choices.selection.stage)
    shown = near or run.first_shown
    kind = run.kind_of(shown)
    if near is None and kind.index(shown):
        _choose(run, shown.path)
        choices = state.chosen()
    return kind[min(choices.selection.layer, len(kind) - 1)], choices


def _missing(run: WatchedRun, view: str) -> tuple[str, str] | None:
    """Say what a view needs and the trace does not have, and what ``keep`` keeps it; None where it has all."""
    if view in ("step", "way") and not run.trace.stages:
        return say("no_operations"), "all"
    if view == "compare" and all(attention.query is None for attention in run.trace):
        return say("no_queries"), "attentions"
    return None


def _of_one_attention(watched: WatchedRun, attention: Attention, choices: Choices) -> None:
    said = said_once(watched.findings)
    errors = [each for each in said if each[1].severity == "error"][:_FEW]
    for paths, finding in errors:
        _finding(paths, finding)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="watched_attentions"):
        _pick(watched, attention)
    if attention.weights is None:
        st.info(say("no_weights"), icon=":material/info:")
    else:
        _draw(watched, attention, choices)
    _about(watched, attention, choices)
    verdict, table = st.columns([2, 3], gap="medium")
    with verdict:
        _verdict(watched, [each for each in said if each not in errors])
    with table:
        _table(watched)


def _draw(watched: WatchedRun, attention: Attention, choices: Choices) -> None:
    """Draw the heads of an attention and of the others of its kind, or its weights under another mask."""
    selection, chosen = choices.selection, choices.watched
    choose_window(attention, selection, watched)
    wanted = (chosen.watched_first_query, chosen.watched_first_key)
    run = run_recording(watched, attention, selection.batch, wanted)
    seen = replace(run.nearest(replace(selection, batch=0)), chart=selection.chart)
    far = {name: getattr(seen, name) for name in ("layer", "head") if name in choices.link}
    if any(getattr(selection, name) != place for name, place in far.items()):
        state.save(replace(choices, selection=replace(selection, **far)))
    if selection.view == "compare" and run.repeat is None:
        st.info(say("not_repeated"), icon=":material/info:")
    else:
        RENDER[selection.view](run, seen)


def _summary(run: WatchedRun) -> str:
    """Say what holds of all attentions, as a line of Markdown."""
    return f"**{attentions_that_look_ahead(len(run.looking_ahead), len(run.trace))}** {_counts(run)}"


def attentions_that_look_ahead(n_ahead: int, n_seen: int) -> str:
    """Say how many of ``n_seen`` attentions see later tokens."""
    if n_seen == 1:
        return say("it_sees_later") if n_ahead else say("it_sees_none")
    if n_ahead in (0, n_seen):
        return say("all_see_later", n_seen=n_seen) if n_ahead else say("none_sees_later", n_seen=n_seen)
    one, some = say("one_sees_later", n_seen=n_seen), say("some_see_later", n_ahead=n_ahead, n_seen=n_seen)
    return one if n_ahead == 1 else some


def _verdict(run: WatchedRun, said: Sequence[tuple[tuple[str, ...], Finding]]) -> None:
    """Say what holds of all attentions, then what was found and not said yet."""
    st.markdown(_summary(run))
    for paths, finding in said[:_FEW]:
        _finding(paths, finding)
    if n_more := len(said[_FEW:]) + len(run.notes):
        with st.expander(say("more", n_more=n_more)):
            for paths, finding in said[_FEW:]:
                _finding(paths, finding)
            _notes(run)


def _counts(run: WatchedRun) -> str:
    found = [finding.severity for _, finding in run.findings]
    n_errors, n_warnings = found.count("error"), found.count("warning")
    errors, warnings = say("errors", n_errors=n_errors), say("warnings", n_warnings=n_warnings)
    parts = [part for part, count in ((errors, n_errors), (warnings, n_warnings)) if count]
    return f"{', '.join(parts)}." if parts else say("nothing_found")


def _finding(paths: tuple[str, ...], finding: Finding) -> None:
    head = f"{named(paths)}: {finding.title}"
    st.markdown(f"{_ICONS[finding.severity]} **{markdown_safe(head)}.** {markdown_safe(finding.why)}")
    st.caption(markdown_safe(finding.mend))


def _notes(run: WatchedRun) -> None:
    for note in run.notes:
        st.caption(f":material/info: {markdown_safe(note)}")


def _table(run: WatchedRun) -> None:
    """Every attention in words; a click on a line shows it."""
    paths, heads, sizes, masks, biases = zip(*map(cells_of, run.judged), strict=True)
    worst = [judged.findings[0].title if judged.findings else "" for judged in run.judged]
    columns = {
        say("attention"): [visible_whole(path) for path in paths],
        say("heads"): heads,
        say("sizes"): sizes,
        say("mask"): masks,
        say("bias"): biases,
        say("finding"): worst,
    }
    key = "watched_table"

    def choose(event: object) -> None:
        rows = getattr(getattr(event, "selection", None), "rows", ())
        if rows:
            _choose(run, run.trace.paths[rows[0]])

    st.dataframe(
        {name: cells for name, cells in columns.items() if any(cells)},
        hide_index=True,
        height=min(38 + 35 * len(run.trace), 178),
        selection_mode="single-row",
        on_select=state.on_change(key, choose),
        key=key,
    )


def _pick(run: WatchedRun, attention: Attention) -> None:
    """The attention and, of a batch, the sequence."""
    paths = list(run.trace.paths)
    st.selectbox(
        say("attention"),
        paths,
        index=paths.index(attention.path),
        format_func=visible_whole,
        label_visibility="collapsed",
        width=300,
        **widgets.following("attention_of_trace", attention.path, partial(_choose, run)),
    )
    if n_items(attention) > 1:
        widgets.number("batch", width=130)


def _choose(run: WatchedRun, path: str) -> None:
    attention = run.trace[path]
    state.select(stage=path, layer=run.kind_of(attention).index(attention))


def _about(run: WatchedRun, attention: Attention, choices: Choices) -> None:
    """The attention in words."""
    heads, sizes, mask, bias = cells_of(run.judged_of(attention))[1:]
    parts = [heads, sizes, say("its_mask", mask=mask), bias, _exactness(attention)]
    st.caption(" · ".join(markdown_safe(part) for part in parts if part))
    if choices.selection.batch >= n_items(attention):
        st.caption(say("last_sequence", n_sequences=n_items(attention)))


def _exactness(attention: Attention) -> str:
    """Say how far the weights that are drawn are from what the model went on with."""
    if attention.difference is None:
        return ""
    return say("within", difference=attention.difference) if attention.difference else say("exactly")
