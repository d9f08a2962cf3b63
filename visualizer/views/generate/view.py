"""Generate: the model writes one token at a time, and how each was chosen."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from model.mask_tools.language import parse_score
from visualizer.components.generation.element import generation_steps, generation_tree
from visualizer.runs.paths import attention_modules
from visualizer.runs.run import Run
from visualizer.runs.writer import Writer, writer_of
from visualizer.runs.written import Beam, Difference, OneByOne, Written
from visualizer.safe_text import markdown_safe
from visualizer.session import state
from visualizer.session.expectations import is_covered
from visualizer.session.mount import mount
from visualizer.settings.link import chosen_in
from visualizer.settings.settings import Selection, Settings
from visualizer.stages.check_line import check_line
from visualizer.stages.checks import Check
from visualizer.stages.panels import to_array
from visualizer.views.generate.controls import choose_strategy, chosen_strategy
from visualizer.views.generate.kept import searched
from visualizer.views.generate.last_written import written_now
from visualizer.views.generate.others import offer
from visualizer.views.generate.pictures import steps_picture, tree_picture
from visualizer.views.predict.ask import ask_token, asked_bar
from visualizer.views.predict.covered import covered, say_covered
from visualizer.views.predict.questions import TokenQuestion, result_at


def render(run: Run, selection: Selection) -> None:
    """Draw the view."""
    try:
        writer = writer_of(run)
    except ValueError as error:
        st.info(f"{markdown_safe(str(error))} These can:")
        offer(run.settings)
        return
    for remark in writer.remarks:
        st.caption(remark)
    choose_strategy(selection, writer, len(run.vocabulary))
    how = chosen_strategy(selection, writer, len(run.vocabulary))
    try:
        if isinstance(how, Beam):
            if selection.hidden:
                ask = {"strategy": "greedy"}
                covered("The tree of the beam search, which shows the next tokens", ask="Ask me", there=ask)
                return
            _beam(run, writer, how, selection)
        else:
            _one_by_one(run, writer, how, selection)
    except ValueError as error:
        st.warning(markdown_safe(str(error)))


def _one_by_one(run: Run, writer: Writer, how: OneByOne, selection: Selection) -> None:
    with st.spinner("The model writes …"):
        shown = written_now(run.subject, writer, how)
    if selection.hidden:
        _predict(run, writer, how, shown.written, selection)
        return
    st.caption(" ".join((_how_it_ended(writer, shown.written), shown.account)))
    if shown.written.difference is not None:
        st.markdown(check_line(cache_check(shown.written.difference)))
        if why := why_cache_differs(run.settings, shown.written.difference):
            st.caption(why)
    _steps(run, writer, how, shown.written, selection)


def _steps(run: Run, writer: Writer, how: OneByOne, written: Written, selection: Selection) -> None:
    key = "generation_steps"
    mount(
        generation_steps(
            steps_picture(run, writer, how, written),
            step=selection.step,
            row_layer=selection.row_layer,
            key=key,
            seq=state.last_seq(key),
        ),
        shown=_take,
    )


def _predict(run: Run, writer: Writer, how: OneByOne, written: Written, selection: Selection) -> None:
    """Ask for the next token; revealed, what was written up to it, and the way to the one after."""
    index = min(selection.step, len(written.steps) - 1)
    step = written.steps[index]
    question = TokenQuestion(
        result=("generate", how, index),
        labels=run.vocabulary,
        shares=to_array(step.logits.double().softmax(0)),
        offered=tuple(token for token in range(len(run.vocabulary)) if token not in writer.never),
    )
    asked_bar(question, run.subject)
    so_far = " ".join(markdown_safe(run.vocabulary[token]) for token in step.tokens)
    if ask_token(question, run.subject, f"The next token after “{so_far}”"):
        return
    if _heads_are_asked_about(run):
        say_covered("The weights that led to it, asked about under Heads or Step through")
    else:
        upto = replace(written, steps=written.steps[: index + 1])
        _steps(run, writer, how, upto, replace(selection, step=index))
    if index + 1 < len(written.steps):
        st.button(
            "Predict the token after it",
            icon=":material/arrow_forward:",
            key="predict_next",
            on_click=state.callback(state.select, step=index + 1),
        )


def _heads_are_asked_about(run: Run) -> bool:
    """Whether any head of the same sequence is asked about elsewhere, and not revealed yet."""
    return any(
        is_covered(run.subject, result_at(run, f"{module}.weights", head=head, batch=0))
        for module in attention_modules(run.trace)
        for head in range(run.n_heads(f"{module}.weights") or 1)
    )


def _beam(run: Run, writer: Writer, how: Beam, selection: Selection) -> None:
    with st.spinner("The model writes …"):
        tree = searched(run.subject, how, writer)
    nodes, best = tree_picture(run, writer, tree)
    n_finished = sum(nodes[index].finished for index in best)
    cache = f" {_WITHOUT_CACHE}" if selection.cached else ""
    st.caption(
        f"{len(nodes) - 1} hypotheses were looked at, {sum(node.kept for node in nodes) - 1} kept and {n_finished} "
        "finished. The number in a node is the sum of the log-probabilities so far; what is finished or cut off is "
        f"compared by its score, that sum over the length penalty. {_never_written(run, writer)}{cache}"
    )
    key = "generation_tree"
    mount(generation_tree(nodes, best, node=selection.node, key=key, seq=state.last_seq(key)), shown=_take)


_WITHOUT_CACHE = (
    "Beam search leaves out the key/value cache, which is switched on: the model reads each hypothesis from its "
    "first token."
)


def _take(event: object) -> None:
    """Choose what the person went to in a picture."""
    state.select(**chosen_in(event, ("step", "row_layer", "node")))


def _never_written(run: Run, writer: Writer) -> str:
    names = " and ".join(markdown_safe(run.vocabulary[token]) for token in writer.never)
    return f"{names} are in the vocabulary for other purposes and are never written."


def _how_it_ended(writer: Writer, written: Written) -> str:
    count = len(written.steps)
    if writer.end is None:
        return f"These weights know no end token, so it stops at the limit of {count}."
    if written.tokens[-1] != writer.end:
        return f"Stopped at the limit of {count} tokens, before it ended."
    if writer.answer is None:
        return "It ended by itself."
    is_right = written.tokens[:-1] == writer.answer
    return f"It ended by itself, and the answer is {'right' if is_right else 'wrong'}."


def why_cache_differs(settings: Settings, difference: Difference) -> str:
    """Why numbers with a key/value cache differ from those without, where it is the change of scores; else ""."""
    counts = {"n_keys", "n_queries"}
    if difference.is_rounding or not settings.score or counts.isdisjoint(parse_score(settings.score).names):
        return ""
    return (
        "They differ since the change of scores asks how many tokens there are: with the cache an earlier token "
        "keeps what it was given while there were fewer; without it every token is computed again among them all."
    )


def cache_check(difference: Difference) -> Check:
    """Whether the key/value cache changes no number."""
    return Check(
        f"With the cache as without: probabilities differ by at most {difference.probabilities:.1g}, logits by "
        f"{difference.logits:.1g} (the largest is {difference.largest_logit:.3g})",
        holds=difference.is_rounding,
    )
