"""The painter, and the choice of the heads that are painted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st
import torch

from headlight.masks.beside_intent import all_clear, findings_under
from headlight.masks.intents import Intent
from headlight.masks.mask_case import Finding, MaskCase
from headlight.masks.naming import name_of
from model.texts import texts_of
from visualizer.components.mask_painter.element import (
    FindingMark,
    PaintedHeads,
    Reason,
    mask_painter,
    parse_mask,
    parse_masks,
    parse_mend,
    parse_select,
)
from visualizer.masks import OWN
from visualizer.routes.address import picture_address
from visualizer.runs.masks_in_force import as_source
from visualizer.server.mount import mount
from visualizer.settings.attentions import changed_for
from visualizer.settings.painted_mask import Scope, encode_cells, read_planes
from visualizer.settings.settings import FIELDS, Selection, name_of_mask
from visualizer.stages.panels import to_array
from visualizer.state import state, widgets
from visualizer.views.lab import everywhere, in_words, mask_edits
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import chosen_intent, expected_cells, padding_of

say = texts_of(__name__)
_KEY = "mask_painter"
_MARK = encode_cells(np.ones((1, 1), dtype=np.bool_))
"""Stands in an address where a painting will be."""


def render(case: Case) -> None:
    """Draw the painter."""
    narrower = _narrower(case)
    if narrower is not None:
        _say_what_holds(narrower)
    _painter(case, is_in_force=narrower is None)


def heads(case: Case) -> None:
    """Draw the choice of the heads that are painted, of the one that is looked at, and of a mask to start from."""
    chosen = FIELDS["scope"].choices[case.selection.lab.scope].lower()
    with st.popover(say("paint_for", heads=chosen), key="paint_for"):
        widgets.segments("scope", wrap=True)
        with st.container(horizontal=True):
            _place("layer", case.selection.layer, case.n_layers)
            _place("head", case.selection.head, case.settings.n_heads)
        in_words.start_from(case)


def _place(name: str, current: int, count: int) -> None:
    if count == 1:
        return
    field = FIELDS[name]
    st.selectbox(
        field.label,
        range(count),
        index=current,
        help=field.help,
        width=96,
        **widgets.following(f"lab_{name}", current, lambda chosen: state.select(**{name: chosen})),
    )


def _narrower(case: Case) -> Scope | None:
    """The narrower scope whose painting holds for the head that is looked at, if there is one."""
    if "custom" not in case.settings.mask:
        return None
    layer, head = case.selection.layer, case.selection.head
    covering = [scope for scope in read_planes(case.settings.custom) if scope.covers(layer, head)]
    holding = max(covering, key=lambda scope: scope.narrowness, default=case.scope)
    return holding if holding.narrowness > case.scope.narrowness else None


def _say_what_holds(scope: Scope) -> None:
    narrowed = "_".join(kind for kind in ("layer", "head") if getattr(scope, kind) is not None)
    said = {
        "layer": say("other_in_layer", layer=scope.layer),
        "head": say("other_for_head", head=scope.head),
        "layer_head": say("other_for_both", layer=scope.layer, head=scope.head),
    }

    def show() -> None:
        state.select(scope=narrowed)

    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="narrower"):
        st.caption(said[narrowed], width="content")
        st.button(say("show"), key="show_narrower", on_click=state.callback(show), type="tertiary")


def _painter(case: Case, *, is_in_force: bool) -> None:
    settings = case.settings
    painted = mask_edits.painted_in(settings, case.scope, case.context)
    others = case.masks.without("custom")
    beside = others.allowed
    allowed = painted if beside is None else painted & beside[0, 0]
    findings, said = judged(case, allowed)
    rows, columns = case.axes

    def paint(event: object) -> None:
        if (blocked := parse_mask(event, *case.size)) is not None:
            allowed = torch.from_numpy(~blocked)
            case.change_masks(lambda now: mask_edits.with_cells(now, case.scope, allowed, case.context))

    def bring_back(event: object) -> None:
        if (blocked := parse_mask(event, *case.size)) is not None:
            masks, allowed = parse_masks(event), torch.from_numpy(~blocked)
            case.change_masks(lambda now: mask_edits.brought_back(now, case.scope, masks, allowed, case.context))

    def mend(event: object) -> None:
        intent, index = chosen_intent(case), parse_mend(event, len(findings))
        if intent is not None and index is not None and (meant := findings[index].mended) is not None:
            source = intent.expression_over(case.context) or as_source(meant, case.context)
            case.change_masks(lambda now: case.put_in_place(now, source))

    def take_over(_event: object) -> None:
        case.change_masks(lambda now: mask_edits.taken_over(now, case.beside_painting(now), case.context))

    def select(event: object) -> None:
        if (place := parse_select(event, *case.size)) is not None:
            state.select(query=place[0], key=place[1])

    def look(event: object) -> None:
        state.select(layer=state.index_in(event, "layer"), head=state.index_in(event, "head"))

    weights = case.run.trace[f"{case.module}.weights"].value[0, case.selection.head]
    mount(
        mask_painter(
            ~painted.numpy(),
            others=others.blocked_bits(*case.size)[0].numpy(),
            reasons=tuple(Reason("custom" if name == OWN else name, name_of_mask(name)) for name in others.names),
            weights=to_array(weights) if is_in_force and not case.selection.hidden else None,
            weights_title=_weights_title(case),
            findings=tuple(map(_mark, findings)),
            all_clear=said,
            masks=mask_edits.masks_written(settings),
            selected=(case.selection.query, case.selection.key),
            scope=_history_of(case),
            rows=rows,
            columns=columns,
            seq=state.last_seq(_KEY),
            key=_KEY,
            heads=_heads_to_follow(case),
        ),
        paint=paint,
        mend=mend,
        bring_back=bring_back,
        select=select,
        take_over=take_over,
        look=look,
    )
    everywhere.render(case, findings if is_in_force else ())


def _mark(finding: Finding) -> FindingMark:
    """A finding as the painter lists it."""
    return FindingMark(
        title=finding.title,
        severity=finding.severity,
        why=finding.why,
        mend=finding.mend,
        cells=finding.cells.numpy(),
        can_mend=finding.mended is not None,
    )


def _weights_title(case: Case) -> str:
    layer, head = case.selection.layer, case.run.head_label(case.selection.head)
    if case.attention.has_the_list:
        return say("weights", layer=layer, head=head)
    return say("weights_of", layer=layer, attention=case.attention.called, head=head)


def _heads_to_follow(case: Case) -> PaintedHeads | None:
    """All heads of the layers that a stroke can change; None where covered, or without a link for the settings."""
    if case.selection.hidden:
        return None
    settings, n_layers = case.run.settings, case.n_layers
    shown = Selection(stage=f"{case.attention.path}.weights", batch=case.run.item)
    n_queries, n_keys = case.size
    n_numbers = n_layers * settings.n_heads * n_queries * n_keys
    painted = changed_for(case.attention, settings, mask_edits.with_source(case.settings, case.scope, _MARK))
    at_rest = picture_address("heads", settings, shown, n_numbers)
    painting = picture_address("heads", painted, shown, n_numbers)
    if at_rest is None or painting is None or painting.count(_MARK) != 1:
        return None
    return PaintedHeads(
        at_rest,
        painting,
        _MARK,
        names=(case.run.names_of(settings.n_heads),) * n_layers,
        first=case.scope.layer or 0,
        layer=case.selection.layer,
        head=case.selection.head,
    )


def _history_of(case: Case) -> str:
    """Names what can be undone together: strokes on the same attention, heads, tokens and example."""
    settings = case.run.settings
    text = (settings.text, settings.target, settings.tokens, settings.order, settings.pad, settings.pad_side)
    return repr((case.attention.name, case.scope, settings.architecture, text, state.examples_opened()))


def judged(case: Case, allowed: torch.Tensor) -> tuple[tuple[Finding, ...], str]:
    """Find the faults of a mask, (Tq, Tk), True = may attend; a sentence where there is none or nobody asked."""
    intent = chosen_intent(case)
    if intent is None:
        return (), say("unsaid", name=name_of(case.allowed, case.context))
    try:
        cells = expected_cells(intent, case.attention.intent)
        return findings_of(case, allowed, intent), all_clear(intent, allowed, case.context, cells)
    except ValueError as error:
        return (), say("not_compared", error=error)


def findings_of(case: Case, allowed: torch.Tensor, intent: Intent) -> tuple[Finding, ...]:
    """Find the faults of a mask, (Tq, Tk), True = may attend, beside what it should be.

    No mend shows a decoder's query a later token.
    """
    mask = MaskCase(allowed, *padding_of(case.context), causal=False)
    found = findings_under(intent, mask, case.context, cells=expected_cells(intent, case.attention.intent))
    if case.attention.path != "decoder.self_attention":
        return found
    opens = [one.mended is not None and bool((one.mended & ~allowed).triu(1).any()) for one in found]
    return tuple(replace(one, mended=None) if ahead else one for one, ahead in zip(found, opens, strict=True))
