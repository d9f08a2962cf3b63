"""Edits of a checkpoint: heads left out, averaged or taken from another text, beside the model as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from weakref import WeakKeyDictionary

import streamlit as st

from headlight.attention import Attention
from headlight.findings import is_cross, is_of_decoder
from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.passes import Pass, Where, run
from headlight.pretrained.tokens import Tokenized, Words, pieces_of_ids, tokenized
from headlight.stages import Stage
from model.texts import texts_of
from visualizer.runs.interventions import edits_of, that_fit
from visualizer.runs.watched import WatchedRun
from visualizer.safe_text import markdown_safe, visible, visible_whole
from visualizer.settings.interventions import Intervention, read_interventions, write_interventions
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.views.edits import chips, offer_edits
from visualizer.views.outcome import Outcome, draw_outcome
from visualizer.views.watched.pretrained.chosen import opened
from visualizer.views.watched.pretrained.door import MOST_TOKENS, words_of
from visualizer.views.watched.pretrained.mask_choice import Masked, masked_by
from visualizer.views.watched.pretrained.two_passes import (
    TwoPasses,
    farthest,
    grids,
    kept_pass,
    likeliest,
    pick_head,
)
from visualizer.work.cache import Kept

say = texts_of(__name__)

_CLOSE = 1e-2
"""The context is computed again from the weights: the difference, as a share of it, that bfloat16 makes at most."""

_OTHER_STAGES: WeakKeyDictionary[Checkpoint, Kept[Words, Mapping[str, Stage]]] = WeakKeyDictionary()


def render(watched: WatchedRun, choices: Choices) -> None:
    """Draw the menu of edits, those that there are, and what they do; ``watched`` has every stage."""
    checkpoint, choice = opened(choices.watched), choices.watched
    if checkpoint is None:
        return
    words = words_of(choices)
    given = tokenized(checkpoint, words, MOST_TOKENS)
    attention = watched.attention(choice.watched_attention)
    masked = masked_by(given, _where(checkpoint, attention))
    made = read_interventions(choice.pretrained_edits)
    said = partial(_said, watched, masked)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="checkpoint_edits"):
        pick_head(attention.path, list(watched.trace.paths))
        if parts := _parts(watched, attention, choices):
            other_text = partial(widgets.line, "pretrained_other_text", placeholder=choice.pretrained_text)
            offer_edits(parts, made, said=said, make=_make, other=other_text)
    if not made:
        st.markdown(say("nothing"))
        return
    with st.container(horizontal=True, gap="small", key="checkpoint_edits_made"):
        chips(made, said=said, make=_make)
    other = cache(lambda: _stages_of(checkpoint, replace(words, text=choice.pretrained_other_text)))
    fitting, complaints = that_fit(made, watched.trace.stages, other)
    for complaint in complaints:
        st.warning(markdown_safe(visible_whole(complaint)), icon=":material/warning:")
    own = kept_pass(checkpoint, words, "", lambda: run(checkpoint, given))
    name = f"{write_interventions(fitting)} {choice.pretrained_other_text}"
    changed = kept_pass(checkpoint, words, name, lambda: _edited(checkpoint, given, fitting, other))
    both = TwoPasses(own, changed, say("other"), say("minus"))
    if own.has_logits:
        draw_outcome(_outcome(checkpoint, given, both), choices.selection)
    grids(both, masked, attention.path, choices)
    st.caption(farthest(both))
    if own.has_logits:
        likeliest(checkpoint, both)


def context_stage(watched: WatchedRun, attention: Attention) -> str | None:
    """The path of the stage that is an attention's context, (B, H, Tq, Dv); None where it is none."""
    context = attention.context
    if context is None:
        return None
    far = {
        path: float((stage.value - context).abs().max())
        for path, stage in watched.trace.stages.items()
        if stage.module == attention.module and stage.value is not None and stage.value.shape == context.shape
    }
    nearest = min(far, key=far.__getitem__, default=None)
    return nearest if nearest is not None and far[nearest] <= _CLOSE * float(context.abs().max()) else None


def _where(checkpoint: Checkpoint, attention: Attention) -> Where:
    if checkpoint.part != "encoder-decoder":
        return "self"
    if is_cross(attention):
        return "cross"
    return "decoder" if is_of_decoder(attention.module) else "encoder"


def _parts(watched: WatchedRun, attention: Attention, choices: Choices) -> dict[str, Intervention]:
    """Return the parts of an attention that can be edited, the smallest that is usual first."""
    path = context_stage(watched, attention)
    if path is None:
        return {}
    _, n_heads, n_queries, _ = attention.shape
    whole = Intervention(path, "zero")
    head = replace(whole, head=min(choices.watched.watched_head, n_heads - 1))
    row = min(choices.watched.watched_query, n_queries - 1)
    return {"head": head, "row_of_head": replace(head, row=row), "all": whole}


def _said(watched: WatchedRun, masked: Masked, intervention: Intervention) -> str:
    """``head 3 of model.layers.5.self_attn``."""
    stage = watched.trace.stages.get(intervention.path)
    attention = intervention.path if stage is None else stage.module
    head, row = intervention.head, intervention.row
    what = say("all", attention=attention) if head is None else say("head", head=head, attention=attention)
    if row is None:
        return what
    label = visible(masked.queries[row].text) if row < len(masked.queries) else ""
    return say("row", row=row, label=label, what=what)


def _make(interventions: tuple[Intervention, ...]) -> None:
    state.watch(pretrained_edits=write_interventions(interventions))


def _edited(
    checkpoint: Checkpoint,
    given: Tokenized,
    interventions: tuple[Intervention, ...],
    other: Callable[[], Mapping[str, Stage]],
) -> Pass:
    """The pass with edits, without its stages, which nothing is drawn of."""
    seen = run(checkpoint, given, keep="all", edits=edits_of(interventions, other))
    seen.trace.stages = {}
    return seen


def _stages_of(checkpoint: Checkpoint, words: Words) -> Mapping[str, Stage]:
    """Return the stages that the checkpoint computes of another text.

    Raises:
        ValueError: it cannot read it.
    """
    kept = _OTHER_STAGES.setdefault(checkpoint, Kept(room=1))
    found = kept.get(words)
    if found is not None:
        return found
    with st.spinner(say("computing")):
        given = tokenized(checkpoint, words, MOST_TOKENS)
        return kept.keep(words, run(checkpoint, given, keep="all").trace.stages)


def _outcome(checkpoint: Checkpoint, given: Tokenized, both: TwoPasses) -> Outcome:
    """Return what both passes say comes after the last token and, of a model that continues texts, their loss."""
    pieces = given.target or given.pieces
    following = () if checkpoint.part == "encoder" else (*(piece.id for piece in pieces[1:]), -1)

    def text_of(token: int) -> str:
        return pieces_of_ids(checkpoint.tokenizer, [token])[0].text

    row = len(pieces) - 1
    label = visible(pieces[row].text)
    return Outcome(both.own.output[0], both.other.output[0], row, label, following, text_of)
