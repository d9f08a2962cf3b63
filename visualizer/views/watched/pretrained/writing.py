"""Write on: the model writes token by token, and what each token was chosen from."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st

from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.passes import Step, end_ids, write_on
from headlight.pretrained.tokens import Tokenized, Words, pieces_of_ids, tokenized
from model.decoding import GREEDY, Sampling
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.generation.element import Bar, StepPicture, StepsPicture, Tail, generation_steps
from visualizer.runs.checkpoints import MOST_TOKENS, opened
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import markdown_safe, visible
from visualizer.server.mount import mount
from visualizer.settings.link import chosen_in
from visualizer.stages.panels import to_array
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched.pretrained.door import line_of
from visualizer.work.cache import Kept

say = texts_of(__name__)
_WRITTEN: WeakKeyDictionary[Checkpoint, Kept[tuple[Words, int, Sampling], tuple[Step, ...]]] = WeakKeyDictionary()
_SLIDER = 170


def render(_run: WatchedRun, choices: Choices) -> None:
    """Draw what the model that is open writes."""
    checkpoint = opened(choices.settings)
    if checkpoint is None:
        return
    if checkpoint.part == "encoder":
        st.info(say("no_writing"), icon=":material/info:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="pretrained_writing"):
        widgets.number("pretrained_steps", width=160)
        widgets.switch("pretrained_sampling", width="content")
        if choices.watched.pretrained_sampling:
            widgets.slider("temperature", step=0.1, width=_SLIDER)
            widgets.number("top_k", help=say("top_k"), width=130)
            widgets.slider("top_p", step=0.05, width=_SLIDER)
            widgets.number("draws", width=130)
    words, sampling = line_of(choices), sampling_of(choices)
    given = tokenized(checkpoint, words, MOST_TOKENS)
    prompt = given.target or given.pieces
    longest = (checkpoint.most_tokens or MOST_TOKENS * 2) - len(prompt) + 1
    n_steps = min(choices.watched.pretrained_steps, longest)
    kept = _WRITTEN.setdefault(checkpoint, Kept(room=8))
    steps = kept.get((words, n_steps, sampling))
    if steps is None:
        with st.spinner(say("writing")):
            steps = kept.keep((words, n_steps, sampling), tuple(write_on(checkpoint, given, n_steps, sampling)))
    st.caption(why_it_stops(checkpoint, steps, n_steps, longest))
    key = "pretrained_steps_picture"
    mount(
        generation_steps(
            picture_of(given, steps, sampled=sampling.temperature > 0),
            step=choices.selection.step,
            row_layer=choices.selection.row_layer,
            key=key,
            seq=state.last_seq(key),
        ),
        shown=lambda event: state.select(**chosen_in(event, ("step", "row_layer"))),
    )


def sampling_of(choices: Choices) -> Sampling:
    """Return how each token is chosen."""
    if not choices.watched.pretrained_sampling:
        return GREEDY
    selection = choices.selection
    return Sampling(selection.temperature, selection.top_k or None, selection.top_p, selection.draws)


def why_it_stops(checkpoint: Checkpoint, steps: tuple[Step, ...], n_steps: int, longest: int) -> str:
    """Say what ended the text, and what else would; a line of Markdown."""
    ends = pieces_of_ids(checkpoint.tokenizer, sorted(end_ids(checkpoint)))
    names = say("or").join(f"“{markdown_safe(visible(piece.text))}”" for piece in ends)
    if steps[-1].ended:
        return say("ended", token=markdown_safe(visible(steps[-1].token.text)))
    by_itself = say("stops_at", tokens=names) if names else say("no_end")
    if n_steps == longest:
        return say("positions_end", by_itself=by_itself)
    return say("as_asked", n_tokens=n_steps, by_itself=by_itself)


def picture_of(given: Tokenized, steps: tuple[Step, ...], *, sampled: bool) -> StepsPicture:
    """Return the picture of what was written."""
    prompt, has_source = given.target or given.pieces, bool(given.target)
    pieces = (*prompt, *(step.token for step in steps))
    labels = tuple(visible(piece.text) for piece in pieces)
    n_read = len(pieces) - 1
    keys = tuple(visible(piece.text) for piece in given.pieces) if has_source else labels[:n_read]
    n_layers, n_heads, _ = steps[0].weights.shape
    weights = np.zeros((len(steps), n_layers, n_heads, len(keys)), np.float32)
    for index, step in enumerate(steps):
        weights[index, :, :, : step.weights.shape[-1]] = to_array(step.weights)
    blocked = np.ones((n_read, n_read), np.uint8)
    for step in steps:
        n_queries, n_keys = step.allowed.shape
        blocked[n_keys - n_queries : n_keys, :n_keys] = ~step.allowed.numpy()
    return StepsPicture(
        labels=labels,
        n_prompt=len(prompt),
        ended=steps[-1].ended,
        steps=tuple(_step(step, sampled=sampled) for step in steps),
        weights=weights,
        keys=Axis("key", keys, "source" if has_source else None),
        heads=tuple(say("head", head=head) for head in range(n_heads)),
        own=not has_source,
        title=say("cross_attention") if has_source else say("self_attention"),
        keys_blocked=np.zeros(len(keys) if has_source else 0, np.uint8),
        blocked=blocked,
        blocked_by=("mask",),
        sampled=sampled,
        cached=True,
    )


def _step(step: Step, *, sampled: bool) -> StepPicture:
    bars = tuple(
        Bar(
            visible(each.piece.text),
            each.rank,
            each.probability,
            each.share if sampled else each.probability,
            chosen=each.piece is step.token,
            never=False,
        )
        for each in step.likely
    )
    probability, share = (
        max(0.0, 1.0 - sum(getattr(bar, name) for bar in bars)) for name in ("probability", "share")
    )
    return StepPicture(
        bars=bars,
        tail=Tail(step.n_others, probability, share),
        sentence=_sentence(step, sampled=sampled),
        kept=False,
        computed=step.n_computed,
        source_computed=step.n_source_computed,
    )


def _sentence(step: Step, *, sampled: bool) -> str:
    label = f"“\u2068{visible(step.token.text)}\u2069”"
    if not sampled:
        return say("likeliest", token=label)
    if step.n_possible == 1:
        return say("only_one", token=label)
    n_tokens = len(step.likely) + step.n_others
    return say("drawn", n_possible=step.n_possible, n_tokens=n_tokens, draw=step.draw, token=label)
