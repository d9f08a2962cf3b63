"""What is to be said of a mask beside what it should be: the comparison, and what rows without a key come to."""

from __future__ import annotations

from torch import Tensor

from model.mask_tools.intents import Intent, as_finding, compare
from model.mask_tools.language import MaskContext
from model.mask_tools.lint import stored_fill
from model.mask_tools.mask_case import Finding, MaskCase, named
from model.mask_tools.planes import Remark

HEADLIGHT = Remark("note", "the weights there are zero, as in F.scaled_dot_product_attention")
"""What a row without a key comes to in the model of this package."""


def findings_under(
    intent: Intent,
    case: MaskCase,
    context: MaskContext,
    *,
    cells: Tensor | None = None,
    keyless: Remark = HEADLIGHT,
) -> tuple[Finding, ...]:
    """What is wrong with a mask beside what it should be.

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
    name = named("query", read) if is_read else f"padding {named('query', rows)}, which nobody reads"
    if case.fill is not None and bool(stored_fill(case).isfinite()):
        keyless = Remark("warning", f"a fill of {case.fill:g} lets the softmax give the weights to blocked keys")
    return Finding(
        rule="no_key_left",
        title="A query has no key left" if is_read else "Padding queries have no key left",
        severity=keyless.severity if is_read else "note",
        cells=rows[:, None].expand_as(case.allowed),
        why=f"No key is left for {name}: {keyless.text}.",
        mend="",
    )


def all_clear(intent: Intent, allowed: Tensor, context: MaskContext, cells: Tensor | None = None) -> str:
    """What is said of a mask without a finding; ``cells`` as ``findings_under`` takes them."""
    if intent.kind == "painted" and cells is None:
        return "What is painted is what you mean: there is nothing to compare it with."
    return f"Every cell is as it should be: {compare(intent, allowed, context, cells).words}."
