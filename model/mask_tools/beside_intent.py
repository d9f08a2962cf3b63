"""What is wrong with a mask beside what it should be: the lint's rules and the comparison, each thing said once."""

from __future__ import annotations

from dataclasses import replace

from model.mask_tools.intents import Intent, as_finding, compare
from model.mask_tools.language import MaskContext
from model.mask_tools.lint import lint, no_key_left
from model.mask_tools.mask_case import Finding, MaskCase

_SAID_BY_COMPARISON = frozenset(
    {"visible_future", "visible_padding", "dead_key", "blocks_nothing", "one_key_too_many", "blocks_everything"}
)
"""Findings of the lint that a comparison with what was meant says better, or knows to be none."""

_CAUSES = frozenset({"inverted", "transposed", "own_key_hidden", "aligned_top_left"})
"""Findings that name what a mask is instead, where a comparison has named it already."""


def findings_under(
    intent: Intent, case: MaskCase, context: MaskContext, *, whole: bool = True
) -> tuple[Finding, ...]:
    """What is wrong with a mask beside what it should be.

    Args:
        intent: what it should be.
        case: the mask, and what is known of its numbers.
        context: its tokens.
        whole: whether each row is that of one query, so that rows can be compared with those of the intention.
    """
    comparison = compare(intent, case.allowed, context) if whole else None
    difference = None if comparison is None else as_finding(intent, comparison, case.allowed)
    standing = intent.standing(context)
    judged = replace(case, causal=intent.hides_later, cache=standing.cache)
    by_rule = {finding.rule: finding for finding in lint(judged)}
    numbers = ("fill_overflows", "fill_leaks")
    if comparison is None or intent.kind == "painted":
        return tuple(by_rule.values())
    if difference is None:
        kept = ("no_key_left", "padding_query_without_key", "alignment_differs", *numbers)
        return tuple(finding for rule, finding in by_rule.items() if rule in kept)
    said = _SAID_BY_COMPARISON | _CAUSES if comparison.cause else _SAID_BY_COMPARISON
    if comparison.cause and "own_key_hidden" in by_rule and (keyless := no_key_left(judged)):
        by_rule[keyless.rule] = keyless
    return (difference, *(finding for rule, finding in by_rule.items() if rule not in said))


def all_clear(intent: Intent, *, is_guess: bool) -> str:
    """What is said of a mask without a finding."""
    if intent.kind == "painted":
        return "Nothing suspicious: every query keeps a key."
    guessed = " That this was meant is a guess." if is_guess else ""
    return f"Every cell is as it should be: {intent.words}.{guessed}"
