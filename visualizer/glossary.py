"""Every symbol and every term of the page, explained in a sentence or two.

In the explanations ``[words]`` or ``[words](entry)`` stands for words that open an entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Entry:
    """One symbol or term.

    Attributes:
        name: in words, lower-case but for names; what opens it.
        text: one or two sentences. ``[words](entry)`` opens another entry.
        symbol: how formulas and shapes write it; empty for a term without one.
        size: the axis or number whose size in a run belongs to it, such as ``D``; empty for none.
        section: where "Attention Is All You Need" has it, or who else does; empty where nobody in particular.
        latex: how formulas write it in LaTeX, without spaces, braces and indices.
        also: other words that a person may look for.
    """

    name: str
    text: str
    symbol: str = ""
    size: str = ""
    section: str = ""
    latex: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class Piece(NamedTuple):
    """A part of a text, and the name of the entry that it opens; empty for plain words."""

    text: str
    entry: str = ""


def pieces(marked: str) -> tuple[Piece, ...]:
    """A text with marks as its parts."""
    found: list[Piece] = []
    end = 0
    for mark in _MARK.finditer(marked):
        found += [Piece(marked[end : mark.start()]), Piece(mark[1], mark[2] or mark[1].lower())]
        end = mark.end()
    return tuple(piece for piece in (*found, Piece(marked[end:])) if piece.text)


def shape_pieces(shape: str) -> tuple[Piece, ...]:
    """``(B H*Dh) = (1, 64)`` with each symbol of an axis as a part that opens its entry."""
    symbolic, equals, sizes = shape.partition(") = ")
    parts = [Piece(part, AXES.get(part, "")) for part in re.split(r"([A-Za-z]+)", symbolic) if part]
    return (*parts, Piece(equals + sizes)) if equals else (Piece(shape),)


def axes_in_words(shape: str) -> str:
    """``B batch, H heads`` for the symbols of the axes of a shape."""
    symbols = dict.fromkeys(re.findall(r"[A-Za-z]+", shape.partition(") = ")[0].rpartition("(")[2]))
    return ", ".join(f"{symbol} {AXES[symbol]}" for symbol in symbols if symbol in AXES)


def mask_piece(mask: str) -> Piece:
    """The name of a mask, such as ``sliding_window``, as words that open its entry."""
    return Piece("painted", "painted mask") if mask == "custom" else Piece(*[mask.replace("_", " ")] * 2)


def masks_explained() -> str:
    """What each mask does, as a list in Markdown."""
    names = ("causal", "padding", "sliding window", "prefix", "strided", "painted mask")
    said = ("".join(piece.text for piece in pieces(GLOSSARY[name].text)) for name in names)
    lines = (f"- **{name.capitalize()}**: {text}" for name, text in zip(names, said, strict=True))
    return "\n".join(("A query sees a key only where every mask chosen allows it.", "", *lines))


def entries_of_formula(latex: str) -> tuple[Entry, ...]:
    """The entries of the symbols of a formula, in order, each once.

    Raises:
        KeyError: no entry has one of them.
    """
    for written, name in _TOGETHER.items():
        latex = latex.replace(written, rf"\operatorname{{{name}}}")
    return tuple(dict.fromkeys(_BY_LATEX[symbol] for symbol in _symbols(_WORDS.sub(" ", latex))))


def _symbols(latex: str) -> Iterator[str]:
    """The symbols of a formula: with their indices where they mean something together, else one after the other."""
    for name, symbol, indices in _SYMBOL.findall(latex):
        if name:
            if name not in _ORDINARY:
                yield name
            continue
        parts = _INDEX.findall(indices)
        known = next((n for n in range(len(parts), -1, -1) if _bare(symbol, *parts[:n]) in _BY_LATEX), 0)
        if symbol not in _ORDINARY:
            yield _bare(symbol, *parts[:known])
        yield from _symbols(" ".join(parts[known:]))


def _bare(*latex: str) -> str:
    return re.sub(r"[{}\s]", "", "".join(latex))


_MARK = re.compile(r"\[([^\]]+)\](?:\(([^)]+)\))?")
_WORDS = re.compile(r"\\text\s*\{[^}]*\}|\\(?:begin|end)\{[^}]*\}")
_INDEX = re.compile(r"[_^](?:\{(?:[^{}]|\{[^{}]*\})*\}|\w|\\[A-Za-z]+)")
_SYMBOL = re.compile(
    r"\\operatorname\{(\w+)\}"
    r"|(\\(?:hat|tilde)\s*[A-Za-z]|\\[A-Za-z]+|[A-Za-z]'?)"
    rf"((?:{_INDEX.pattern})*)"
)
_TOGETHER = {r"\sqrt{d_k}": "scaling", r"\text{head } h": "head", r"\mathbb{R}": "R"}
"""What means something only as it is written, as the name of a function."""
_ORDINARY = (
    *(
        r"\in",
        r"\times",
        r"\frac",
        r"\sqrt",
        r"\dots",
        r"\max",
        r"\cdot",
        r"\left",
        r"\right",
        r"\lfloor",
        r"\rfloor",
    ),
    *(r"\le", r"\ge", r"\ne", r"\land", r"\lor", r"\lnot", r"\bmod"),
    *("max", "min", "tanh", "sigmoid", "exp", "log", "sqrt", "bucket", "causalbucket"),
)
"""Signs that mean what they mean everywhere."""


_AXIS_ENTRIES = (
    Entry(
        "batch",
        "How many [sequences](sequence) are computed at once, each as if it were alone.",
        symbol="B",
        size="B",
    ),
    Entry(
        "tokens",
        "How many [tokens](token) the [sequence] has.",
        symbol="T",
        size="T",
        latex=("T",),
        also=("sequence length",),
    ),
    Entry(
        "query tokens",
        "How many [queries](query) there are: one row of scores each.",
        symbol="Tq",
        size="Tq",
        latex=("T_q",),
    ),
    Entry(
        "key tokens",
        "How many [keys](key) there are: one column of scores each. In [self-attention] they are of the same "
        "tokens as the queries.",
        symbol="Tk",
        size="Tk",
        latex=("T_k",),
    ),
    Entry(
        "source tokens",
        "How many tokens the source has, which the [encoder] reads and [cross-attention] attends to.",
        symbol="S",
        size="S",
    ),
    Entry(
        "new tokens",
        "How many tokens a pass computes where a [key/value cache] holds the earlier ones.",
        symbol="Tn",
        size="Tn",
    ),
    Entry(
        "heads",
        "How many [heads](head) an attention has.",
        symbol="H",
        size="H",
        section="3.2.2",
        latex=("H",),
        also=("n_heads", "multi-head attention"),
    ),
    Entry(
        "model width",
        "How many numbers each token's vector has, everywhere in the [residual stream].",
        symbol="D",
        size="D",
        section="3.1",
        latex=("d_model", "d"),
        also=("d_model", "embedding size"),
    ),
    Entry(
        "head width",
        "How many numbers a [query], a [key] or a [value] has in one head: d_k and d_v. In the paper the model "
        "width divided by the number of heads.",
        symbol="Dh",
        size="Dh",
        section="3.2.2",
        latex=("d_v",),
        also=("head_dim", "d_k", "d_v"),
    ),
    Entry(
        "key width",
        "How many numbers a [query] and a [key] have: the same, so that they can be compared. Usually the [head "
        "width](head width).",
        symbol="Dk",
        size="Dk",
        section="3.2.1",
        latex=("d_k",),
        also=("d_k",),
    ),
    Entry(
        "output width",
        "How many numbers an attention puts out for each token, where that is not the [model width].",
        symbol="Do",
        size="Do",
        also=("d_out",),
    ),
    Entry(
        "feed-forward width",
        "How many [hidden units](hidden unit) the [feed-forward network] has; often four times the [model width].",
        symbol="F",
        size="F",
        section="3.3",
        also=("d_ff",),
    ),
    Entry(
        "vocabulary",
        "All tokens that the model knows, each with a number, its id.",
        symbol="V",
        size="V",
        also=("vocab_size",),
    ),
)
"""The axes of shapes, as everywhere on the page and in the code."""

_TENSORS = (
    Entry(
        "embedding",
        "The vector of a token before the model has looked at its neighbours: one row of a table.",
        symbol="E",
        section="3.4",
        latex=("E", "W_E"),
        also=("embedding table", "W_E"),
    ),
    Entry(
        "scaled embedding",
        "The [embedding] times √d_model, so that it is about as large as the [position](positional encoding) "
        "that is added.",
        symbol="Ê",
        section="3.4",
        latex=(r"\hatE",),
    ),
    Entry(
        "positional encoding",
        "A vector for each position, added to the [embedding], since [attention] by itself does not see order. "
        "The paper uses sines and cosines of many frequencies; a learned table is another choice.",
        symbol="P",
        section="3.5",
        latex=("P", "W_P", r"\sin", r"\cos"),
        also=("positions", "sinusoids", "sinusoidal", "learned positions", "W_P"),
    ),
    Entry(
        "residual stream",
        "One vector for each token that runs through all layers. Every sub-layer reads it and adds its output, "
        "so nothing is overwritten and gradients have a short way back.",
        symbol="x",
        size="D",
        section="3.1",
        latex=("x", "x'", "X", "X_q", "X_k", "X_v"),
        also=("residual", "residual connection", "skip connection", "x'", "X_q", "X_k", "X_v"),
    ),
    Entry(
        "query",
        "What a token looks for: a vector that is compared with every [key]. In the library: the reader's slip.",
        symbol="Q",
        size="Tq",
        section="3.2",
        latex=("Q", "Q_h"),
        also=("queries", "Q_h"),
    ),
    Entry(
        "key",
        "What a token is found by: a vector that every [query] is compared with. In the library: what stands on "
        "the spine of the book.",
        symbol="K",
        size="Tk",
        section="3.2",
        latex=("K", "K_h"),
        also=("keys", "K_h"),
    ),
    Entry(
        "value",
        "What a token hands over to those who attend to it: a vector. In the library: what stands in the book.",
        symbol="V",
        size="Tk",
        section="3.2",
        latex=("V", "V_h"),
        also=("values", "V_h"),
    ),
    Entry(
        "projection",
        "A [linear layer] that computes [queries](query), [keys](key) or [values](value) from the tokens' "
        "vectors, by one matrix each: W^Q, W^K, W^V. As one matrix, W^QKV, it is called fused.",
        symbol="W^Q W^K W^V",
        section="3.2.2",
        latex=("W^Q", "W^K", "W^V", "W^QKV", "W^KV"),
        also=("W^Q", "W^K", "W^V", "W^QKV", "query projection", "key projection", "value projection", "fused"),
    ),
    Entry(
        "bias",
        "A vector that a [linear layer] adds after its matrix.",
        symbol="b",
        latex=("b^Q", "b^K", "b^V", "b^O", "b^QKV", "b^KV", "b_1", "b_2", "b_U"),
        also=("b^Q", "b^K", "b^V", "b^O", "b_1", "b_2"),
    ),
    Entry(
        "scores",
        "How well each [query] fits each [key]: their [dot product].",
        symbol="S",
        section="3.2.1",
        latex=("S",),
        also=("attention scores", "QKᵀ"),
    ),
    Entry(
        "scaled scores",
        "The [scores] divided by √d_k.",
        symbol="Ŝ",
        section="3.2.1",
        latex=(r"\hatS",),
    ),
    Entry(
        "scaling",
        "Dividing the [scores] by √d_k. Dot products grow with the number of entries, and with large scores the "
        "[softmax] gives nearly everything to one key and has almost no gradient.",
        symbol="√d_k",
        size="Dk",
        section="3.2.1",
        latex=("scaling",),
        also=("scaled", "square root of d_k"),
    ),
    Entry(
        "modified scores",
        "The [scaled scores] after a chosen change: lowered by distance times a slope m of each [head] (ALiBi), "
        "changed by a number b of each head and range of distances (T5), or kept below a cap.",
        symbol="S'",
        latex=("S'", "m_h", "b"),
        also=("change of scores", "score_mod", "ALiBi", "relative bias", "soft cap"),
    ),
    Entry(
        "masked scores",
        "The [scaled scores] with minus infinity wherever the [mask] blocks, so that the [softmax] gives zero "
        "there.",
        symbol="S̃",
        section="3.2.3",
        latex=(r"\tildeS",),
    ),
    Entry(
        "mask",
        "Which [query] may attend to which [key], as yes or no. Here 1 means may attend; some libraries use 1 "
        "for blocked.",
        symbol="M",
        section="3.2.3",
        latex=("M",),
        also=("attention mask", "blocked"),
    ),
    Entry(
        "attention weights",
        "How much each [query] attends to each [key]: the [softmax] of a row of scores. Not the weights of the "
        "model, which are the numbers in its matrices.",
        symbol="A",
        section="3.2.1",
        latex=("A",),
        also=("weights", "weight", "attention pattern"),
    ),
    Entry(
        "weights after dropout",
        "The [attention weights] after [dropout], as in training.",
        symbol="Ã",
        section="5.4",
        latex=(r"\tildeA",),
    ),
    Entry(
        "context",
        "What a head computes for a token: the sum of all [values](value), each times its weight.",
        symbol="C",
        section="3.2.1",
        latex=("C", "C_h", "C_1", "C_H"),
        also=("C_h", "Concat", "weighted sum"),
    ),
    Entry(
        "concatenation",
        "The [contexts](context) of all [heads](head) side by side in one row per token.",
        symbol="Concat",
        section="3.2.2",
        latex=("Concat",),
    ),
    Entry(
        "output projection",
        "The [linear layer] after the heads, W^O: it mixes their results and gives them the width of the "
        "[residual stream](residual stream).",
        symbol="W^O",
        section="3.2.2",
        latex=("W^O",),
        also=("W^O",),
    ),
    Entry(
        "attention output",
        "What an [attention] computes for each token, to be added to the [residual stream].",
        symbol="Y",
        section="3.2.2",
        latex=("Y",),
    ),
    Entry(
        "hidden unit",
        "One number of the middle layer of the [feed-forward network].",
        symbol="h",
        size="F",
        section="3.3",
        latex=("h",),
        also=("hidden layer",),
    ),
    Entry(
        "feed-forward matrices",
        "W_1 turns a token's vector into [hidden units](hidden unit), W_2 turns them back.",
        symbol="W_1 W_2",
        section="3.3",
        latex=("W_1", "W_2"),
        also=("W_1", "W_2"),
    ),
    Entry(
        "activation",
        "A function of one number between two [linear layers](linear layer), which would otherwise be no more "
        "than one. Here [ReLU](relu) or [GELU](gelu).",
        symbol="a",
        section="3.3",
        latex=("a", r"\tildea"),
    ),
    Entry(
        "sub-layer output",
        "What a sub-layer, an [attention] or a [feed-forward network], computes for each token, to be added to "
        "the [residual stream].",
        symbol="y",
        section="3.1",
        latex=("y",),
        also=("feed-forward output",),
    ),
    Entry(
        "output after dropout",
        "A sub-layer's output after [dropout], in training.",
        symbol="ỹ",
        section="5.4",
        latex=(r"\tildey",),
    ),
    Entry(
        "γ and β",
        "Two learned vectors of [layer norm]: it multiplies by γ and adds β, one number for each column.",
        symbol="γ β",
        section="Ba et al. 2016",
        latex=(r"\gamma", r"\beta"),
        also=("gamma", "beta"),
    ),
    Entry(
        "mean and variance",
        "Of the numbers in one token's vector: μ is the mean, σ² the variance. [Layer norm](layer norm) brings "
        "them to 0 and 1.",
        symbol="μ σ²",
        section="Ba et al. 2016",
        latex=(r"\mu", r"\sigma^2"),
        also=("mu", "sigma"),
    ),
    Entry(
        "epsilon",
        "A tiny number that [layer norm] adds to the variance, so that it never divides by zero.",
        symbol="ε",
        size="epsilon",
        section="Ba et al. 2016",
        latex=(r"\varepsilon",),
    ),
    Entry(
        "logits",
        "A number for each token of the [vocabulary] at each position, before the [softmax]: the larger, the "
        "likelier.",
        symbol="Z",
        section="3.4",
        latex=("Z",),
        also=("logit",),
    ),
    Entry(
        "unembedding",
        "The last [linear layer]: one column for each token of the [vocabulary]. The paper reuses the "
        "[embedding] table.",
        symbol="W_U",
        section="3.4",
        latex=("W_U",),
        also=("W_U", "final linear layer", "lm head"),
    ),
    Entry(
        "probabilities",
        "The [softmax] of the [logits]: by the model, how likely each token of the [vocabulary] is, at each "
        "position.",
        symbol="p",
        section="3.4",
        latex=("p",),
    ),
    Entry(
        "transposed",
        "Rows become columns, and columns rows.",
        symbol="ᵀ",
        latex=(r"\top",),
        also=("transpose",),
    ),
    Entry(
        "exponential",
        "e ≈ 2.718 to the power of a number: never negative, and e times as much for every 1 more.",
        symbol="e",
        section="3.2.1",
        latex=("e",),
        also=("exp",),
    ),
    Entry("sum", "The sum over the index below it.", symbol="Σ", latex=(r"\sum",)),
    Entry(
        "minus infinity",
        "Less than every number. Its [exponential] is exactly 0, so a score of -∞ gets no weight.",
        symbol="-∞",
        section="3.2.3",
        latex=(r"\infty",),
        also=("-inf", "infinity"),
    ),
    Entry(
        "real numbers",
        "ℝ with two sizes above it: a matrix of numbers with that many rows and columns.",
        symbol="ℝ",
        latex=("R",),
        also=("R",),
    ),
    Entry(
        "index letters",
        "q is a query, k a key, j every key of a row, t a position, h a head, i a pair of columns, v a token of "
        "the vocabulary and w every one of them.",
        symbol="q k j …",
        latex=("q", "k", "j", "t", "i", "v", "w"),
        also=("index",),
    ),
)
"""What formulas name."""

_TERMS = (
    Entry(
        "token",
        "A piece of text that the model treats as one unit: a word, a character or a byte.",
        also=("word", "tokenizer"),
    ),
    Entry("sequence", "The tokens of one text, in order."),
    Entry(
        "Transformer",
        "A model of layers in which tokens exchange information by [attention] alone.",
        section="3",
    ),
    Entry(
        "attention",
        "How a token gets information from others: its [query] is compared with their [keys](key), a [softmax] "
        "turns the [scores] into weights, and the [values](value) are summed by these weights.",
        section="3.2",
    ),
    Entry(
        "self-attention",
        "[Attention](attention) in which the tokens of a text attend to each other.",
        section="3.2.3",
        latex=("SelfAttention",),
    ),
    Entry(
        "cross-attention",
        "[Attention](attention) from one text to another: the [queries](query) come from the target, the "
        "[keys](key) and [values](value) from the source.",
        section="3.2.3",
        latex=("CrossAttention",),
        also=("encoder-decoder attention",),
    ),
    Entry(
        "head",
        "One of several attentions side by side, each with its own [queries](query), [keys](key) and "
        "[values](value), so that each can look for something else.",
        size="H",
        section="3.2.2",
        latex=("head",),
        also=("attention head", "multi-head"),
    ),
    Entry(
        "softmax",
        "Turns a row of numbers into shares that sum to one: e to the power of each, divided by their sum.",
        section="3.2.1",
        also=("share",),
    ),
    Entry(
        "dot product",
        "Two vectors multiplied number by number, and summed: large where they point the same way.",
        section="3.2.1",
    ),
    Entry(
        "linear layer",
        "A vector times a matrix, and often a [bias] that is added. The same for every token.",
        also=("matrix", "nn.Linear"),
    ),
    Entry(
        "causal",
        "The [mask] of a model that writes: a token sees itself and earlier tokens, never later ones.",
        section="3.2.3",
        also=("causal mask", "look-ahead mask", "autoregressive"),
    ),
    Entry(
        "padding",
        "Tokens that only bring texts to one length. The padding [mask] hides them from every query.",
        also=("padding mask", "<pad>"),
    ),
    Entry(
        "sliding window",
        "A [mask] that leaves each query only the keys less than a given distance away.",
        size="window",
        section="Beltagy et al. 2020",
        also=("window", "local attention"),
    ),
    Entry(
        "prefix",
        "A [mask] under which all tokens see the first few, and later ones only causally.",
        size="prefix",
        section="Raffel et al. 2020",
        also=("prefix mask",),
    ),
    Entry(
        "strided",
        "A [mask] that leaves each query one key in so many, counted from itself.",
        size="stride",
        section="Child et al. 2019",
        also=("stride",),
    ),
    Entry(
        "painted mask",
        "Your own [mask]: painted cell by cell or written as an expression in the Mask lab, or given by a worked "
        "example.",
        also=("custom", "painted"),
    ),
    Entry(
        "feed-forward network",
        "Two [linear layers](linear layer) with an [activation] between them, for each token by itself.",
        size="F",
        section="3.3",
        latex=("FeedForward",),
        also=("FFN", "MLP"),
    ),
    Entry(
        "relu",
        "An [activation] that keeps positive numbers and makes all others zero.",
        symbol="ReLU",
        section="3.3",
        latex=("ReLU",),
    ),
    Entry(
        "gelu",
        "An [activation] like [ReLU](relu) with a smooth bend: x times Φ(x), where Φ is the cumulative normal "
        "distribution.",
        symbol="GELU",
        section="Hendrycks and Gimpel 2016",
        latex=("GELU", r"\Phi"),
    ),
    Entry(
        "layer norm",
        "Brings the numbers of each token's vector to mean zero and variance one, then multiplies by γ and adds β.",
        symbol="LayerNorm",
        section="3.1",
        latex=("LayerNorm", "norm"),
        also=("normalisation", "add & norm"),
    ),
    Entry(
        "post-norm",
        "[Layer norm](layer norm) after each sum of the [residual stream], as in the paper.",
        section="3.1",
    ),
    Entry(
        "pre-norm",
        "[Layer norm](layer norm) on the input of each sub-layer; the [residual stream] itself stays as it is.",
        section="Xiong et al. 2020",
    ),
    Entry(
        "dropout",
        "In training, numbers are set to zero at random and the others enlarged, so that the model does not rely "
        "on any one of them. In use it is off.",
        size="dropout",
        section="5.4",
        latex=("dropout",),
    ),
    Entry(
        "encoder",
        "The part of the model that reads: every token may attend to every other.",
        section="3.1",
    ),
    Entry(
        "decoder",
        "The part of the model that writes: each token attends to itself and earlier tokens, and by "
        "[cross-attention] to the source, if there is one.",
        section="3.1",
    ),
    Entry(
        "layer",
        "One [attention] and one [feed-forward network]; in a decoder with a source, two attentions. Layers are "
        "stacked.",
        size="layers",
        section="3.1",
    ),
    Entry(
        "teacher forcing",
        "In training the [decoder] reads the correct answer, shifted by one place, not what it wrote itself, so "
        "that all positions are learned at once.",
    ),
    Entry(
        "temperature",
        "The [logits] are divided by it before a token is drawn: below 1 likely tokens win more often, above 1 "
        "less often.",
    ),
    Entry(
        "greedy decoding",
        "Always taking the likeliest token.",
        also=("greedy",),
    ),
    Entry(
        "top-k and top-p",
        "Drawing only among the k likeliest tokens, or among the fewest that together reach probability p.",
        section="Holtzman et al. 2020",
        also=("nucleus sampling", "sampling", "top-p"),
    ),
    Entry(
        "beam search",
        "Continuing several texts at once and keeping the best few after every token.",
        section="6.1",
    ),
    Entry(
        "key/value cache",
        "The [keys](key) and [values](value) of earlier tokens, kept while a model writes: under a [causal] mask "
        "they never change.",
        also=("kv cache",),
    ),
    Entry(
        "entropy",
        "How widely a head spreads its attention: 0 where all of it is on one key, largest where all keys get "
        "the same.",
    ),
    Entry(
        "induction",
        "What a head does that finds an earlier place of the same token and attends to the token after it.",
        section="Olsson et al. 2022",
        also=("induction head",),
    ),
)

GLOSSARY: Mapping[str, Entry] = {entry.name: entry for entry in (*_AXIS_ENTRIES, *_TENSORS, *_TERMS)}
"""Every entry by its name."""

AXES: Mapping[str, str] = {entry.symbol: entry.name for entry in _AXIS_ENTRIES}
"""The entry of each axis of shapes by its symbol."""


_BY_LATEX = {latex: entry for entry in GLOSSARY.values() for latex in entry.latex}
