"""The formula of each stage as LaTeX, in the symbols of "Attention Is All You Need", as computed in a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from model.positional_encoding import LearnedPositions, NoPositions
from visualizer.runs.run import Run
from visualizer.stages.checks import dropout_in
from visualizer.stages.explanations import fused_stage, is_pre_norm, kind_of
from visualizer.stages.facts import sublayer_output
from visualizer.stages.operands import operands_of


def formula_of(run: Run, path: str) -> str:
    """The formula of the stage at ``path``; empty where nobody has written one."""
    formula = FORMULAS.get((kind_of(run.trace, path), run.trace[path].name.rstrip("0123456789")), "")
    return formula if isinstance(formula, str) else formula(run, path)


def _linear(result: str, entering: str, matrix: str, bias: str) -> Callable[[Run, str], str]:
    """A product with a matrix, and a bias where the model adds one."""

    def write(run: Run, path: str) -> str:
        signs = [operand.operator for operand in operands_of(run, path)]
        return f"{result} = {entering} {matrix}" + (f" + {bias}" if "+" in signs else "")

    return write


def _projection(letter: str, entering: str) -> Callable[[Run, str], str]:
    """A projection of its own, or a part of one that serves several."""
    alone = _linear(letter, entering, f"W^{{{letter}}}", f"b^{{{letter}}}")

    def write(run: Run, path: str) -> str:
        fused = fused_stage(run.trace, path)
        return f"{letter} = {_PARTS[fused, letter]}" if fused else alone(run, path)

    return write


_PARTS = {
    ("qkv", "Q"): r"[Q \; K \; V]_{\text{first third}}",
    ("qkv", "K"): r"[Q \; K \; V]_{\text{second third}}",
    ("qkv", "V"): r"[Q \; K \; V]_{\text{last third}}",
    ("kv", "K"): r"[K \; V]_{\text{first half}}",
    ("kv", "V"): r"[K \; V]_{\text{second half}}",
}


def _heads(letter: str, sizes: str) -> Callable[[Run, str], str]:
    """The columns of a head, or what is given as it is."""

    def write(run: Run, path: str) -> str:
        is_given = f"{path}_proj" not in run.trace
        return (
            rf"{letter} \in \mathbb{{R}}^{{{sizes}}}"
            if is_given
            else rf"{letter}_h = {letter}[:, \text{{head }} h]"
        )

    return write


def _beside(name: str, with_it: str, without: str) -> Callable[[Run, str], str]:
    """One formula where the same module has a stage of another name, else another."""

    def write(run: Run, path: str) -> str:
        return with_it if path.removesuffix(run.trace[path].name) + name in run.trace else without

    return write


def _attention_output(run: Run, path: str) -> str:
    if len(operands_of(run, path)) == 1:
        return "Y = C"
    return _linear("Y", "C", "W^{O}", "b^{O}")(run, path)


def _scaled_scores(run: Run, path: str) -> str:
    is_scaled = run.scales_scores(run.trace[path].module_path)
    return r"\hat S = S / \sqrt{d_k}" if is_scaled else r"\hat S = S / 1"


def _activation(run: Run, path: str) -> str:
    if run.activation(path) == "relu":
        return r"a = \operatorname{ReLU}(h) = \max(0, h)"
    return r"a = \operatorname{GELU}(h) = h \, \Phi(h)"


def _residual(run: Run, path: str) -> str:
    sublayer = sublayer_output(run, path).split(".")[-2].title().replace("_", "")
    entering = r"\operatorname{norm}(x)" if is_pre_norm(run.trace, run.trace[path].module_path) else "x"
    found = rf"\operatorname{{{sublayer}}}({entering})"
    is_dropped = operands_of(run, path)[-1].source.rpartition(".")[2].startswith("dropped_output")
    return rf"x' = x + \operatorname{{dropout}}({found})" if is_dropped else f"x' = x + {found}"


def _positional_encoding(run: Run, path: str) -> str:
    positions = getattr(run.model.get_submodule(run.trace[path].module_path), "positions", None)
    if isinstance(positions, LearnedPositions):
        return r"P_t = W_P[t]"
    return r"P_t = 0" if isinstance(positions, NoPositions) else _SINUSOIDS


def _embedded(run: Run, path: str) -> str:
    is_dropped = dropout_in(run.model, run.trace[path].module_path) > 0
    return r"x = \operatorname{dropout}(\hat E + P)" if is_dropped else r"x = \hat E + P"


_SINUSOIDS = (
    r"\begin{aligned} P_{t,2i} &= \sin (t / 10000^{2i/d}) \\ "
    r"P_{t,2i+1} &= \cos (t / 10000^{2i/d}) \end{aligned}"
)
_SOFTMAX = r"A_{qk} = \frac{e^{\tilde S_{qk}}}{\sum_j e^{\tilde S_{qj}}}"

FORMULAS: Mapping[tuple[str, str], str | Callable[[Run, str], str]] = {
    ("inputs", "embedding"): r"E = W_E[\text{id}]",
    ("inputs", "scaled_embedding"): r"\hat E = \sqrt{d_{model}} \, E",
    ("inputs", "positional_encoding"): _positional_encoding,
    ("inputs", "embedded"): _embedded,
    ("attention", "query_input"): r"X_q \in \mathbb{R}^{T_q \times d_{model}}",
    ("attention", "key_input"): r"X_k \in \mathbb{R}^{T_k \times d_{model}}",
    ("attention", "value_input"): r"X_v \in \mathbb{R}^{T_k \times d_{model}}",
    ("attention", "qkv"): _linear(r"[Q \; K \; V]", "X", "W^{QKV}", "b^{QKV}"),
    ("attention", "kv"): _linear(r"[K \; V]", "X_k", "W^{KV}", "b^{KV}"),
    ("attention", "q_proj"): _projection("Q", "X_q"),
    ("attention", "k_proj"): _projection("K", "X_k"),
    ("attention", "v_proj"): _projection("V", "X_v"),
    ("attention", "q"): _heads("Q", r"T_q \times d_k"),
    ("attention", "k"): _heads("K", r"T_k \times d_k"),
    ("attention", "v"): _heads("V", r"T_k \times d_v"),
    ("attention", "scores"): r"S = Q_h K_h^\top",
    ("attention", "scaled_scores"): _scaled_scores,
    ("attention", "mask"): r"M_{qk} = 1 \text{ if } q \text{ may attend to } k \text{, else } 0",
    ("attention", "masked_scores"): _beside(
        "mask",
        r"\tilde S_{qk} = \hat S_{qk} \text{ if } M_{qk} = 1 \text{, else } {-\infty}",
        r"\tilde S = \hat S",
    ),
    ("attention", "weights"): _beside(
        "mask", rf"{_SOFTMAX} \text{{, or }} 0 \text{{ if no key is left}}", _SOFTMAX
    ),
    ("attention", "dropped_weights"): r"\tilde A = \operatorname{dropout}(A)",
    ("attention", "context"): _beside("dropped_weights", r"C_h = \tilde A V_h", r"C_h = A V_h"),
    ("attention", "concat"): r"C = \operatorname{Concat}(C_1, \dots, C_H)",
    ("attention", "output"): _attention_output,
    ("feed_forward", "input"): r"x \in \mathbb{R}^{T \times d_{model}}",
    ("feed_forward", "hidden"): r"h = x W_1 + b_1",
    ("feed_forward", "activation"): _activation,
    ("feed_forward", "dropped_activation"): r"\tilde a = \operatorname{dropout}(a)",
    ("feed_forward", "output"): _beside("dropped_activation", r"y = \tilde a W_2 + b_2", r"y = a W_2 + b_2"),
    ("layer", "dropped_output"): r"\tilde y = \operatorname{dropout}(y)",
    ("layer", "residual"): _residual,
    ("layer", "norm"): (
        r"\operatorname{LayerNorm}(x) = \gamma \, \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta"
    ),
    ("model", "norm"): r"x' = \operatorname{LayerNorm}(x)",
    ("model", "logits"): _linear("Z", "x", "W_U", "b_U"),
    ("model", "probabilities"): r"p_{tv} = \frac{e^{Z_{tv}}}{\sum_w e^{Z_{tw}}}",
    ("model", "positional_encoding"): _SINUSOIDS,
}
"""The formula of each kind of stage, as a function where it varies."""
