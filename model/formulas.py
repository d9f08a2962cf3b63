"""The formulas of attention as LaTeX, in the symbols of "Attention Is All You Need" (section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

QUERY_INPUT = r"X_q \in \mathbb{R}^{T_q \times d_{model}}"
KEY_INPUT = r"X_k \in \mathbb{R}^{T_k \times d_{model}}"
VALUE_INPUT = r"X_v \in \mathbb{R}^{T_k \times d_{model}}"

QUERIES = r"Q_h = Q[:, \text{head } h]"
KEYS = r"K_h = K[:, \text{head } h]"
VALUES = r"V_h = V[:, \text{head } h]"

SCORES = r"S = Q_h K_h^\top"
SCALED = r"\hat S = S / \sqrt{d_k}"
NOT_MASKED = r"\tilde S = \hat S"
MASK = r"M_{qk} = 1 \text{ if } q \text{ may attend to } k \text{, else } 0"
MASKED = r"\tilde S_{qk} = \hat S_{qk} \text{ if } M_{qk} = 1 \text{, else } {-\infty}"
SOFTMAX = r"A_{qk} = \frac{e^{\tilde S_{qk}}}{\sum_j e^{\tilde S_{qj}}}"
MASKED_SOFTMAX = rf"{SOFTMAX} \text{{, or }} 0 \text{{ if no key is left}}"
DROPPED = r"\tilde A = \operatorname{dropout}(A)"
CONTEXT = r"C_h = A V_h"
DROPPED_CONTEXT = r"C_h = \tilde A V_h"
CONCAT = r"C = \operatorname{Concat}(C_1, \dots, C_H)"
NOT_PROJECTED = "Y = C"


FIRST_OF_QKV = r"Q = [Q \; K \; V]_{\text{first third}}"
SECOND_OF_QKV = r"K = [Q \; K \; V]_{\text{second third}}"
THIRD_OF_QKV = r"V = [Q \; K \; V]_{\text{last third}}"
FIRST_OF_KV = r"K = [K \; V]_{\text{first half}}"
SECOND_OF_KV = r"V = [K \; V]_{\text{second half}}"


def divided(divisor: float) -> str:
    """The scores over a given number."""
    return rf"\hat S = S / {divisor:g}"


def projections(*, bias: bool, output_bias: bool) -> Mapping[str, str]:
    """Of each linear layer of an attention, by the stage that it computes."""
    return {
        "q_proj": _linear("Q", "X_q", "Q", bias=bias),
        "k_proj": _linear("K", "X_k", "K", bias=bias),
        "v_proj": _linear("V", "X_v", "V", bias=bias),
        "output": _linear("Y", "C", "O", bias=output_bias),
    }


def fused(*, bias: bool) -> Mapping[str, str]:
    """Of one matrix for queries, keys and values, and of its parts, by the stage."""
    return {
        "qkv": _linear(r"[Q \; K \; V]", "X", "QKV", bias=bias),
        "kv": _linear(r"[K \; V]", "X_k", "KV", bias=bias),
        "q_proj": _linear("Q", "X_q", "Q", bias=bias),
        "k_proj": _linear("K", "X_k", "K", bias=bias),
        "v_proj": _linear("V", "X_v", "V", bias=bias),
    }


def _linear(result: str, entering: str, name: str, *, bias: bool) -> str:
    return f"{result} = {entering} W^{{{name}}}" + (f" + b^{{{name}}}" if bias else "")
