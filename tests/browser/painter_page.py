"""A page with the mask painter alone, which computes its weights and findings with NumPy and lists what it heard.

Parameters of the address: tokens (how many), reasons (names separated by commas), row (the one that is painted at
first), hostile (tokens that are not plain words), plain (no weights), busy (seconds that each run takes longer),
number (of the painter: another one is drawn anew). Another address begins anew.
"""

from __future__ import annotations

import time

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from visualizer.components.axis import Axis
from visualizer.components.mask_painter import (
    FindingMark,
    Reason,
    mask_painter,
    parse_mask,
    parse_mend,
    parse_select,
)
from visualizer.routes.served import ROUTES
from visualizer.session.mount import mount

Cells = NDArray[np.bool_]


def key_of(number: object) -> str:
    """The key of the painter with this number."""
    return f"painter_{number}"


ALL_CLEAR = "Nothing suspicious: every query keeps a key, and no padding is seen."
WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "slept")
HOSTILE = ("<img src=x onerror=alert(1)>", "שלום", "$x$ :red[x]", "w" * 300, "\u202etac", "👩‍👩‍👧", "", "&lt;b&gt;")
LABELS = {"causal": "causal", "padding": "padding", "sliding_window": "window of 3"}


def blocked_by(name: str, size: int) -> Cells:
    query, key = np.indices((size, size))
    return {"causal": key > query, "padding": key >= size - 2, "sliding_window": abs(query - key) >= 3}[name]


def weights_under(blocked: Cells) -> NDArray[np.float32]:
    size = len(blocked)
    scores = np.random.default_rng(0).normal(size=(size, size)) * 1.5
    numbers = np.exp(scores) * ~blocked
    return (numbers / np.maximum(numbers.sum(1, keepdims=True), 1e-30)).astype(np.float32)


def findings_of(blocked: Cells) -> tuple[FindingMark, ...]:
    size = len(blocked)
    found = []
    if (empty := blocked.all(1)).any():
        rows = np.repeat(empty[:, None], size, 1)
        why = "The softmax of a row without a key is no distribution."
        found.append(FindingMark("A query keeps no key", "error", why, "Let each query see itself.", rows, True))
    visible = ~blocked & (np.arange(size) >= size - 2)
    if size > 2 and visible.any():
        why = "A padding token carries no meaning, and weights on it are lost."
        found.append(FindingMark("Padding can be seen", "warning", why, "Block its columns.", visible, True))
    if not blocked.any():
        nothing = np.zeros((size, size), dtype=bool)
        why = "A mask without a blocked cell changes nothing."
        found.append(
            FindingMark("The mask blocks nothing", "note", why, "Block a cell, or leave it out.", nothing, False)
        )
    return tuple(found)


def everything_blocked() -> Cells:
    return blocked_with(st.session_state.painted, [reason.name for reason in st.session_state.reasons])


def blocked_with(painted: Cells, reasons: list[str]) -> Cells:
    blocked = painted.copy()
    for name in reasons:
        blocked |= blocked_by(name, len(blocked))
    return blocked


def hear(name: str, event: dict[str, object]) -> dict[str, object]:
    shown = {field: value for field, value in event.items() if field != "blocked"}
    st.session_state.heard.append(f"{name} {shown}")
    st.session_state.seq = event["seq"]
    return event


def on_paint(event: dict[str, object]) -> None:
    if (painted := parse_mask(hear("paint", event), *st.session_state.painted.shape)) is not None:
        st.session_state.painted = painted


def on_take_over(event: dict[str, object]) -> None:
    hear("take_over", event)
    st.session_state.painted = everything_blocked()
    st.session_state.reasons = ()


def on_mend(event: dict[str, object]) -> None:
    found = findings_of(everything_blocked())
    if (index := parse_mend(hear("mend", event), len(found))) is None:
        return
    if found[index].severity == "error":
        st.session_state.painted = st.session_state.painted & ~np.eye(len(found[index].cells), dtype=bool)
    else:
        st.session_state.painted = st.session_state.painted | found[index].cells


def on_select(event: dict[str, object]) -> None:
    st.session_state.selected = parse_select(hear("select", event), *st.session_state.painted.shape)


def show_other_heads() -> None:
    painted = np.eye(len(st.session_state.painted), dtype=bool)
    st.session_state.update(scope="other heads", painted=painted)


def begin() -> None:
    """What the address asks for, as nobody has touched it yet."""
    given = st.query_params
    size = int(given.get("tokens", 6))
    painted = np.zeros((size, size), dtype=bool)
    if "row" in given:
        painted[int(given["row"])] = True
    reasons = tuple(Reason(name, LABELS[name]) for name in given.get("reasons", "").split(",") if name)
    st.session_state.update(painted=painted, reasons=reasons, seq=0, heard=[], selected=None, scope="")


def page() -> None:
    st.set_page_config(layout="wide")
    asked = st.query_params.to_dict()
    if st.session_state.get("asked") != asked:
        st.session_state.asked = asked
        begin()
    time.sleep(float(st.query_params.get("busy", 0)))
    painted, reasons = st.session_state.painted, st.session_state.reasons
    n_tokens = len(painted)
    words = HOSTILE if "hostile" in st.query_params else WORDS
    labels = tuple(words[i % len(words)] for i in range(n_tokens))
    others = np.zeros(painted.shape, dtype=np.uint8)
    for bit, reason in enumerate(reasons):
        others |= blocked_by(reason.name, n_tokens).astype(np.uint8) << bit
    blocked = everything_blocked()
    mount(
        mask_painter(
            painted,
            others=others,
            reasons=reasons,
            weights=None if "plain" in st.query_params else weights_under(blocked),
            weights_title="weight, layer 0 head 1",
            findings=findings_of(blocked),
            all_clear=ALL_CLEAR,
            rows=Axis("query", labels, "source"),
            columns=Axis("key", labels, "source"),
            seq=st.session_state.seq,
            key=key_of(asked["number"]),
            selected=st.session_state.selected,
            scope=st.session_state.scope,
        ),
        paint=on_paint,
        take_over=on_take_over,
        mend=on_mend,
        select=on_select,
    )
    st.button("Other heads", on_click=show_other_heads)
    with st.container(key="heard"):
        st.text("\n".join(st.session_state.heard))
    with st.container(key="painted"):
        st.text("\n".join("".join(".#"[int(cell)] for cell in row) for row in painted))


if __name__ == "__main__":
    page()
else:
    app = st.App(__file__, routes=ROUTES)
