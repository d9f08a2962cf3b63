"""The other mask of a pretrained model: written, painted, begun with its own one, or brought from the Mask lab."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from headlight.attention import Attention
from headlight.masks.language import MaskContext
from headlight.masks.naming import name_of
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.passes import Where, attentions_of
from headlight.pretrained.tokens import Piece, Tokenized
from model.config import Architecture
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.mask_painter.element import mask_painter, parse_mask, parse_select
from visualizer.runs.masks_in_force import as_expression, as_source, painted_cells
from visualizer.runs.tokens import tokenize
from visualizer.runs.watched import WatchedRun, plane
from visualizer.safe_text import markdown_safe, visible
from visualizer.server.mount import mount
from visualizer.settings.fields import MAX_TOKENS
from visualizer.settings.painted_mask import asks_for_head, read_planes, source_at
from visualizer.settings.settings import Selection, Settings, default_stage
from visualizer.settings.watched_settings import WATCHED
from visualizer.state import state
from visualizer.state.controls import give_draft
from visualizer.state.state import Choices

say = texts_of(__name__)
_EXPRESSION = "pretrained_expression"
_PAINTER = "pretrained_painter"


@dataclass(frozen=True)
class Masked:
    """The attentions that the other mask is for.

    Attributes:
        where: which they are.
        queries: the tokens that look.
        keys: the tokens that are looked at.
    """

    where: Where
    queries: tuple[Piece, ...]
    keys: tuple[Piece, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Tq and Tk."""
        return len(self.queries), len(self.keys)

    def attention(self, run: WatchedRun, path: str) -> Attention:
        """The one at a path, or the first of them."""
        found = attentions_of(run.trace, self.where)
        return next((each for each in found if each.path == path), found[0])

    def context(self, head: int = 0) -> MaskContext:
        """The facts that an expression may ask of the tokens."""
        facts = [
            (tuple(piece.id for piece in pieces), (False,) * len(pieces), tuple(piece.part for piece in pieces))
            for pieces in (self.queries, self.keys)
        ]
        (query_ids, no_query, of_query), (key_ids, no_key, of_key) = facts
        return MaskContext(query_ids, key_ids, no_query, no_key, of_query, of_key, head=head)


def masked_by(given: Tokenized, where: Where) -> Masked:
    """Return the attentions that a mask is for, "self" in a single stack."""
    queries = given.target if where in ("decoder", "cross") else given.pieces
    return Masked(where, queries, given.target if where == "decoder" else given.pieces)


def axes_of(masked: Masked) -> tuple[Axis, Axis]:
    """Queries and keys with their labels."""
    queries, keys = (tuple(visible(piece.text) for piece in pieces) for pieces in (masked.queries, masked.keys))
    return Axis("query", queries, None), Axis("key", keys, None)


def allowed_by(source: str, masked: Masked, n_heads: int) -> Tensor:
    """Return what an expression, or painted cells, allow: (1 or H, Tq, Tk) bool.

    Raises:
        ValueError: it is none; one sentence says why.
    """
    heads = range(n_heads if asks_for_head(source) else 1)
    return torch.stack([painted_cells(source, masked.context(head)) for head in heads])


def choose(run: WatchedRun, checkpoint: Checkpoint, masked: Masked, choices: Choices) -> None:
    """Draw the field for the mask, and the ways to its own one and to and from the Mask lab."""
    source, field = choices.watched.pretrained_mask, WATCHED["pretrained_mask"]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="pretrained_other_mask"):
        st.text_input(
            field.label,
            **give_draft(_EXPRESSION, as_expression(source, masked.context())),
            help=field.help,
            placeholder=say("irregular"),
            width=400,
            on_change=state.on_change(_EXPRESSION, lambda text: state.watch(pretrained_mask=text)),
        )
        _start_from_own(run, masked, choices)
        if painted := source_at(read_planes(choices.settings.custom), 0, 0):
            st.button(
                say("take_painted"),
                icon=":material/brush:",
                key="pretrained_take_painted",
                help=say("take_painted_help"),
                on_click=state.callback(state.watch, pretrained_mask=painted),
            )
        if masked.where == "self":
            st.button(
                say("to_lab"),
                icon=":material/science:",
                key="pretrained_to_lab",
                help=say("to_lab_help"),
                on_click=state.callback(_open_in_lab, checkpoint, masked.keys, source),
                disabled=len(masked.keys) > MAX_TOKENS,
            )


def _start_from_own(run: WatchedRun, masked: Masked, choices: Choices) -> None:
    """The way to the mask that the attention looked at had, in the head looked at."""
    attention = masked.attention(run, choices.watched.watched_attention)
    own = torch.ones(1, *attention.shape[2:], dtype=torch.bool)
    if attention.allowed is not None:
        own = plane(attention.allowed, 0).expand(-1, *attention.shape[2:])
    allowed = own[min(choices.watched.watched_head, len(own) - 1)]
    st.button(
        say("own"),
        icon=":material/restart_alt:",
        key="pretrained_own_mask",
        help=say("own_help", path=markdown_safe(attention.path)),
        on_click=state.callback(state.watch, pretrained_mask=as_source(allowed, masked.context()) or "True"),
    )


def _open_in_lab(checkpoint: Checkpoint, pieces: tuple[Piece, ...], source: str) -> None:
    architecture: Architecture = "encoder" if checkpoint.part == "encoder" else "decoder"
    words = " ".join(_one_word(piece.text) for piece in pieces)
    custom = "" if source == "True" else source
    settings = Settings(architecture=architecture, text=words, weights="random", mask=("custom",), custom=custom)
    state.choose(settings, Selection(view="lab", stage=default_stage(architecture), head=0, query=0, key=0))


def _one_word(text: str) -> str:
    """A token as one word of the lab's own tokenizer."""
    if len(tokenize(text, "words")) == 1:
        return text.strip()
    return "".join(letter if letter.isalnum() else "_" for letter in text.strip()) or "_"


def paint(masked: Masked, allowed: Tensor, weights: np.ndarray, choices: Choices) -> None:
    """Draw the painter with what is found wrong with the mask, and the mask in words.

    Args:
        checkpoint: the model.
        masked: what the mask is for.
        allowed: (1 or H, Tq, Tk), the mask.
        weights: (Tq, Tk), those of the head looked at under it.
        choices: what is chosen.
    """
    looked = choices.watched
    head = min(looked.watched_head, len(allowed) - 1)
    cells, context, (n_queries, n_keys) = allowed[head], masked.context(head), masked.size
    rows, columns = axes_of(masked)

    def change(mask: Tensor) -> None:
        state.watch(pretrained_mask=as_source(mask, context) or "True")

    def stroke(event: object) -> None:
        if (blocked := parse_mask(event, n_queries, n_keys)) is not None:
            change(torch.from_numpy(~blocked))

    def select(event: object) -> None:
        if (place := parse_select(event, n_queries, n_keys)) is not None:
            state.watch(watched_query=place[0], watched_key=place[1])

    name = markdown_safe(name_of(cells, context))
    st.caption(say("this_head", name=name, head=head) if len(allowed) > 1 else say("this_mask", name=name))
    mount(
        mask_painter(
            ~cells.numpy(),
            others=np.zeros(masked.size, np.uint8),
            reasons=(),
            weights=weights,
            weights_title=say("weights", head=looked.watched_head),
            findings=(),
            all_clear="",
            selected=(min(looked.watched_query, n_queries - 1), min(looked.watched_key, n_keys - 1)),
            scope=repr((masked.where, looked.pretrained_model, looked.pretrained_text, looked.pretrained_second)),
            rows=rows,
            columns=columns,
            seq=state.last_seq(_PAINTER),
            key=_PAINTER,
        ),
        paint=stroke,
        select=select,
    )
