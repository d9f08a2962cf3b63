"""Write on: the model writes token by token, and what each token was chosen from."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st

from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.passes import Step, write_on
from headlight.pretrained.tokens import Piece, Words, tokenized
from visualizer.components.axis import Axis
from visualizer.components.generation.element import Bar, StepPicture, StepsPicture, Tail, generation_steps
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import visible
from visualizer.session import state, widgets
from visualizer.session.cache import Kept
from visualizer.session.mount import mount
from visualizer.session.state import Choices
from visualizer.settings.link import chosen_in
from visualizer.stages.panels import to_array
from visualizer.views.watched.pretrained.door import MOST_TOKENS, opened, words_of

_WRITTEN: WeakKeyDictionary[Checkpoint, Kept[tuple[Words, int], tuple[Step, ...]]] = WeakKeyDictionary()


def render(run: WatchedRun, choices: Choices) -> None:
    """Draw what the model that is open writes."""
    checkpoint = opened(choices.watched)
    if checkpoint is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="pretrained_writing"):
        widgets.number("pretrained_steps", width=160)
        st.caption("Always the likeliest token, with the key/value cache.", width="content")
    words = words_of(choices.watched)
    given = tokenized(checkpoint, words, MOST_TOKENS)
    n_steps = min(
        choices.watched.pretrained_steps, (checkpoint.most_tokens or MOST_TOKENS * 2) - len(given.pieces) + 1
    )
    kept = _WRITTEN.setdefault(checkpoint, Kept(room=8))
    steps = kept.get((words, n_steps))
    if steps is None:
        with st.spinner("The model writes …"):
            steps = kept.keep((words, n_steps), tuple(write_on(checkpoint, given, n_steps)))
    key = "pretrained_steps_picture"
    mount(
        generation_steps(
            picture_of(given.pieces, steps),
            step=choices.selection.step,
            row_layer=choices.selection.row_layer,
            key=key,
            seq=state.last_seq(key),
        ),
        shown=state.on_event(key, "shown", lambda event: state.select(**chosen_in(event, ("step", "row_layer")))),
    )


def picture_of(prompt: tuple[Piece, ...], steps: tuple[Step, ...]) -> StepsPicture:
    """What was written, as something to draw."""
    pieces = (*prompt, *(step.token for step in steps))
    labels = tuple(visible(piece.text) for piece in pieces)
    n_read = steps[-1].weights.shape[-1]
    n_layers, n_heads, _ = steps[0].weights.shape
    weights = np.zeros((len(steps), n_layers, n_heads, n_read), np.float32)
    for index, step in enumerate(steps):
        weights[index, :, :, : step.weights.shape[-1]] = to_array(step.weights)
    blocked = np.ones((n_read, n_read), np.uint8)
    for step in steps:
        n_queries, n_keys = step.allowed.shape
        blocked[n_keys - n_queries : n_keys, :n_keys] = ~step.allowed.numpy()
    return StepsPicture(
        labels=labels,
        n_prompt=len(prompt),
        ended=steps[-1].token.special,
        steps=tuple(map(_step, steps)),
        weights=weights,
        keys=Axis("key", labels[:n_read], None),
        heads=tuple(f"Head {head}" for head in range(n_heads)),
        own=True,
        title="Self-attention over the tokens so far",
        keys_blocked=np.zeros(0, np.uint8),
        blocked=blocked,
        blocked_by=("mask",),
        sampled=False,
        cached=True,
    )


def _step(step: Step) -> StepPicture:
    bars = tuple(
        Bar(visible(piece.text), rank + 1, share, share, chosen=rank == 0, never=False)
        for rank, (piece, share) in enumerate(zip(step.likely, step.probabilities, strict=True))
    )
    return StepPicture(
        bars=bars,
        tail=Tail(step.n_rest, step.rest, step.rest),
        sentence=f"“\u2068{visible(step.token.text)}\u2069” is the most likely token, so it is chosen.",
        kept=False,
        computed=step.n_computed,
        source_computed=0,
    )
