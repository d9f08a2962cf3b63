"""Operations that are one known step together: rotary positions, RMSNorm, a GELU that is written out, and others.

Each pattern is one entry of ``PATTERNS``. Its finder proposes operations by how they hang together. They get its
name only if they follow its formula: with other numbers in the place of what they read, in float64, and with the
numbers that were recorded. Where each operation is prescribed, it is enough that they give what was recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.graph import (
    NOT_COMPUTED,
    TOLERANCE,
    TYPES,
    Graph,
    Leaf,
    Proposal,
    Values,
    entering,
    in_float,
    number_in,
    other_than,
)
from headlight.stages import Stage
from model.dataflow import Node, Operation, StageInput

_ADDS, _SUBTRACTS = ("add", "iadd", "radd"), ("sub", "isub", "rsub", "subtract")
_MULTIPLIES, _DIVIDES = ("mul", "imul", "rmul", "multiply"), ("div", "truediv", "itruediv", "divide")
_JOINS = ("cat", "concat", "stack")
_PRODUCTS = ("matmul", "bmm", "mm", "baddbmm", "einsum", "scaled_dot_product_attention")
_ARITHMETIC = frozenset((*_ADDS, *_SUBTRACTS, *_MULTIPLIES, *_DIVIDES, "rtruediv", "neg", "pow", "rpow", "square"))
_POINTWISE = _ARITHMETIC | {"sqrt", "rsqrt", "reciprocal", "tanh", "erf", "exp", "sigmoid"}
_ROWWISE = _POINTWISE | {"mean", "sum", "var", "std"}


Finder = Callable[[Graph, Stage], Iterator[Proposal]]


@dataclass(frozen=True)
class Pattern:
    """A step that models write out in several operations.

    Attributes:
        name: its name in a path.
        title: its name in words.
        formula: in LaTeX, with the symbols of all that it can read.
        source: where it was published.
        ends: the operations that can be the last one.
        find: proposes operations that end at a stage.
    """

    name: str
    title: str
    formula: str
    source: str
    ends: frozenset[str]
    find: Finder = field(repr=False)


@dataclass(frozen=True, eq=False)
class Folded:
    """Operations of a pass that are one known step.

    Attributes:
        path: its name, that of the innermost module around all of them and of the pattern,
            ``layers.0.norm.rms_norm``.
        module: the path of that module.
        pattern: what they are.
        formula: that of the pattern, without what is not read here.
        stages: their paths, in the order computed; the last one is what they come to.
        inputs: what they read, by its symbol in the formula, as expressions over stages and parameters.
        numbers: the numbers in the formula, such as epsilon, by their symbols.
        difference: the largest difference from the formula, relative to the largest number; None where each
            operation is prescribed.
    """

    path: str
    module: str
    pattern: Pattern
    formula: str
    stages: tuple[str, ...]
    inputs: Mapping[str, Node]
    numbers: Mapping[str, float]
    difference: float | None


def find_patterns(stages: Mapping[str, Stage], parameters: Values) -> dict[str, Folded]:
    """Every pattern among the operations of a pass, by path, in the order computed. No two share an operation.

    Args:
        stages: the operations by path, in the order computed.
        parameters: the parameters that they name, as far as they are known.
    """
    graph = Graph(stages, parameters)
    found: list[tuple[Pattern, Proposal, float | None]] = []
    taken: set[str] = set()
    for stage in reversed(list(stages.values())):
        if stage.path in taken or stage.node is None or stage.value is None:
            continue
        named = _named(graph, stage, taken)
        if named is not None:
            found.append(named)
            taken.update(named[1].stages)
    return _with_paths(graph, reversed(found))


def _named(graph: Graph, stage: Stage, taken: set[str]) -> tuple[Pattern, Proposal, float | None] | None:
    """The pattern that ends at a stage, with its operations and how far they are from its formula."""
    for pattern in PATTERNS:
        if stage.operation not in pattern.ends:
            continue
        for proposal in _proposals(pattern, graph, stage):
            if not taken.intersection(proposal.stages) and graph.is_closed(proposal.stages):
                if proposal.expected is None:
                    if graph.are_unchanged(proposal.stages):
                        return pattern, proposal, None
                    continue
                difference = graph.difference(pattern.name, proposal)
                if difference is not None:
                    return pattern, proposal, difference
    return None


def _proposals(pattern: Pattern, graph: Graph, stage: Stage) -> Iterator[Proposal]:
    try:
        yield from pattern.find(graph, stage)
    except NOT_COMPUTED:
        return


def _with_paths(graph: Graph, found: Iterable[tuple[Pattern, Proposal, float | None]]) -> dict[str, Folded]:
    times: Counter[str] = Counter()
    patterns: dict[str, Folded] = {}
    for pattern, proposal, difference in found:
        module = _around([graph.stages[path].module for path in proposal.stages])
        base = f"{module}.{pattern.name}" if module else pattern.name
        path = base
        while path in patterns or path in graph.stages:
            times[base] += 1
            path = f"{base}_{times[base] + 1}"
        patterns[path] = Folded(
            path,
            module,
            pattern,
            proposal.formula or pattern.formula,
            proposal.stages,
            proposal.inputs,
            proposal.numbers,
            difference,
        )
    return patterns


def _around(modules: Sequence[str]) -> str:
    """The path of the innermost module around some."""
    first, last = min(modules).split("."), max(modules).split(".")
    n_shared = next((i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), None)
    return ".".join(first[:n_shared] if n_shared is not None else (first if len(first) < len(last) else last))


# Functions of each number alone.


def _function(function: Callable[[Tensor], Tensor], *needs: str) -> Finder:
    """Finds a function of each number, in which one of some operations must occur."""

    def find(graph: Graph, last: Stage) -> Iterator[Proposal]:
        for leaf, inside in graph.entries(last, _POINTWISE):
            if graph.operations(inside).intersection(needs):
                yield Proposal(inside, {"x": graph.read_as(leaf, inside)}, lambda values: function(values["x"]))

    return find


# Functions of a row of numbers.


def _norm(normalized: Callable[[Tensor, float], Tensor], formula: str) -> Finder:
    """Finds a norm, with what scales and shifts its result."""

    def find(graph: Graph, last: Stage) -> Iterator[Proposal]:
        for leaf, inside in graph.entries(last, _ROWWISE):
            if not graph.operations(inside).intersection(("mean", "sum", "var")):
                continue
            if _is_centred(graph, leaf):
                continue  # what is left of a LayerNorm
            scales = _scales(graph, last)
            nodes = [graph.stages[each].node for each in inside if graph.stages[each].operation in _ADDS]
            for epsilon in dict.fromkeys(number for node in nodes if (number := number_in(node)) is not None):

                def expected(values: Values, epsilon: float = epsilon) -> Tensor:
                    found = normalized(values["x"], epsilon)
                    found = found * values["g"] if "g" in values else found
                    return found + values["b"] if "b" in values else found

                inputs = {"x": graph.read_as(leaf, inside), **scales}
                whole = f"{_GAIN if 'g' in scales else ''}{formula}{_SHIFT if 'b' in scales else ''}"
                yield Proposal(inside, inputs, expected, {"epsilon": epsilon}, formula=whole)

    return find


_GAIN, _SHIFT = r"g \odot ", " + b"
_RMS = r"\frac{x}{\sqrt{\operatorname{mean}(x^2) + \epsilon}}"
_CENTRED = r"\frac{x - \operatorname{mean}(x)}{\sqrt{\operatorname{var}(x) + \epsilon}}"


def _is_centred(graph: Graph, leaf: Leaf) -> bool:
    """True if a mean was subtracted from it."""
    stage = graph.stage_of(leaf, *_SUBTRACTS)
    means = (graph.stage_of(part, "mean") for part in (stage.node.inputs if stage and stage.node else ()))
    return any(mean is not None for mean in means)


def _scales(graph: Graph, last: Stage) -> dict[str, Node]:
    """Find the gain ``g`` that the result of a norm is multiplied with, and the bias ``b`` then added to it."""
    found: dict[str, Node] = {}
    stage: Stage | None = last
    for symbol, operations in (("b", _ADDS), ("g", _MULTIPLIES)):
        if stage is None or stage.node is None or stage.operation not in operations:
            continue
        free = [part for part in stage.node.inputs if not entering(part)]
        if len(free) == 1 and (other := other_than(stage.node, free[0])) is not None:
            found[symbol] = free[0]
            stage = graph.stage_of(other)
    return found


def _rms_norm(x: Tensor, epsilon: float) -> Tensor:
    """Rows divided by the root of the mean of their squares."""
    return x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt()


def _layer_norm(x: Tensor, epsilon: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=epsilon)


# Rotary positions.

Pair = tuple[Tensor, Tensor]


def _rotary(apart: Callable[[Tensor], Pair], joined: Callable[[Tensor, Tensor], Tensor]) -> Finder:
    """Finds a rotation of pairs of numbers, whole rows at a time or one number of each pair after the other.

    Args:
        apart: gives the first and the second number of each pair, (..., Dh) to twice (..., Dh / 2).
        joined: what a model puts both together with.
    """

    def whole(values: Values) -> Tensor:
        first, second = apart(values["x"])
        quarter = joined(-second, first).reshape(values["x"].shape)
        return values["x"] * values["cos"] + quarter * values["sin"]

    def in_pieces(values: Values) -> Tensor:
        (first, second), cos, sin = apart(values["x"]), values["cos"], values["sin"]
        return joined(first * cos - second * sin, second * cos + first * sin)

    def is_in_pairs(values: Values) -> bool:
        pairs = (apart(values[name]) for name in ("cos", "sin"))
        return all(bool((first == second).all()) for first, second in pairs) and _turns(values)

    def find(graph: Graph, last: Stage) -> Iterator[Proposal]:
        for stages, inputs in _by_rows(graph, last):
            yield Proposal(stages, inputs, whole, holds=is_in_pairs)
        for stages, inputs in _by_pieces(graph, last):
            yield Proposal(stages, inputs, in_pieces, holds=_turns)

    return find


def _turns(values: Values) -> bool:
    """True if cosine and sine keep lengths, or scale all by one number, and are not the same at each position."""
    cos, sin = in_float(values["cos"]), in_float(values["sin"])
    length = cos.square() + sin.square()
    first = length.flatten()[0]
    exact = max(TOLERANCE, 8 * torch.finfo(values["cos"].dtype).eps)
    rows = torch.cat((cos, sin), -1).flatten(0, -2)
    differs = len(rows) == 1 or bool((rows != rows[0]).any())
    return differs and bool(((length - first).abs() <= exact * first).all())


def _by_rows(graph: Graph, last: Stage) -> Iterator[tuple[tuple[str, ...], dict[str, Node]]]:
    """x * cos + turned(x) * sin, as stages and what they read."""
    parts = [graph.stage_of(part, *_MULTIPLIES) for part in _parts(last, *_ADDS)]
    for straight, quarter in (parts, parts[::-1]) if len(parts) == 2 else ():
        for x, cos in _both_ways(straight):
            for turned, sin in _both_ways(quarter):
                inside = _quarter(graph, turned)
                if inside is not None and straight is not None and quarter is not None:
                    stages = graph.ordered(*inside, straight.path, quarter.path, last.path)
                    yield stages, {"x": x, "cos": cos, "sin": sin}


def _by_pieces(graph: Graph, last: Stage) -> Iterator[tuple[tuple[str, ...], dict[str, Node]]]:
    """x1 * cos - x2 * sin and x2 * cos + x1 * sin, put together, as stages and what they read."""
    parts = [graph.stage_of(_bare(part), *_SUBTRACTS, *_ADDS) for part in _parts(last, *_JOINS)]
    products = [graph.stage_of(each, *_MULTIPLIES) for part in parts for each in _parts(part)]
    if len(parts) != 2 or len(products) != 4:
        return
    inside = [stage.path for stage in (*parts, *products) if stage is not None]
    for piece, cos in _both_ways(products[0]):
        for other, sin in _both_ways(products[1]):
            if isinstance(piece, Operation) and isinstance(other, Operation) and len(inside) == 6:
                for x in _taken_from(piece):
                    yield graph.ordered(*inside, last.path), {"x": x, "cos": cos, "sin": sin}


def _taken_from(piece: Operation) -> Iterator[Node]:
    """Yield the expression that a piece is a part of, and the same before its pairs had an axis of their own."""
    (rows, *_) = piece.inputs
    yield rows
    if isinstance(rows, Operation) and rows.name in ("unflatten", "view", "reshape"):
        yield rows.inputs[0]


def _parts(stage: Stage | None, *operations: str) -> tuple[Node, ...]:
    """Return the inputs that a stage is computed from, if it is one of some operations."""
    if stage is None or stage.node is None or (operations and stage.operation not in operations):
        return ()
    return stage.node.inputs


def _both_ways(product: Stage | None) -> Iterator[tuple[Node, Node]]:
    """Two factors, in either order."""
    factors = _parts(product)
    if len(factors) == 2:
        yield from ((factors[0], factors[1]), (factors[1], factors[0]))


def _quarter(graph: Graph, node: Node) -> tuple[str, ...] | None:
    """The stages that take rows apart, change a sign, and put them together again; None where there are none."""
    joined = graph.stage_of(_before(node, "flatten", "reshape", "view"), *_JOINS)
    parts = [graph.stage_of(_bare(part), "neg") for part in _parts(joined)]
    negated = [part.path for part in parts if part is not None]
    return (joined.path, *negated) if joined is not None and (len(parts), len(negated)) == (2, 1) else None


def _bare(node: Node) -> Node:
    """An expression without the axes of size 1 that it was given."""
    return _before(node, "unsqueeze")


def _before(node: Node, *names: str) -> Node:
    """An expression before some operations and changes of its number type."""
    while isinstance(node, Operation) and node.name in (*names, *TYPES):
        node = node.inputs[0]
    return node


def _halves(x: Tensor) -> Pair:
    first, second = x.chunk(2, -1)
    return first, second


def _neighbours(x: Tensor) -> Pair:
    return x[..., ::2], x[..., 1::2]


# Heads.


def _repeated_heads(graph: Graph, last: Stage) -> Iterator[Proposal]:
    """Finds keys or values that several heads of queries read."""
    heads = graph.value(last.path)
    node = last.node
    if heads.dim() != 4 or not any(reader.operation in _PRODUCTS for reader in graph.readers(last.path)):
        return
    while isinstance(node, Operation) and node.name in (*_REPEATS, "expand", "getitem", "unsqueeze", *TYPES):
        before = node.inputs[0]
        shape = graph.compute(before, (), graph.recorded).shape
        if len(shape) == 4 and 0 < shape[1] < heads.shape[1] and not heads.shape[1] % shape[1]:
            times = heads.shape[1] // shape[1]
            repeated = partial(_each_times, times=times)
            yield Proposal((last.path,), {"h": before}, repeated, {"n": float(times)})
            return
        if not isinstance(before, Operation):
            return
        node = before


def _each_times(values: Values, times: int) -> Tensor:
    return values["h"].repeat_interleave(times, 1)


_REPEATS = ("reshape", "flatten", "repeat_interleave")


# Softmax over scores.


def _softmax(*, is_masked: bool) -> Finder:
    """Finds a softmax over the last axis, with what scales its scores, and what is then added or masks them."""

    def find(graph: Graph, last: Stage) -> Iterator[Proposal]:
        if last.node is None or _axis(last.node) not in (-1, graph.value(last.path).dim() - 1):
            return
        inside, inputs, scale, n_masks = [last.path], dict[str, Node](), 1.0, 0
        node = last.node.inputs[0]
        while (step := _changed_scores(graph, graph.stage_of(_unfolded(node), *_ADDS, *_FILLS))) is not None:
            path, node, other, symbol = step
            inside.append(path)
            n_masks += symbol != "B"
            inputs[_unused(symbol, inputs)] = other
        while (stage := graph.stage_of(_unfolded(node), *_MULTIPLIES, *_DIVIDES)) is not None:
            number = number_in(stage.node)
            if stage.node is None or not number or len(stage.node.inputs) != 1:
                break
            scale = scale * number if stage.operation in _MULTIPLIES else scale / number
            node = stage.node.inputs[0]
            inside.append(stage.path)
        if len(inside) > 1 and bool(n_masks) is is_masked and _are_scores(graph, node):
            numbers = {} if scale == 1.0 else {"c": scale}
            named = {"S": node, **dict(reversed(inputs.items()))}
            yield Proposal(graph.ordered(*inside), named, None, numbers, formula=_changed(numbers, list(inputs)))

    return find


_FILLS = ("masked_fill", "where")
_MOST_STEPS = 6


def _axis(softmax: Operation) -> object:
    """The axis that a softmax goes along."""
    axes = [part for part in softmax.arguments if isinstance(part, int)]
    return softmax.keywords.get("dim", axes[0] if axes else None)


def _changed(numbers: Mapping[str, float], inputs: Sequence[str]) -> str:
    """The softmax with what was done to its scores, in LaTeX."""
    added = "".join(f" + {symbol}" for symbol in reversed(inputs) if symbol[0] != "F")
    filled = [symbol for symbol in reversed(inputs) if symbol[0] == "F"]
    how = rf",\ \text{{filled by }} {', '.join(filled)}" if filled else ""
    return rf"\operatorname{{softmax}}({'c' + chr(92) + ',' if 'c' in numbers else ''}S{added}{how})"


def _unused(symbol: str, used: Mapping[str, object]) -> str:
    return symbol if symbol not in used else f"{symbol}_{len(used)}"


def _unfolded(node: Node) -> Node:
    """Scores before their shape was changed."""
    return _before(node, "view", "reshape", "unflatten")


def _changed_scores(graph: Graph, stage: Stage | None) -> tuple[str, Node, Node, str] | None:
    """A stage that changes scores: its path, the scores, what changes them, and its symbol."""
    node = None if stage is None else stage.node
    if stage is None or node is None or "alpha" in node.keywords:
        return None
    scores = [part for part in node.inputs if _are_scores(graph, part)]
    others = [part for part in node.inputs if not _are_scores(graph, part)]
    if len(scores) != 1 or not others:
        return None
    symbol = "F" if stage.operation in _FILLS else "M" if graph.is_mask(others[0]) else "B"
    return stage.path, scores[0], others[0], symbol


def _are_scores(graph: Graph, node: Node, steps: int = _MOST_STEPS) -> bool:
    """True if a few operations lead from a product to an expression."""
    stage = graph.stage_of(_unfolded(node))
    if stage is None or stage.node is None or not steps:
        return False
    if stage.operation in _PRODUCTS:
        return True
    leads = stage.operation in (*_ADDS, *_FILLS, *_MULTIPLIES, *_DIVIDES, "tanh")
    return leads and any(_are_scores(graph, part, steps - 1) for part in stage.node.inputs)


# The feed-forward network with a gate.


def _gated(graph: Graph, last: Stage) -> Iterator[Proposal]:
    """Finds linear(activation(linear(x, W)) * linear(x, V), U), each without a bias."""
    product = _only_stage(graph, last, *_MULTIPLIES)
    if product is None or product.node is None or len(product.node.inputs) != 2:
        return
    for part in product.node.inputs:
        gate, other = graph.stage_of(part, *_GATES), other_than(product.node, part)
        up = None if other is None else graph.stage_of(other, "linear")
        linear = None if gate is None else _only_stage(graph, gate, "linear")
        if gate is None or up is None or linear is None or up.node is None or linear.node is None:
            continue
        (x, w), (also_x, v), u = linear.node.inputs[:2], up.node.inputs[:2], (last.node or linear.node).inputs[1]
        if x == also_x and isinstance(x, StageInput) and len(linear.node.inputs) == len(up.node.inputs) == 2:
            inside = graph.ordered(linear.path, gate.path, up.path, product.path, last.path)
            formula = _GATED.replace("f", rf"\operatorname{{{_GATES[gate.operation]}}}", 1)
            yield Proposal(inside, {"x": x, "W": w, "V": v, "U": u}, None, formula=formula)


_GATES = {"silu": "SiLU", "gelu": "GELU", "relu": "ReLU", "sigmoid": "sigmoid"}
_GATED = r"\bigl(f(x W^\top) \odot x V^\top\bigr)\, U^\top"


def _only_stage(graph: Graph, stage: Stage, *operations: str) -> Stage | None:
    """The stage that another one is computed from first, if it is one of some operations."""
    return None if stage.node is None else graph.stage_of(stage.node.inputs[0], *operations)


_GELU = "Hendrycks and Gimpel 2016, Gaussian Error Linear Units (GELUs), section 2"
_ROPE = "Su et al. 2021, RoFormer: Enhanced Transformer with Rotary Position Embedding, section 3.4.2"
_ATTENTION = "Vaswani et al. 2017, Attention Is All You Need, sections 3.2.1 and 3.2.3"
_END_OF_FUNCTION = frozenset((*_MULTIPLIES, *_DIVIDES))
_END_OF_NORM = frozenset((*_MULTIPLIES, *_DIVIDES, *_ADDS))

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "gelu_tanh",
        "GELU (tanh)",
        r"0.5\,x\,\bigl(1 + \tanh\bigl[\sqrt{2/\pi}\,(x + 0.044715\,x^3)\bigr]\bigr)",
        _GELU,
        _END_OF_FUNCTION,
        _function(lambda x: F.gelu(x, approximate="tanh"), "tanh"),
    ),
    Pattern(
        "gelu",
        "GELU",
        r"x\,\Phi(x) = 0.5\,x\,\bigl(1 + \operatorname{erf}(x/\sqrt{2})\bigr)",
        _GELU,
        _END_OF_FUNCTION,
        _function(F.gelu, "erf"),
    ),
    Pattern(
        "gelu_sigmoid",
        "GELU (sigmoid)",
        r"x\,\sigma(1.702\,x)",
        _GELU,
        _END_OF_FUNCTION,
        _function(lambda x: x * torch.sigmoid(1.702 * x), "sigmoid", "exp"),
    ),
    Pattern(
        "silu",
        "SiLU",
        r"x\,\sigma(x)",
        _GELU,
        _END_OF_FUNCTION,
        _function(F.silu, "sigmoid", "exp"),
    ),
    Pattern(
        "layer_norm",
        "LayerNorm",
        f"{_GAIN}{_CENTRED}{_SHIFT}",
        "Ba, Kiros and Hinton 2016, Layer Normalization, section 3",
        _END_OF_NORM,
        _norm(_layer_norm, _CENTRED),
    ),
    Pattern(
        "rms_norm",
        "RMSNorm",
        f"{_GAIN}{_RMS}",
        "Zhang and Sennrich 2019, Root Mean Square Layer Normalization, section 4",
        _END_OF_NORM,
        _norm(_rms_norm, _RMS),
    ),
    Pattern(
        "rotary_halves",
        "Rotary positions",
        r"x \odot {\cos} + (-x_2,\, x_1) \odot {\sin} \quad\text{with}\quad x = (x_1,\, x_2)",
        _ROPE,
        frozenset((*_ADDS, *_JOINS)),
        _rotary(_halves, lambda first, second: torch.cat((first, second), -1)),
    ),
    Pattern(
        "rotary_neighbours",
        "Rotary positions (neighbours)",
        r"x \odot {\cos} + (-x_2,\, x_1,\, -x_4,\, x_3,\, \dots) \odot {\sin}",
        _ROPE,
        frozenset((*_ADDS, *_JOINS)),
        _rotary(_neighbours, lambda first, second: torch.stack((first, second), -1)),
    ),
    Pattern(
        "repeated_heads",
        "Repeated key/value heads",
        r"h'_i = h_{\lfloor i / n \rfloor}",
        "Ainslie et al. 2023, GQA: Training Generalized Multi-Query Transformer Models, section 2.2",
        frozenset(_REPEATS),
        _repeated_heads,
    ),
    Pattern(
        "masked_softmax",
        "Softmax with its mask",
        r"\operatorname{softmax}(c\,S + B + M)",
        _ATTENTION,
        frozenset(("softmax",)),
        _softmax(is_masked=True),
    ),
    Pattern(
        "scaled_softmax",
        "Softmax of scaled scores",
        r"\operatorname{softmax}(c\,S + B)",
        _ATTENTION,
        frozenset(("softmax",)),
        _softmax(is_masked=False),
    ),
    Pattern(
        "gated_feed_forward",
        "Gated feed-forward",
        _GATED,
        "Shazeer 2020, GLU Variants Improve Transformer, section 2",
        frozenset(("linear",)),
        _gated,
    ),
)
"""Those that are known; where two fit, the first one gives its name."""
