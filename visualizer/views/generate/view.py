"""Generate: the model writes one token at a time, and how each was chosen."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from headlight.masks.language import parse_score
from model.texts import listed, texts_of
from visualizer.components.generation.element import generation_steps, generation_tree
from visualizer.runs.continuation import Beam, Continuation, Difference, OneByOne
from visualizer.runs.paths import attention_modules
from visualizer.runs.run import Run
from visualizer.runs.writer import Writer, writer_of
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.fields import changed
from visualizer.settings.link import chosen_in
from visualizer.settings.settings import Selection, Settings
from visualizer.stages.check_line import check_line
from visualizer.stages.checks import Check
from visualizer.stages.panels import to_array
from visualizer.state import state
from visualizer.state.expectations import is_covered
from visualizer.views.generate.cached import tree_of_search
from visualizer.views.generate.controls import choose_strategy, chosen_strategy
from visualizer.views.generate.last_continuation import continuation_now
from visualizer.views.generate.others import offer
from visualizer.views.generate.pictures import steps_picture, tree_picture
from visualizer.views.predict.ask import ask_token, asked_bar
from visualizer.views.predict.covered import covered, say_covered
from visualizer.views.predict.questions import TokenQuestion, result_at

say = texts_of(__name__)


def render(run: Run, selection: Selection) -> None:
    """Draw the view."""
    try:
        writer = writer_of(run)
    except ValueError as error:
        st.info(say("these_can", why=markdown_safe(str(error))))
        offer(run.settings)
        return
    for remark in writer.remarks:
        st.caption(remark)
    choose_strategy(selection.generate, writer, len(run.vocabulary))
    how = chosen_strategy(selection.generate, writer, len(run.vocabulary))
    try:
        if isinstance(how, Beam):
            if selection.hidden:
                covered(say("tree"), ask=say("ask"), there={"strategy": "greedy"})
                return
            _beam(run, writer, how, selection)
        else:
            _one_by_one(run, writer, how, selection)
    except ValueError as error:
        st.warning(markdown_safe(str(error)))


def _one_by_one(run: Run, writer: Writer, how: OneByOne, selection: Selection) -> None:
    with st.spinner(say("writes")):
        shown = continuation_now(run.subject, writer, how)
    if selection.hidden:
        if run.attentions:  # of tens of thousands of tokens none is guessed
            say_covered(say("what_it_writes"))
        else:
            _predict(run, writer, how, shown.continuation, selection)
        return
    with st.container(key="how_it_was_written"):
        st.caption(" ".join((_how_it_ended(writer, shown.continuation), shown.account)))
    if shown.continuation.difference is not None:
        st.markdown(check_line(cache_check(shown.continuation.difference)))
        if why := why_cache_differs(run.settings, shown.continuation.difference):
            st.caption(why)
    _steps(run, writer, how, shown.continuation, selection)


def _steps(run: Run, writer: Writer, how: OneByOne, continuation: Continuation, selection: Selection) -> None:
    key = "generation_steps"
    mount(
        generation_steps(
            steps_picture(run, writer, how, continuation),
            step=selection.generate.step,
            row_layer=selection.generate.row_layer,
            key=key,
            seq=state.last_seq(key),
        ),
        shown=_take,
    )


def _predict(run: Run, writer: Writer, how: OneByOne, continuation: Continuation, selection: Selection) -> None:
    """Ask for the next token; revealed, what was written up to it, and the way to the one after."""
    index = min(selection.generate.step, len(continuation.steps) - 1)
    step = continuation.steps[index]
    question = TokenQuestion(
        result=("generate", how, index),
        labels=tuple(run.vocabulary),
        shares=to_array(step.logits.double().softmax(0)),
        offered=tuple(token for token in range(len(run.vocabulary)) if token not in writer.never),
    )
    asked_bar(question, run.subject)
    so_far = " ".join(markdown_safe(run.vocabulary[token]) for token in step.tokens)
    if ask_token(question, run.subject, say("next_token", so_far=so_far)):
        return
    if _heads_are_asked_about(run):
        say_covered(say("weights"))
    else:
        upto = replace(continuation, steps=continuation.steps[: index + 1])
        _steps(run, writer, how, upto, changed(selection, step=index))
    if index + 1 < len(continuation.steps):
        st.button(
            say("predict_next"),
            icon=":material/arrow_forward:",
            key="predict_next",
            on_click=state.callback(state.select, step=index + 1),
        )


def _heads_are_asked_about(run: Run) -> bool:
    """True if any head of the same sequence is asked about elsewhere, and not revealed yet."""
    return any(
        is_covered(run.subject, result_at(run, f"{module}.weights", head=head, batch=0))
        for module in attention_modules(run.trace)
        for head in range(run.n_heads(f"{module}.weights") or 1)
    )


def _beam(run: Run, writer: Writer, how: Beam, selection: Selection) -> None:
    with st.spinner(say("writes")):
        tree = tree_of_search(run.subject, how, writer)
    nodes, best = tree_picture(run, writer, tree)
    never = listed(markdown_safe(run.vocabulary[token]) for token in writer.never)
    said = [
        say(
            "hypotheses",
            n_hypotheses=len(nodes) - 1,
            n_kept=sum(node.kept for node in nodes) - 1,
            n_finished=sum(nodes[index].finished for index in best),
        ),
        say("never_written", never=never) if never else "",
        say("without_cache") if selection.generate.cached else "",
    ]
    st.caption(" ".join(filter(None, said)))
    key = "generation_tree"
    mount(generation_tree(nodes, best, node=selection.generate.node, key=key, seq=state.last_seq(key)), shown=_take)


def _take(event: object) -> None:
    """Choose what the person went to in a picture."""
    state.select(**chosen_in(event, ("step", "row_layer", "node")))


def _how_it_ended(writer: Writer, continuation: Continuation) -> str:
    count = len(continuation.steps)
    if writer.end is None:
        return say("no_end", count=count)
    if continuation.tokens[-1] != writer.end:
        return say("stopped_at_limit", count=count)
    if writer.answer is None:
        return say("ended")
    return say("ended_right") if continuation.tokens[:-1] == writer.answer else say("ended_wrong")


def why_cache_differs(settings: Settings, difference: Difference) -> str:
    """Say why a key/value cache changes the numbers, where the change of scores is the reason; else ""."""
    counts = {"n_keys", "n_queries"}
    if difference.is_rounding or not settings.score or counts.isdisjoint(parse_score(settings.score).names):
        return ""
    return say("why_cache_differs")


def cache_check(difference: Difference) -> Check:
    """Check that the key/value cache changes no number."""
    found = say(
        "cache_check",
        probabilities=difference.probabilities,
        logits=difference.logits,
        largest=difference.largest_logit,
    )
    if difference.in_float64 is not None:
        found += say("in_float64", logits=difference.in_float64)
    return Check(found, holds=difference.is_rounding)
