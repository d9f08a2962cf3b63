"""What is wrong with the masks of all layers, heads and sequences, of which the painter shows one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import streamlit as st
import torch

from model.mask_tools.intents import Intent
from model.mask_tools.language import MaskContext
from model.mask_tools.mask_case import Finding, MaskCase
from visualizer.runs.masks_in_force import mask_context
from visualizer.runs.paths import layer_of, without_layer
from visualizer.runs.tokens import TokenSequence
from visualizer.safe_text import markdown_safe
from visualizer.session import state
from visualizer.session.cache import cached_run
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import chosen_intent, findings_under, guessed_intent, padding_of
from visualizer.views.lab.planes import ICONS, Found, Plane, index_of, judged


@dataclass(frozen=True)
class Place:
    """A head of a layer, in a sequence of the batch."""

    item: int
    layer: int
    head: int


def found_everywhere(case: Case, shown: tuple[Finding, ...]) -> tuple[Found, ...]:
    """What is wrong with the masks of other layers, heads and sequences, and not with the one that is shown.

    Nothing where there is but one mask.
    """
    planes = dict(_planes(case))
    if len({(plane.tokens, plane.allowed.numpy().tobytes()) for plane in planes.values()}) < 2:
        return ()
    said = {(finding.rule, finding.title, finding.why) for finding in shown}
    found = judged(tuple(planes.values()), lambda plane: _findings(case, plane))
    return tuple(one for one in found if (one.finding.rule, one.finding.title, one.finding.why) not in said)


def render(case: Case, shown: tuple[Finding, ...]) -> None:
    """Draw what is found elsewhere, with the way there."""
    found, beside = found_everywhere(case, shown), found_beside(case)
    if not found and not beside:
        return
    with st.container(key="found_elsewhere", gap="small"):
        st.caption("In masks that are not shown here")
        for index, one in enumerate(found):
            _draw(case, one, index)
        for name, one in beside:
            _say(one, f"{name}. ")


def _draw(case: Case, one: Found, index: int) -> None:
    _say(one)
    place = next(place for place, plane in _planes(case) if plane.index == one.planes[0].index)
    there = {"layer": place.layer, "head": place.head, "batch": place.item}
    st.button("Show it", key=f"show_found_{index}", on_click=state.select, kwargs=there, type="tertiary")


def _say(one: Found, name: str = "") -> None:
    finding = one.finding
    head = markdown_safe(f"{finding.severity.capitalize()}: {finding.title}")
    st.markdown(f"{ICONS[finding.severity]} **{head}.** {markdown_safe(name + one.where + finding.why)}")


_BESIDE = {"encoder.self_attention": "In the encoder", "decoder.cross_attention": "In the cross-attention"}


def found_beside(case: Case) -> tuple[tuple[str, Found], ...]:
    """What is wrong with the masks of the other attentions, each with the attention's name.

    Beside a decoder they look both ways and see no padding.
    """
    kinds = [kind for kind in _BESIDE if kind != without_layer(case.module)]
    return tuple((_BESIDE[kind], one) for kind in kinds for one in _found_in(case, kind))


def _found_in(case: Case, kind: str) -> tuple[Found, ...]:
    run = cached_run(case.run.settings)
    masks = {layer_of(path): mask for path, mask in run.promised.items() if without_layer(path) == kind}
    sources = run.batches["source"]
    queries = sources if kind.startswith("encoder.") else run.batches.get("target", sources)
    contexts = [_between(*pair) for pair in zip(queries, sources, strict=True)]
    planes = []
    for layer, mask in masks.items():
        given = torch.ones(1, 1, 1, 1, dtype=torch.bool) if mask.allowed is None else mask.allowed
        for item, context in enumerate(contexts):
            allowed = given[min(item, len(given) - 1), 0].expand(context.n_queries, context.n_keys)
            index = index_of((("sequence", item, len(contexts)), ("layer", layer, len(masks))))
            planes.append(Plane(index, allowed, tokens=item))

    def judge(plane: Plane) -> tuple[Finding, ...]:
        context = contexts[plane.tokens]
        intent = Intent("bidirectional", padding=any(context.key_is_padding))
        mask = MaskCase(plane.allowed, *padding_of(context), causal=False)
        return tuple(finding for finding in findings_under(intent, mask, context) if finding.severity != "note")

    return judged(planes, judge)


def _between(queries: TokenSequence, keys: TokenSequence) -> MaskContext:
    """The tokens of an attention from one sequence to another."""
    of_queries, of_keys = mask_context(queries), mask_context(keys)
    return MaskContext(
        query_tokens=of_queries.query_tokens,
        key_tokens=of_keys.key_tokens,
        query_is_padding=of_queries.query_is_padding,
        key_is_padding=of_keys.key_is_padding,
        query_segments=of_queries.query_segments,
        key_segments=of_keys.key_segments,
    )


def _planes(case: Case) -> Iterator[tuple[Place, Plane]]:
    """Every mask of the self-attention that is painted, with its name where there are several."""
    run, kind = cached_run(case.run.settings), without_layer(case.module)
    masks = {layer_of(path): mask for path, mask in run.promised.items() if without_layer(path) == kind}
    n_items, n_heads = len(run.batches[case.sequence]), run.settings.n_heads
    size = len(case.tokens)
    for layer, mask in masks.items():
        given = torch.ones(1, 1, 1, 1, dtype=torch.bool) if mask.allowed is None else mask.allowed
        allowed = given.expand(n_items, n_heads, size, size)
        for item in range(n_items):
            for head in range(n_heads):
                sizes = (("sequence", item, n_items), ("layer", layer, len(masks)), ("head", head, n_heads))
                yield Place(item, layer, head), Plane(index_of(sizes), allowed[item, head], tokens=item)


def _findings(case: Case, plane: Plane) -> tuple[Finding, ...]:
    """What is wrong with one of them, beside what it should be, over the tokens of its sequence."""
    context = mask_context(cached_run(case.run.settings).batches[case.sequence][plane.tokens])
    intent: Intent = chosen_intent(case) or guessed_intent(case, plane.allowed, context)
    mask = MaskCase(plane.allowed, *padding_of(context), causal=intent.hides_later)
    return tuple(finding for finding in findings_under(intent, mask, context) if finding.severity != "note")
