"""The mask in blocks, as FlexAttention computes it: which are skipped, computed whole, or asked cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from headlight.masks.blocks import (
    EMPTY,
    FULL,
    PARTIAL,
    Blocks,
    blocks_of_cells,
    blocks_of_expression,
    stretched,
)
from headlight.masks.language import TOKEN_FACTS, MaskContext, MaskExpressionError, parse
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.state import widgets
from visualizer.views.lab.case import Case
from visualizer.work import background
from visualizer.work.cache import Cache

say = texts_of(__name__)


def render(case: Case) -> None:
    """Draw the choice of a size and a length, the picture, and what it saves."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="block_choices"):
        widgets.choice("block_size", width=120)
        widgets.choice("block_tokens", width=160)
    size, n_tokens = int(case.selection.lab.block_size), _n_tokens(case)
    expression = expression_of(case)
    if expression is None and n_tokens is not None:
        st.caption(say("of_the_text", n_tokens=n_tokens, n_queries=case.size[0], n_keys=case.size[1]))
    try:
        found = blocks_of(case, expression, n_tokens, size)
    except MaskExpressionError as error:
        st.caption(markdown_safe(say("impossible", n_tokens=n_tokens or case.size[0], error=error)))
        return
    st.markdown(summary(found))
    mount(tensor_grid([_panel(found)], key="blocks_of_mask"))
    st.caption(markdown_safe(_how(expression)))


def expression_of(case: Case) -> str | None:
    """All masks in force on the head that is looked at as one expression; None where there is none."""
    return (case.expression or None) if case.masks.names else "True"


def blocks_of(case: Case, expression: str | None, n_tokens: int | None, size: int) -> Blocks:
    """The blocks of the mask on ``n_tokens`` tokens, or, without them or an expression, on those of the text.

    Raises:
        MaskExpressionError: it cannot be worked out for so many tokens.
    """
    if expression is None:
        return blocks_of_cells(case.allowed, size)
    asked = Asked(expression, case.context, n_tokens, size)
    found = _FOUND.get(asked) or background.at_once(partial(work_out, asked), say("counting"))
    if isinstance(found, MaskExpressionError):
        raise found
    return found


@dataclass(frozen=True)
class Asked:
    """The blocks that are asked for.

    Attributes:
        expression: the mask.
        context: the tokens of the text.
        n_tokens: how many tokens it is stretched to; None for none.
        size: queries, and keys, of a block.
    """

    expression: str
    context: MaskContext
    n_tokens: int | None
    size: int

    @property
    def stretched(self) -> MaskContext:
        """The tokens that the mask is laid on."""
        return self.context if self.n_tokens is None else stretched(self.context, self.n_tokens)


_FOUND: Cache[Asked, Blocks | MaskExpressionError] = Cache(room=32)


def work_out(asked: Asked, progress: Callable[[float], None]) -> Blocks | MaskExpressionError:
    """The blocks that are asked for, or why there are none, kept for who asks again."""
    try:
        found = blocks_of_expression(parse(asked.expression), asked.stretched, asked.size, progress)
    except MaskExpressionError as error:
        return _FOUND.put(asked, error)
    return _FOUND.put(asked, found)


def summary(found: Blocks) -> str:
    """Say how many blocks of each kind there are, and what is saved."""
    return say(
        "summary",
        n_empty=found.count(EMPTY),
        n_partial=found.count(PARTIAL),
        n_full=found.count(FULL),
        n_blocks=found.kinds.numel(),
        saved=found.share_skipped,
        asking=found.count(PARTIAL) / found.kinds.numel(),
    )


def _how(expression: str | None) -> str:
    said = [say("legend")]
    if expression is not None:
        said.append(say("cells", expression=expression))
        if parse(expression).names & TOKEN_FACTS.keys():
            said.append(say("stretched"))
    return " ".join(said)


def _panel(found: Blocks) -> Panel:
    kinds = found.kinds.numpy()
    rows, columns = ([str(block * found.size) for block in range(length)] for length in kinds.shape)
    return Panel(
        name="block",
        title=say("title", size=found.size),
        subtitle=say("kinds"),
        array=kinds.astype(np.float32),
        rows=Axis("query", tuple(rows)),
        columns=Axis("key", tuple(columns)),
        role="weights",
        bounds=(0.0, 2.0),
        blocked=(kinds == EMPTY).astype(np.uint8),
        blocked_by=(say("blocked_by"),),
    )


def _n_tokens(case: Case) -> int | None:
    """Choose the number of tokens that the mask is laid on; None for those of the text."""
    tokens = case.selection.lab.block_tokens
    return None if tokens == "text" else int(tokens)
