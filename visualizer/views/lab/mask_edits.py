"""A person's changes to the masks, as new settings: paint, write an expression, start from one, take over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from headlight.masks.language import MaskContext, from_mask_mod, parse
from model import CombinedMask
from visualizer.masks import MASK_KINDS
from visualizer.runs.masks_in_force import as_expression, as_source, painted_cells
from visualizer.settings.lines import lines_of
from visualizer.settings.link import as_text, read_part
from visualizer.settings.painted_mask import (
    EVERYWHERE,
    Scope,
    asks_for_head,
    encode_cells,
    is_cells,
    read_planes,
    source_at,
    with_places,
    write_planes,
)
from visualizer.settings.settings import FIELDS, Selection, Settings, in_mask_order

POSITIONS = frozenset({"q", "k", "n_queries", "n_keys"})
"""The names of an expression that do not depend on the text."""


def expression_of(name: str, settings: Settings, context: MaskContext) -> str:
    """A mask of the list as an expression over some tokens; "" for a painted one.

    A prefix is counted from the first token: padding before it does not count.
    """
    n_before = [*context.key_is_padding, False].index(False)
    sizes = {"window": settings.window, "prefix": settings.prefix + n_before, "stride": settings.stride}
    return MASK_KINDS[name].expression.format_map(sizes)


def scope_of(selection: Selection) -> Scope:
    """The heads that a stroke is for."""
    return Scope(
        layer=selection.layer if selection.lab.scope in ("layer", "layer_head") else None,
        head=selection.head if selection.lab.scope in ("head", "layer_head") else None,
    )


def source_in(settings: Settings, scope: Scope) -> str:
    """The expression or cells that hold in a scope: its own, or those of a wider one."""
    planes = read_planes(settings.custom)
    if scope in planes:
        return planes[scope]
    wider = {other: source for other, source in planes.items() if _contains(other, scope)}
    return source_at(wider, scope.layer or 0, scope.head or 0)


def painted_in(settings: Settings, scope: Scope, context: MaskContext) -> Tensor:
    """Return the cells that the painting in force in a scope allows, (Tq, Tk)."""
    return painted_cells(source_in(settings, scope) if "custom" in settings.mask else "", context)


def whole_expression(settings: Settings, layer: int, head: int, context: MaskContext) -> str:
    """All masks in force on a head as one expression; "" where there is none."""
    expressions = {name: expression_of(name, settings, context) for name in settings.mask}
    painted = source_at(read_planes(settings.custom), layer, head)
    expressions["custom"] = with_places(as_expression(painted, context), head, context.sequence)
    parts = [expressions[name] for name in settings.mask if painted or name != "custom"]
    if not all(parts):
        return ""
    return " and ".join(f"({part})" for part in parts) if len(parts) > 1 else "".join(parts)


def with_cells(settings: Settings, scope: Scope, allowed: Tensor, context: MaskContext) -> Settings:
    """Paint the cells of a scope, (T, T), True = may attend, beside the other masks."""
    return with_source(settings, scope, source_of(allowed, context))


def source_of(allowed: Tensor, context: MaskContext) -> str:
    """Painted cells, (T, T), as a plane of the painting.

    They stay where they are when the text changes: kept as an expression, it is one of positions alone.
    """
    source = as_source(allowed, context)
    is_of_text = source and not is_cells(source) and not parse(source).names <= POSITIONS
    return encode_cells((~allowed).numpy()) if is_of_text else source


def with_expression(
    settings: Settings, scope: Scope, text: str, beside: CombinedMask, context: MaskContext
) -> Settings:
    """Write an expression, or the body of a mask_mod, for a scope; an empty one leaves it to the wider ones.

    Raises:
        MaskExpressionError: it is none; its place is one in ``from_mask_mod(text)``.
    """
    if text.strip():
        expression = from_mask_mod(text)
        parse(expression).evaluate(context)
        return put_in_place(settings, scope, " ".join(expression.split()), beside, context)
    planes = {other: source for other, source in read_planes(settings.custom).items() if other != scope}
    return _painted(settings, planes)


def put_in_place(
    settings: Settings, scope: Scope, source: str, beside: CombinedMask, context: MaskContext
) -> Settings:
    """Put an expression or cells in the place of all masks in force on the heads of a scope.

    Other heads keep what is in force on them. Beside a decoder the padding mask stays, for the encoder has it too.
    """
    if scope == EVERYWHERE and not read_planes(settings.custom).keys() - {scope}:
        return put_everywhere(settings, source)
    return with_source(taken_over(settings, beside, context), scope, source)


def put_everywhere(settings: Settings, source: str) -> Settings:
    """Put an expression or cells in the place of all masks in force; ``put_in_place`` says which padding stays."""
    is_shared = settings.architecture == "encoder-decoder" and "padding" in settings.mask
    return with_source(replace(settings, mask=("padding",) * is_shared, custom=""), EVERYWHERE, source)


def with_source(settings: Settings, scope: Scope, source: str) -> Settings:
    """Paint a scope with an expression or cells, and put the painted mask in force."""
    return _painted(settings, {**read_planes(settings.custom), scope: source})


def masks_written(settings: Settings) -> dict[str, str]:
    """The masks chosen and the painting, as a link says them, for ``brought_back``."""
    return {name: as_text(FIELDS[name], getattr(settings, name)) for name in ("mask", "custom")}


def brought_back(
    settings: Settings, scope: Scope, masks: Mapping[str, str], allowed: Tensor, context: MaskContext
) -> Settings:
    """Put masks in force that were written before, and paint the cells of a scope where those differ."""
    read, _ = read_part({name: [masks[name]] for name in ("mask", "custom") if name in masks}, settings)
    is_painted = bool((painted_in(read, scope, context) == allowed).all())
    return read if is_painted else with_cells(read, scope, allowed, context)


def taken_over(settings: Settings, beside: CombinedMask, context: MaskContext) -> Settings:
    """Bring the masks beside the painting into each of its planes, so that they can be painted over.

    In a batch the padding mask stays beside it, and so does a prefix behind padding: each sequence has its own, and
    a painting is for all.
    """
    of_each = ("padding", "prefix") if settings.pad_side == "left" else ("padding",)
    is_batch = len(lines_of(settings.text)) > 1
    stays = tuple(name for name in settings.mask if name in of_each and is_batch)
    others = CombinedMask({name: part for name, part in beside.parts.items() if name not in stays}).allowed
    if others is None:
        return settings
    cells = others[0, 0]

    def with_others(source: str) -> str:
        if not asks_for_head(source):
            return as_source(painted_cells(source, context) & cells, context)
        names = (name for name in beside.parts if name not in stays)
        said = as_expression(as_source(cells, context), context)
        each = (said,) if said else (expression_of(name, settings, context) for name in names)
        return " and ".join(f"({part})" for part in (source, *each))

    planes = {EVERYWHERE: "", **read_planes(settings.custom)}
    combined = {scope: with_others(source) for scope, source in planes.items()}
    return replace(settings, mask=in_mask_order((*stays, "custom")), custom=write_planes(combined))


def _painted(settings: Settings, planes: Mapping[Scope, str]) -> Settings:
    custom = write_planes(planes)
    masks = in_mask_order((*settings.mask, "custom")) if custom else settings.mask
    return replace(settings, mask=masks, custom=custom)


def _contains(wide: Scope, narrow: Scope) -> bool:
    return wide.layer in (None, narrow.layer) and wide.head in (None, narrow.head)
