"""The findings on a mask beside what it should be: the comparison, and the outcome of rows without a key."""

from __future__ import annotations

from torch import Tensor

from headlight.masks.intents import Intent, as_finding, compare
from headlight.masks.language import MaskContext
from headlight.masks.lint import stored_fill
from headlight.masks.mask_case import Finding, MaskCase, named
from headlight.masks.planes import Remark
from model.texts import texts_of

say = texts_of(__name__)

HEADLIGHT = Remark("note", say("zero_weights"))
"""The outcome of a row without a key in the model of this package."""


def findings_under(
    intent: Intent,
    case: MaskCase,
    context: MaskContext,
    *,
    cells: Tensor | None = None,
    keyless: Remark = HEADLIGHT,
) -> tuple[Finding, ...]:
    """Return the findings on a mask beside what it should be.

    Args:
        intent: what it should be.
        case: the mask, and what stands in it for a blocked cell.
        context: its tokens.
        cells: what should be open, for an intention whose cells are given; None where there are none to compare.
        keyless: what a row without a key comes to where the mask is used.

    Raises:
        ValueError: the mask and ``cells`` differ in size.
    """
    comparison = compare(intent, case.allowed, context, cells)
    found = (as_finding(comparison, case.allowed), without_key(case, keyless))
    return tuple(finding for finding in found if finding is not None)


def without_key(case: MaskCase, keyless: Remark) -> Finding | None:
    """The queries that no key is left for, with what their rows come to; rows of padding matter to nobody."""
    rows = ~case.allowed.any(-1)
    if not bool(rows.any()):
        return None
    read = rows & ~case.query_is_padding
    is_read = bool(read.any())
    name = named("query", read) if is_read else say("padding_queries", queries=named("query", rows))
    if case.fill is not None and bool(stored_fill(case).isfinite()):
        keyless = Remark("warning", say("leaks", fill=case.fill))
    return Finding(
        rule="no_key_left",
        title=say("no_key_left") if is_read else say("padding_without_key"),
        severity=keyless.severity if is_read else "note",
        cells=rows[:, None].expand_as(case.allowed),
        why=say("no_key_left_why", queries=name, because=keyless.text),
        mend="",
    )


def all_clear(intent: Intent, allowed: Tensor, context: MaskContext, cells: Tensor | None = None) -> str:
    """Return the sentence on a mask without a finding; ``cells`` as ``findings_under`` takes them."""
    if intent.kind == "painted" and cells is None:
        return say("nothing_to_compare")
    return say("all_clear", words=compare(intent, allowed, context, cells).words)
