"""The faults of the masks of all layers, heads, sequences and attentions, of which the painter shows one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import streamlit as st
import torch

from headlight.masks.beside_intent import findings_under
from headlight.masks.mask_case import Finding, MaskCase
from model.texts import texts_of
from visualizer.runs.masks_in_force import mask_context
from visualizer.runs.paths import layer_of, without_layer
from visualizer.settings.painted_mask import asks_for_head
from visualizer.state import state
from visualizer.views.lab.case import Case, attentions_over_tokens, case_in
from visualizer.views.lab.findings_of_array import draw_finding
from visualizer.views.lab.intent import chosen_intent, expected_cells, padding_of
from visualizer.views.lab.planes import Found, Plane, index_of, judged
from visualizer.work.cache import cached_run

say = texts_of(__name__)


def found_everywhere(case: Case, shown: tuple[Finding, ...]) -> tuple[Found, ...]:
    """Find the faults of the masks of other layers, heads and sequences that the shown mask has not.

    Nothing where there is but one mask.
    """
    planes = list(_planes(case))
    if len({(plane.tokens, plane.allowed.numpy().tobytes()) for plane in planes}) < 2:
        return ()
    said = {(finding.rule, finding.title, finding.why) for finding in shown}
    return tuple(
        one for one in _found_in(case, planes) if (one.finding.rule, one.finding.title, one.finding.why) not in said
    )


def found_beside(case: Case) -> tuple[tuple[Case, Found], ...]:
    """Find the faults of the masks of the other attentions, beside what each of them should be."""
    run, selection = case.run, case.selection
    others = [
        case_in(run, selection, attention)
        for attention in attentions_over_tokens(run)
        if attention != case.attention
    ]
    return tuple((other, found) for other in others for found in _found_in(other, list(_planes(other))))


def render(case: Case, shown: tuple[Finding, ...]) -> None:
    """Draw what is found elsewhere, with the way there."""
    found = [(case, one) for one in found_everywhere(case, shown)] + list(found_beside(case))
    if not found:
        return
    with st.container(key="found_elsewhere", gap="small"):
        st.caption(say("elsewhere"))
        for index, (of, one) in enumerate(found):
            name = "" if of is case else say("in_attention", attention=of.attention.called)
            _draw(of, one, name, index)


def _draw(case: Case, one: Found, name: str, index: int) -> None:
    draw_finding(one, name)
    place = dict(one.planes[0].index)  # without axes of which there is only one
    layer, head, item = (place.get(axis, 0) for axis in ("layer", "head", "sequence"))
    to = {"layer": layer, "head": head, "batch": item, "attention": case.attention.name}
    st.button(say("show"), key=f"show_found_{index}", on_click=state.callback(state.select, **to), type="tertiary")


def _planes(case: Case) -> Iterator[Plane]:
    """Every mask of the attention, with its name where there are several.

    Heads of a sequence that differ in nothing but their number are told apart where the answer asks for it.
    """
    run, kind = cached_run(case.run.settings), without_layer(case.module)
    masks = {layer_of(path): mask for path, mask in run.promised.items() if without_layer(path) == kind}
    n_items, n_heads = len(run.batches[case.attention.queries]), run.settings.n_heads
    by_head = asks_for_head(getattr(case.selection.lab, case.attention.intent))
    for layer, mask in masks.items():
        cells = torch.ones(1, 1, 1, 1, dtype=torch.bool) if mask.allowed is None else mask.allowed
        allowed = cells.expand(n_items, n_heads, *case.size)
        for item, head in product(range(n_items), range(n_heads)):
            sizes = (("sequence", item, n_items), ("layer", layer, len(masks)), ("head", head, n_heads))
            tokens = item * n_heads + (head if by_head else 0)
            yield Plane(index_of(sizes), allowed[item, head], tokens)


def _found_in(case: Case, planes: Sequence[Plane]) -> tuple[Found, ...]:
    """Find the faults of any mask of an attention, most severe first; notes are left to the painter."""
    return judged(planes, lambda plane: _findings(case, plane))


def _findings(case: Case, plane: Plane) -> tuple[Finding, ...]:
    """Find the faults of one mask, beside what it was said to be, over the tokens of its sequence."""
    batches, attention = cached_run(case.run.settings).batches, case.attention
    item, head = divmod(plane.tokens, case.run.settings.n_heads)
    context = mask_context(batches[attention.queries][item], batches[attention.keys][item], head, item)
    intent = chosen_intent(case, context)
    if intent is None:
        return ()
    try:
        mask = MaskCase(plane.allowed, *padding_of(context), causal=False)
        found = findings_under(intent, mask, context, cells=expected_cells(intent, case.attention.intent))
    except ValueError:
        return ()  # said of the mask that is shown
    return tuple(finding for finding in found if finding.severity != "note")
