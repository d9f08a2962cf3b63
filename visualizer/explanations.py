"""One plain-language text per stage, and the line of PyTorch that computed it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from model import Stage, Trace
from visualizer.colors import Role
from visualizer.dataflow import kind_of


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
    name = path.rpartition(".")[2]
    kind = kind_of(trace, path)
    if kind == "attention" and name in ("query_input", "key_input", "value_input") and "cross" in path:
        name = f"cross_{name}"
    return EXPLANATIONS[kind, name.rstrip("0123456789")]


def head_note(name: str, masks: tuple[str, ...], *, is_cross: bool) -> str:
    """Where a hand-built head cannot do what its name says, in one sentence; empty where it can everywhere."""
    if name.endswith("ahead") or name == "next token":
        if "causal" in masks:
            return f"The causal mask blocks what “{name}” looks for, so its weight falls on what is left."
        return f"The last tokens have nothing that far ahead: there the weight of “{name}” falls elsewhere."
    if name.endswith("back") or name == "previous token":
        return f"The first tokens have nothing that far back: there the weight of “{name}” falls elsewhere."
    if name == "same token" and is_cross:
        return (
            "Where the source has no equal token, the weight of “same token” falls on those with the nearest codes."
        )
    return ""


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
        "Each token's id picks one row of a table with one vector per word of the vocabulary. "
        "Equal tokens get equal vectors: nothing here knows where a token stands.",
    ),
    ("inputs", "scaled_embedding"): Explanation(
        "Scaled embedding",
        "residual",
        "The embeddings are multiplied by √d_model (section 3.4 of the paper), "
        "so that the positions added next do not drown them.",
    ),
    ("inputs", "positional_encoding"): Explanation(
        "Positional encoding",
        "residual",
        "Attention alone does not see order, so every position gets a vector of its own. "
        "In the paper these are sines and cosines, fast ones on the left and slow ones on the right.",
    ),
    ("inputs", "embedded"): Explanation(
        "Embedding plus position",
        "residual",
        "The sum of what a token is and where it stands. "
        "This is the residual stream: every layer from here on reads it and adds to it.",
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
        "In cross-attention the queries come from the decoder: each target token asks about the source.",
    ),
    ("attention", "cross_key_input"): Explanation(
        "Input of the keys",
        "residual",
        "In cross-attention the keys come from the encoder's output, one for each source token.",
    ),
    ("attention", "cross_value_input"): Explanation(
        "Input of the values",
        "residual",
        "In cross-attention the values come from the encoder's output, the same tensor as the keys' input.",
    ),
    ("attention", "q_proj"): Explanation(
        "Query projection",
        "query",
        "One matrix turns every token into its question, for all heads at once. "
        "Each head owns a block of neighbouring columns.",
    ),
    ("attention", "k_proj"): Explanation(
        "Key projection",
        "key",
        "One matrix turns every token into the key it is found by, for all heads at once.",
    ),
    ("attention", "v_proj"): Explanation(
        "Value projection",
        "value",
        "One matrix turns every token into the value it hands over when it is attended to, for all heads at once.",
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
    ("attention", "scores"): Explanation(
        "Scores",
        "weights",
        "Every query times every key: a dot product says how well the two fit. "
        "Only differences within a row matter later: the key with the largest score gets the largest weight.",
    ),
    ("attention", "scaled_scores"): Explanation(
        "Scaled scores",
        "weights",
        "A dot product of d_k terms grows with √d_k, and large scores would leave the softmax almost no gradient. "
        "Dividing by √d_k keeps them at one size, whatever the width of a head.",
    ),
    ("attention", "mask"): Explanation(
        "Mask",
        "weights",
        "Which query may attend to which key: hatched cells are blocked, and pointing at one says by what. "
        "Several masks combine with and. True (1) means may attend, as in F.scaled_dot_product_attention; "
        "in nn.MultiheadAttention True means the opposite, blocked.",
    ),
    ("attention", "masked_scores"): Explanation(
        "Masked scores",
        "weights",
        "Blocked cells become minus infinity, so that the softmax gives them exactly zero. "
        "The others stay as they are.",
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
        "In training, dropout sets some weights to zero at random and scales the others up by 1 / (1 - p). "
        "Rows no longer sum to one, only on average. Set dropout to 0 to see the model as it is used.",
    ),
    ("attention", "context"): Explanation(
        "Context",
        "value",
        "For each query, the mixture of all values in the proportions of its weights. "
        "This is where information moves from one token to another, and the only place where it does.",
    ),
    ("attention", "concat"): Explanation(
        "Heads side by side",
        "value",
        "The contexts of all heads laid next to each other in one row per token. Nothing is computed.",
    ),
    ("attention", "output"): Explanation(
        "Attention output",
        "residual",
        "The output projection mixes what the heads found and writes it in the width of the residual stream.",
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
        "ReLU cuts negative units to zero, GELU bends them towards it. "
        "Without this bend two linear layers would be no more than one.",
    ),
    ("feed_forward", "dropped_activation"): Explanation(
        "Activation after dropout",
        "feed_forward",
        "In training, dropout sets some hidden units to zero at random and scales the others up by 1 / (1 - p).",
    ),
    ("feed_forward", "output"): Explanation(
        "Feed-forward output",
        "feed_forward",
        "The active units are mixed back into the width of the residual stream.",
    ),
    ("layer", "residual"): Explanation(
        "Residual addition",
        "residual",
        "What the sub-layer found is added to what was there before. "
        "Because nothing is overwritten, information and gradients have a straight way through the whole model.",
    ),
    ("layer", "norm"): Explanation(
        "Layer norm",
        "residual",
        "Each token's vector is shifted to mean zero and scaled to variance one, then scaled and shifted "
        "by γ and β, which training would learn. It keeps the stream at one size from layer to layer.",
    ),
    ("model", "norm"): Explanation(
        "Last layer norm",
        "residual",
        "With pre-norm the residual stream itself is never normalised, so one more norm stands at the end.",
    ),
    ("model", "logits"): Explanation(
        "Logits",
        "neutral",
        "The last vectors times one column per word of the vocabulary: a score for every possible token "
        "at every position.",
    ),
    ("model", "probabilities"): Explanation(
        "Probabilities",
        "neutral",
        "A softmax over the vocabulary. Each row sums to one. The weights are not trained, "
        "so this shows how the output is computed and not what is good language.",
    ),
    ("model", "positional_encoding"): Explanation(
        "Sinusoidal positions",
        "residual",
        "Row t is the vector of position t: sines in the even columns, cosines in the odd ones, "
        "each pair slower than the one before.",
    ),
}
