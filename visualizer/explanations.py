"""One plain-language text per stage, and the line of PyTorch that computed it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from model import Stage, Trace
from visualizer.colors import Role
from visualizer.dataflow import fused_stage, is_pre_norm, kind_of


@dataclass(frozen=True)
class Explanation:
    """What a person is told about a stage.

    Attributes:
        title: its name in words.
        role: its colour.
        text: two or three plain sentences.
    """

    title: str
    role: Role
    text: str


@dataclass(frozen=True)
class CodeLine:
    """The expression that computed a stage, and where it stands."""

    code: str
    place: str


def explain(trace: Trace, path: str) -> Explanation:
    """The explanation of the stage at ``path``."""
    module, _, name = path.rpartition(".")
    kind = kind_of(trace, path)
    if name in ("query_input", "key_input", "value_input") and _is_cross_attention(trace, module):
        name = f"cross_{name}"
    if name in ("q", "k", "v") and f"{module}.{name}_proj" not in trace:
        name = f"given_{name}"
    if fused_stage(trace, path):
        name = f"part_{name}"
    if (kind, name) == ("model", "norm") and not is_pre_norm(trace, f"{module}.layers.0"):
        name = "final_norm"
    return EXPLANATIONS[kind, name.rstrip("0123456789")]


def _is_cross_attention(trace: Trace, module: str) -> bool:
    return trace[f"{module}.query_input"].value is not trace[f"{module}.key_input"].value


def head_note(name: str, masks: tuple[str, ...], *, is_cross: bool) -> str:
    """Where a hand-built head cannot do what its name says, in one sentence; empty where it can everywhere.

    Args:
        name: one of ``hand_built_names``, or empty.
        masks: the names of the masks of its attention.
        is_cross: whether it attends from the target to the source.
    """
    if name.endswith(")"):  # its name says what the model lacks for it
        return "The model lacks what this head needs, so it gives every allowed key the same weight."
    target = _target(name)
    if target == "ahead" and "causal" in masks:
        return f"The causal mask blocks what “{name}” looks for, so its weight falls on what is left."
    reasons = [_MISSING[target, is_cross]] if (target, is_cross) in _MISSING else []
    if not _BLOCKERS.get(target, frozenset()).isdisjoint(masks):
        reasons.append("a mask blocks what it looks for")
    return f"Where {' or '.join(reasons)}, the weight of “{name}” falls elsewhere." if reasons else ""


def _target(name: str) -> str:
    """What a head looks for, with all distances ahead, and all back, as one."""
    last = name.rpartition(" ")[2]
    return {"next token": "ahead", "previous token": "back"}.get(name, last if last in ("ahead", "back") else name)


_MISSING = {
    ("ahead", False): "there is nothing that far ahead",
    ("back", False): "there is nothing that far back",
    ("ahead", True): "the source has no token at that place",
    ("back", True): "the source has no token at that place",
    ("itself", True): "the source has no token at that place",
    ("same token", True): "the source has no equal token",
}
"""What there may be none of, by what a head looks for and whether in cross-attention."""

_BLOCKERS = {
    "ahead": frozenset({"prefix", "padding", "sliding_window", "strided", "custom"}),
    "back": frozenset({"padding", "sliding_window", "strided", "custom"}),
    "first token": frozenset({"sliding_window", "strided", "custom"}),
    "itself": frozenset({"padding", "custom"}),
    "same token": frozenset({"padding", "custom"}),
}
"""The masks that may block what a head looks for."""


def code_line(stage: Stage) -> CodeLine:
    """The line of PyTorch that computed a stage, read from the source where the stage was tapped."""
    file, line = stage.location
    for call in _tap_calls(file):
        end = call.end_lineno or call.lineno
        if call.lineno <= line <= end and _tap_name(call) == stage.name:
            expression = ast.unparse(call.args[1])
            return CodeLine(f"{stage.name} = {expression}", f"model/{Path(file).name}, line {call.lineno}")
    return CodeLine(stage.name, f"model/{Path(file).name}, line {line}")


@cache
def _tap_calls(file: str) -> tuple[ast.Call, ...]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) >= 2)


def _tap_name(call: ast.Call) -> str | None:
    named_tap = (isinstance(call.func, ast.Name) and call.func.id == "tap") or (
        isinstance(call.func, ast.Attribute) and call.func.attr == "tap"
    )
    first = call.args[0]
    return str(first.value) if named_tap and isinstance(first, ast.Constant) else None


EXPLANATIONS: dict[tuple[str, str], Explanation] = {
    ("inputs", "embedding"): Explanation(
        "Token embedding",
        "residual",
        "Each token's id picks one row of a table with one vector per token of the vocabulary. Equal tokens get "
        "equal vectors: nothing here knows where a token stands. In a trained model the table is learned.",
    ),
    ("inputs", "scaled_embedding"): Explanation(
        "Scaled embedding",
        "residual",
        "The embeddings are multiplied by √d_model, as in section 3.4 of the paper. The entries of such a table "
        "are usually about 1/√d_model in size, and this brings them to the size of the positions.",
    ),
    ("inputs", "positional_encoding"): Explanation(
        "Positional encoding",
        "residual",
        "Attention without a mask does not see order, so every position gets a vector of its own. In the paper "
        "these are sines and cosines, fast ones on the left and slow ones on the right; they can be a learned "
        "table instead, or be left out, which is all zeros.",
    ),
    ("inputs", "embedded"): Explanation(
        "Embedding plus position",
        "residual",
        "The sum of what a token is and, unless positions are left out, where it stands. "
        "Here the residual stream begins: every sub-layer reads it and adds its output to it.",
    ),
    ("attention", "query_input"): Explanation(
        "Input of the queries",
        "residual",
        "The vectors that ask. In self-attention the same tensor also serves the keys and the values.",
    ),
    ("attention", "key_input"): Explanation(
        "Input of the keys",
        "residual",
        "The vectors that are looked up. In self-attention this is the very tensor that the queries come from.",
    ),
    ("attention", "value_input"): Explanation(
        "Input of the values",
        "residual",
        "The vectors whose content is passed on. In self-attention this is the same tensor once more.",
    ),
    ("attention", "cross_query_input"): Explanation(
        "Input of the queries",
        "residual",
        "The vectors that ask. In cross-attention they are those of the target, in a Transformer the decoder's "
        "own: each target token asks about the source.",
    ),
    ("attention", "cross_key_input"): Explanation(
        "Input of the keys",
        "residual",
        "The vectors that are looked up. In cross-attention they are those of the source, in a Transformer "
        "the encoder's output, one for each source token.",
    ),
    ("attention", "cross_value_input"): Explanation(
        "Input of the values",
        "residual",
        "The vectors whose content is passed on. In cross-attention they are those of the source, in a Transformer "
        "the encoder's output once more.",
    ),
    ("attention", "qkv"): Explanation(
        "Queries, keys and values in one",
        "neutral",
        "One matrix makes queries, keys and values at once: it holds the three matrices side by side, and so does "
        "its result. One large product is faster than three, and gives the same numbers. Most code is written so; "
        "in nn.MultiheadAttention the matrix is in_proj_weight.",
    ),
    ("attention", "kv"): Explanation(
        "Keys and values in one",
        "neutral",
        "Two thirds of the one matrix for queries, keys and values make the keys and values of the source in one "
        "product. The queries come from the other sequence, so they have a product of their own, with the first "
        "third. nn.MultiheadAttention does the same.",
    ),
    ("attention", "part_q_proj"): Explanation(
        "Query projection",
        "query",
        "The first columns of the product that made keys and values too: for the token of each row its query, what "
        "it looks for, for all heads at once. Nothing is computed. Each head owns a block of neighbouring columns.",
    ),
    ("attention", "part_k_proj"): Explanation(
        "Key projection",
        "key",
        "The columns before those of the values, of the product that made both: for the token of each row its key, "
        "what it is found by, for all heads at once. Nothing is computed. Each head owns a block of neighbouring "
        "columns.",
    ),
    ("attention", "part_v_proj"): Explanation(
        "Value projection",
        "value",
        "The last columns of the product that made the keys too: for the token of each row its value, what it "
        "hands over when it is attended to, for all heads at once. Nothing is computed. Each head owns a block of "
        "neighbouring columns.",
    ),
    ("attention", "q_proj"): Explanation(
        "Query projection",
        "query",
        "One linear layer turns the vector of every token that asks into its query, what it looks for, for all "
        "heads at once. Each head owns a block of neighbouring columns.",
    ),
    ("attention", "k_proj"): Explanation(
        "Key projection",
        "key",
        "One linear layer turns the vector of every token into its key, what it is found by, for all heads at "
        "once. Each head owns a block of neighbouring columns.",
    ),
    ("attention", "v_proj"): Explanation(
        "Value projection",
        "value",
        "One linear layer turns the vector of every token into its value, what it hands over when it is attended "
        "to, for all heads at once. Each head owns a block of neighbouring columns.",
    ),
    ("attention", "q"): Explanation(
        "Queries per head",
        "query",
        "The projection cut into heads. Nothing is computed: the same numbers, with an axis for the head. "
        "Row t is what token t asks in this head.",
    ),
    ("attention", "k"): Explanation(
        "Keys per head",
        "key",
        "The projection cut into heads. Row t is what token t offers to be found by in this head.",
    ),
    ("attention", "v"): Explanation(
        "Values per head",
        "value",
        "The projection cut into heads. Row t is what token t passes on in this head.",
    ),
    ("attention", "given_q"): Explanation(
        "Queries",
        "query",
        "The queries, given as they are: this attention has no projections. Row t is what token t looks for.",
    ),
    ("attention", "given_k"): Explanation(
        "Keys",
        "key",
        "The keys, given as they are: this attention has no projections. Row t is what token t is found by.",
    ),
    ("attention", "given_v"): Explanation(
        "Values",
        "value",
        "The values, given as they are: this attention has no projections. Row t is what token t passes on.",
    ),
    ("attention", "scores"): Explanation(
        "Scores",
        "weights",
        "One dot product for every query (row) and every key (column): how well the two fit. Only differences "
        "within a row will matter: of the keys that are not blocked, the one with the largest score gets the "
        "largest weight.",
    ),
    ("attention", "scaled_scores"): Explanation(
        "Scaled scores",
        "weights",
        "Dot products of random vectors grow with √d_k, and where scores are large the softmax has almost no "
        "gradient. Dividing by √d_k makes up for it, so that wide heads score like narrow ones; with scaling off "
        "the scores stay as they are.",
    ),
    ("attention", "mask"): Explanation(
        "Mask",
        "weights",
        "Which query (row) may attend to which key (column): hatched cells are blocked, and several masks combine "
        "with and. True (1) = may attend, as in F.scaled_dot_product_attention; attn_mask and key_padding_mask of "
        "nn.MultiheadAttention mean the opposite, True = blocked.",
    ),
    ("attention", "masked_scores"): Explanation(
        "Masked scores",
        "weights",
        "Blocked cells become minus infinity, so that the softmax gives them exactly zero. "
        "The others stay as they are, and so do all where there is no mask.",
    ),
    ("attention", "weights"): Explanation(
        "Attention weights",
        "weights",
        "The softmax turns each row of scores into shares that sum to one: how much of its attention "
        "a query (row) gives to each key (column). A query with no key left gets a row of exact zeros.",
    ),
    ("attention", "dropped_weights"): Explanation(
        "Weights after dropout",
        "weights",
        "In training, dropout sets some weights to zero at random and divides the others by 1 - p. "
        "A row then sums to one only on average. Set dropout to 0 to see the model as it is used.",
    ),
    ("attention", "context"): Explanation(
        "Context",
        "value",
        "For each query, the mixture of all values in the proportions of its weights. "
        "Here information moves from one token to another, and nowhere but in an attention does it do so.",
    ),
    ("attention", "concat"): Explanation(
        "Heads side by side",
        "value",
        "The contexts of all heads laid next to each other in one row per token. Nothing is computed.",
    ),
    ("attention", "output"): Explanation(
        "Attention output",
        "residual",
        "The output projection mixes what the heads found and gives it the width of the residual stream. "
        "An attention without that projection puts out the heads side by side.",
    ),
    ("feed_forward", "input"): Explanation(
        "Input of the feed-forward network",
        "residual",
        "The vectors that enter, one per token. Each will be treated by itself.",
    ),
    ("feed_forward", "hidden"): Explanation(
        "Hidden layer",
        "feed_forward",
        "Each token by itself is spread over d_ff hidden units. The same matrix serves every position, "
        "and no token sees another here.",
    ),
    ("feed_forward", "activation"): Explanation(
        "Activation",
        "feed_forward",
        "ReLU cuts negative units to zero, GELU does nearly so with a smooth bend. "
        "Without it two linear layers would be no more than one.",
    ),
    ("feed_forward", "dropped_activation"): Explanation(
        "Activation after dropout",
        "feed_forward",
        "In training, dropout sets some hidden units to zero at random and divides the others by 1 - p. "
        "Set dropout to 0 to see the model as it is used.",
    ),
    ("feed_forward", "output"): Explanation(
        "Feed-forward output",
        "feed_forward",
        "A second linear layer mixes the hidden units back into the width of the residual stream.",
    ),
    ("layer", "residual"): Explanation(
        "Residual addition",
        "residual",
        "What the sub-layer found is added to the residual stream, x. "
        "So information and gradients also have a way around every sub-layer.",
    ),
    ("layer", "norm"): Explanation(
        "Layer norm",
        "residual",
        "Each token's vector is shifted to mean zero and scaled to variance one, then multiplied by γ and shifted "
        "by β, which training learns. What comes next reads vectors of like size, whatever was added before.",
    ),
    ("model", "norm"): Explanation(
        "Last layer norm",
        "residual",
        "With pre-norm the sums of the residual stream are never normalised themselves, "
        "so one more norm stands after the last layer.",
    ),
    ("model", "final_norm"): Explanation(
        "Last layer norm",
        "residual",
        "The last layer has just normalised its sum, and one norm more follows, as in nn.Transformer. "
        "Until training gives either of the two other γ and β, it changes nothing but what ε and rounding do.",
    ),
    ("model", "logits"): Explanation(
        "Logits",
        "neutral",
        "The last vectors times one column per token of the vocabulary: a score for every possible token "
        "at every position.",
    ),
    ("model", "probabilities"): Explanation(
        "Probabilities",
        "neutral",
        "A softmax over the vocabulary. Each row sums to one.",
    ),
    ("model", "positional_encoding"): Explanation(
        "Sinusoidal positions",
        "residual",
        "Row t is the vector of position t: sines in the even columns, cosines in the odd ones, "
        "each pair slower than the one before.",
    ),
}
