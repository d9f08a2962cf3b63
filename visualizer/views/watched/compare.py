"""An attention of any model under the mask that it had, and under another one."""

from __future__ import annotations

import numpy as np
import streamlit as st

from headlight.attention import Attention
from headlight.masks.language import READY
from model.texts import texts_of
from visualizer.components.compare_grids.element import compare_grids
from visualizer.pictures.watched_heads import BLOCKED_BY
from visualizer.runs.watched import WatchedRun
from visualizer.runs.watched_masks import OtherMask, under_another_mask
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.looks import looks_in, looks_of
from visualizer.settings.watched_settings import WATCHED
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched.window import choose_window, chosen_heads

say = texts_of(__name__)
_OFFERED = ("everything", "causal", "strictly_before", "causal_window")


def render(run: WatchedRun, attention: Attention, choices: Choices) -> None:
    """Draw the choice of the other mask, and the weights under both."""
    _choose()
    try:
        found = under_another_mask(attention, choices.watched.watched_mask, choices.watched.watched_item)
    except ValueError as error:
        sentence = str(error)
        st.error(markdown_safe(f"{sentence[:1].upper()}{sentence[1:]}."), icon=":material/error:")
        return
    _say(found)
    _grids(run, attention, found, choices)


def _choose() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="watched_masks"):
        field = WATCHED["watched_mask"]
        widgets.line(field.name, width=360)
        for ready in READY:
            if ready.name in _OFFERED:
                st.button(
                    ready.title,
                    key=f"watched_mask_{ready.name}",
                    help=ready.note,
                    on_click=state.callback(state.watch, watched_mask=ready.text),
                    type="tertiary",
                )


def _say(found: OtherMask) -> None:
    moved = float((found.other - found.recorded).abs().sum(-1).mean()) / 2
    said = [say("moved", moved=moved)]
    if keyless := int((~found.allowed.any(-1)).any(0).sum()):
        said.append(say("one_keyless") if keyless == 1 else say("keyless", n_queries=keyless))
    same = say("recomputed_same") if found.difference == 0 else say("recomputed", difference=found.difference)
    st.caption(" ".join((*said, same)))


def _grids(run: WatchedRun, attention: Attention, found: OtherMask, choices: Choices) -> None:
    picture = chosen_heads(run, attention.path, choices)
    alone = picture.alone()
    cut = (..., *picture.window)
    choose_window(picture, min(choices.watched.watched_head, alone.weights.shape[1] - 1), choices)
    key = "watched_compare"

    def show(event: object) -> None:
        state.watch(watched_head=state.index_in(event, "head"))
        state.select(**looks_in(event))

    mount(
        compare_grids(
            (alone.weights, found.other.float().numpy()[None][cut]),
            blocked_a=alone.blocked,
            blocked_b=(~found.allowed).numpy().astype(np.uint8)[None][cut],
            blocked_by_a=BLOCKED_BY,
            blocked_by_b=BLOCKED_BY,
            title_a=say("as_recorded"),
            title_b=choices.watched.watched_mask,
            rows=alone.rows,
            columns=alone.columns,
            head_names=alone.head_names,
            layer_names=alone.names,
            layer=0,
            looks=looks_of(choices.selection),
            key=key,
            seq=state.last_seq(key),
        ),
        select=show,
        shown=show,
    )
