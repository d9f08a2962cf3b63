"""The stages of an attention ("Attention Is All You Need", section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

from model import Trace
from visualizer.components.derivation import Derivation, Step, Terms
from visualizer.glossary import mask_piece
from visualizer.stages import by_operation, derivations
from visualizer.stages.by_operation import (
    dropout,
    dropout_check,
    framed,
    from_inputs,
    in_steps,
    linear_formula,
    moved,
    number_at,
    row_of,
    softmax,
    softmax_checks,
    softmax_line,
    with_dropout,
)
from visualizer.stages.checks import TOLERANCE, Check, attention_agreement, equal, product, square_root
from visualizer.stages.derivations import Cell, Reckoning, as_numbers
from visualizer.stages.entry import Fact, Facts, If, StageEntry, StageInRun, beside
from visualizer.stages.numpy_lines import NumpyLine

# What is true of an attention.


def facts(stage: StageInRun) -> Facts:
    """What is true of the attention that a stage is of."""
    n_heads, d_k = (stage.beside("q").value.shape[axis] for axis in (1, -1))
    names = [f"[{words}]({entry})" for words, entry in map(mask_piece, stage.run.mask_of(stage.module).names)]
    values = {
        "n_heads": str(n_heads),
        "d_k": str(d_k),
        "d_v": str(stage.beside("v").value.shape[-1]),
        "root_d_k": square_root(d_k),
        "masks": " and ".join(names),
        "d_out": str(stage.beside("output").value.shape[-1]) if stage.has_beside("output") else "",
    }
    return Facts(frozenset({*_of_attention(stage), *_of_mask(stage)}), values)


def _of_attention(stage: StageInRun) -> Iterable[Fact]:
    run, module = stage.run, stage.module
    yield "several_heads" if stage.beside("scores").value.shape[1] > 1 else "one_head"
    yield "scaled" if run.scales_scores(module) else "unscaled"
    yield "cross" if run.is_cross_attention(module) else "self"
    if module.startswith("decoder.") and any(path.startswith("encoder.") for path in run.trace):
        yield "memory"
    if stage.has_beside("output"):
        is_copy = stage.beside("output").value is stage.beside("concat").value
        yield "unprojected" if is_copy else "projected"
    yield "in_layer" if beside(module, "residual1") in run.trace else "alone"


def _of_mask(stage: StageInRun) -> Iterable[Fact]:
    """How an attention is masked. With a mask bug it is not as it should be."""
    if not stage.has_beside("mask"):
        yield "unmasked"
        return
    run, masks = stage.run, stage.beside("mask").value
    mask: Tensor = masks[min(run.item, len(masks) - 1)]
    names = run.mask_of(stage.module).names
    yield from (fact for fact in _MASKS if fact in names)
    if len(names) > 1:
        yield "several_masks"
    if bool(mask.all()):
        yield "blocks_nothing"
        return
    is_broken = stage.beside("weights").stage.edited
    yield _BROKEN.get(run.settings.fault, "masked") if is_broken else "masked"
    if not bool(mask.any(-1).all()):
        yield "keyless"


_MASKS: tuple[Fact, ...] = ("causal", "padding", "sliding_window", "prefix", "strided", "custom")
_BROKEN: dict[str, Fact] = {"before_softmax": "scores_zeroed", "after_softmax": "masked_late"}


def _is_cross(trace: Trace, path: str) -> bool:
    return trace[beside(path, "query_input")].value is not trace[beside(path, "key_input")].value


# One matrix for several projections.

_FUSED = {"qkv": ("q_proj", "k_proj", "v_proj"), "kv": ("k_proj", "v_proj")}
"""Stages of one matrix for several projections, which lie side by side in it."""

_PLACES = {2: ("first half", "second half"), 3: ("first third", "second third", "last third")}


def _fused(trace: Trace, path: str) -> str:
    """The fused stage, such as ``qkv``, of which the projection at ``path`` is a part; empty where none is."""
    name = path.rpartition(".")[2]
    return next((fused for fused, parts in _FUSED.items() if name in parts and beside(path, fused) in trace), "")


def _is_part(trace: Trace, path: str) -> bool:
    return bool(_fused(trace, path))


def _part(stage: StageInRun) -> tuple[StageInRun, int, int]:
    """The fused stage, which of its parts a projection is, and how many there are."""
    fused = _fused(stage.run.trace, stage.path)
    return stage.beside(fused), _FUSED[fused].index(stage.name), len(_FUSED[fused])


def _part_formula(stage: StageInRun) -> str:
    _, part, n_parts = _part(stage)
    whole = r" \; ".join("QKV"[-n_parts:])
    return rf"{'QKV'[-n_parts:][part]} = [{whole}]_{{\text{{{_PLACES[n_parts][part]}}}}}"


def _part_line(stage: StageInRun) -> NumpyLine:
    _, part, n_parts = _part(stage)
    return from_inputs(f"np.split({{0}}, {n_parts}, axis=-1)[{part}]")(stage)


def _part_checks(stage: StageInRun) -> Iterable[Check]:
    whole, part, n_parts = _part(stage)
    text = f"part {part + 1} of the {n_parts} that lie side by side in {whole.name}"
    yield equal(text, stage.value, whole.value.chunk(n_parts, -1)[part])


def _part_of(stage: StageInRun, cell: Cell) -> Derivation:
    whole, part, _ = _part(stage)
    width = stage.value.shape[-1]
    column = part * width + cell.column
    origin = f"column {column} of {whole.name}: part {part} × {width} + {cell.column}"
    return moved(stage, cell, origin, float(whole.value[cell.batch, cell.row, column]))


# Heads.


def _heads_line(stage: StageInRun) -> NumpyLine:
    _, n_heads, _, head_dim = stage.value.shape
    return from_inputs(f"{{0}}.reshape(*{{0}}.shape[:-1], {n_heads}, {head_dim}).swapaxes(1, 2)")(stage)


def _heads_checks(stage: StageInRun) -> Iterable[Check]:
    """The columns of a projection, cut into heads."""
    value, (projection,) = stage.value, stage.inputs
    text = f"the {value.numel()} numbers of {projection.name}, {value.shape[-1]} columns to each head"
    yield equal(text, value, torch.unflatten(projection.value, -1, (value.shape[1], -1)).transpose(1, 2))


def _in_head(stage: StageInRun, cell: Cell) -> Derivation:
    (projection,), head_dim = stage.inputs, stage.run.head_dim(stage.path)
    column = cell.head * head_dim + cell.column
    origin = f"column {column} of {projection.name}: head {cell.head} × {head_dim} + {cell.column}"
    return moved(stage, cell, origin, float(projection.value[cell.batch, cell.row, column]))


def _concat_checks(stage: StageInRun) -> Iterable[Check]:
    value, (context,) = stage.value, stage.inputs
    text = f"the {value.numel()} numbers of context, head after head in each row"
    yield equal(text, value, context.value.transpose(1, 2).flatten(-2))


def _side_by_side(stage: StageInRun, cell: Cell) -> Derivation:
    (context,) = stage.inputs
    head, column = divmod(cell.column, stage.run.head_dim(stage.path))
    number = float(context.value[cell.batch, head, cell.row, column])
    return moved(stage, cell, f"head {head}, column {column} of context", number)


# Scores.


def _scores_checks(stage: StageInRun) -> Iterable[Check]:
    q, k = stage.inputs
    yield product("Q Kᵀ", stage.value, q.value, k.value.mT)


def _scaled_formula(stage: StageInRun) -> str:
    return r"\hat S = S / \sqrt{d_k}" if stage.run.scales_scores(stage.module) else r"\hat S = S / 1"


def _scaled_line(stage: StageInRun) -> NumpyLine:
    if not stage.run.scales_scores(stage.module):
        return from_inputs("{0} / 1.0")(stage)
    return NumpyLine("scaled_scores = scores / np.sqrt(q.shape[-1])", _here(stage, "scores", "q"))


def _scaled_checks(stage: StageInRun) -> Iterable[Check]:
    scores, width = stage.beside("scores").value, stage.beside("q").value.shape[-1]
    if not stage.run.scales_scores(stage.module):
        yield equal("scaling is off: equal to the scores", stage.value, scores)
    else:
        text = f"every score was divided by √d_k = {square_root(width)}"
        yield equal(text, stage.value, scores / math.sqrt(width))


def _masked_line(stage: StageInRun) -> NumpyLine:
    if not stage.has_beside("mask"):
        return from_inputs("{0}")(stage)
    code = "masked_scores = np.where(mask, scaled_scores, -np.inf)"
    return NumpyLine(code, _here(stage, "mask", "scaled_scores"))


def _masked_checks(stage: StageInRun) -> Iterable[Check]:
    scaled = stage.beside("scaled_scores").value
    if not stage.has_beside("mask"):
        yield equal("no mask: equal to the scaled scores", stage.value, scaled)
    else:
        expected = torch.where(stage.beside("mask").value, scaled, -math.inf)
        yield equal("every blocked cell is -∞, every other cell as it was", stage.value, expected)


def _score(stage: StageInRun, cell: Cell) -> Derivation:
    """A score and what follows from it alone, up to the stage."""
    q = row_of(stage.beside("q"), cell)
    k = as_numbers(stage.beside("k").value[cell.batch, cell.head, cell.column])
    left, right = Terms(f"query {cell.row}", "query", q), Terms(f"key {cell.column}", "key", k)
    found = derivations.dot(left, right, role="weights")
    formula, steps = "s = q · k", list(found.steps)
    if stage.name != "scores":
        if stage.run.scales_scores(stage.module):
            root = math.sqrt(len(q))
            formula = "s = q · k / √d_k"
            steps.append(Step(f"÷ √{len(q)} ({root:.4g})", found.value / root))
        else:
            steps.append(Step("scaling is off: the same number", found.value))
    if stage.name == "masked_scores":
        steps.append(_masked(stage, cell, steps[-1].value))
        formula += ", or -∞ where a mask blocks" if stage.has_beside("mask") else ""
    found = Reckoning(tuple(steps), steps[-1].value, found.rows)
    return framed(stage, cell, "query times key", formula, found, word="score")


def _masked(stage: StageInRun, cell: Cell, score: float) -> Step:
    """What the mask makes of a score."""
    if not stage.has_beside("mask"):
        return Step("no mask: a copy of the scaled score", score)
    if number_at(stage.beside("mask"), cell):
        return Step("mask: may attend", score)
    blockers = _blockers(stage, cell)
    return Step(f"mask: blocked by {', '.join(blockers)}" if blockers else "mask: blocked", -math.inf)


# The mask.


def _blockers(stage: StageInRun, cell: Cell) -> tuple[str, ...]:
    """The masks that block a cell."""
    return stage.run.blocked_by(stage.module, cell.row, cell.column, cell.batch, cell.head)


def _mask_line(stage: StageInRun) -> NumpyLine:
    return NumpyLine("mask = np.broadcast_to(mask, scores.shape)", _here(stage, "scores"), ("mask",))


def _verdicts(stage: StageInRun, cell: Cell) -> Derivation:
    blockers = _blockers(stage, cell)
    verdicts = [
        Step(f"{name}: {'blocks' if name in blockers else 'allows'}", float(name not in blockers))
        for name in stage.run.mask_of(stage.module).names
    ]
    formula = "1 = may attend, 0 = blocked"
    return in_steps(stage, cell, "all masks must allow it", formula, verdicts, float(not blockers))


def _mask_checks(stage: StageInRun) -> Iterable[Check]:
    """How many cells are blocked, counted once where every head has the same, and how many of them by each mask."""
    mask, masks = stage.value, stage.run.mask_of(stage.module)
    blocked = _distinct_heads(~mask)
    text = f"{_of_cells(blocked)} are blocked"
    agrees = None
    if masks.names:
        n_batch, _, n_queries, n_keys = mask.shape
        bits = torch.stack([masks.blocked_bits(n_queries, n_keys, batch) for batch in range(n_batch)])
        counts = [int((bits >> i & 1).sum()) for i in range(len(masks.names))]
        by_each = [f"{n} by {name.replace('_', ' ')}" for n, name in zip(counts, masks.names, strict=True)]
        several = int((bits & (bits - 1) != 0).sum())
        overlap = f", {several} of them by {'both' if len(counts) == 2 else 'more than one'}" if several else ""
        agrees = torch.equal((bits != 0).expand_as(blocked), blocked)
        text = f"{text}: {', '.join(by_each)}{overlap}"
    yield Check(text, agrees)
    keyless = blocked.all(-1)
    if keyless.any():
        yield Check(f"{_queries(keyless)} can attend to no key at all", None)


def _rows_without_key(stage: StageInRun) -> Tensor:
    """(B, H, Tq), True where the mask leaves a query no key."""
    if stage.has_beside("mask"):
        return ~stage.beside("mask").value.any(-1)
    return torch.zeros(stage.beside("weights").value.shape[:-1], dtype=torch.bool)


def _distinct_heads(of_heads: Tensor) -> Tensor:
    """(B, H, ...) as it is, or its first head alone, (B, 1, ...), where all heads are the same."""
    first = of_heads[:, :1]
    return first if bool((of_heads == first).all()) else of_heads


def _queries(keyless: Tensor) -> str:
    """How many queries (B, H, Tq) marks, counted once where they are the same ones for every head."""
    marked = _distinct_heads(keyless)
    count = int(marked.sum())
    return f"{count} {'query' if count == 1 else 'queries'}{_in_heads(marked)}"


def _of_cells(blocked: Tensor) -> str:
    """``24 of 49 cells``, and in how many sequences and heads where that is more than one."""
    sequences = f" in {len(blocked)} sequences" if len(blocked) > 1 else ""
    return f"{int(blocked.sum())} of {blocked.numel()} cells{_in_heads(blocked)}{sequences}"


def _in_heads(of_heads: Tensor) -> str:
    return f" in {of_heads.shape[1]} heads" if of_heads.shape[1] > 1 else ""


# Weights, and what they mix.


def _weights_line(stage: StageInRun) -> NumpyLine:
    if not stage.has_beside("mask"):
        return softmax_line(stage)
    lines = (
        "has_key = mask.any(-1, keepdims=True)",
        "largest = np.where(has_key, masked_scores.max(-1, keepdims=True), 0.0)",
        "exponentials = np.exp(masked_scores - largest)",
        "weights = exponentials / np.where(has_key, exponentials.sum(-1, keepdims=True), 1.0)",
    )
    return NumpyLine("\n".join(lines), _here(stage, "mask", "masked_scores"))


def _weights_checks(stage: StageInRun) -> Iterable[Check]:
    keyless = _rows_without_key(stage)
    sum_to_one, is_softmax = softmax_checks(stage, keyless=keyless)
    yield sum_to_one
    if keyless.any():
        zero = bool((stage.value[keyless] == 0).all())
        yield Check(f"{_queries(keyless)} with every key blocked: zero everywhere", zero)
    if stage.has_beside("mask"):
        leaked = stage.value.masked_fill(stage.beside("mask").value, 0.0).count_nonzero()
        yield Check("every blocked cell is exactly zero", int(leaked) == 0)
    yield is_softmax


def _weight(stage: StageInRun, cell: Cell) -> tuple[Derivation, ...]:
    """The score's own derivation, then the softmax along its row."""
    scores = stage.beside("masked_scores" if stage.has_beside("mask") else "scaled_scores")
    return _score(scores, cell), softmax(stage, cell, word="weight")


def _dropped_checks(stage: StageInRun) -> Iterable[Check]:
    yield from dropout_check("weights")(stage)
    off = ((stage.value.sum(-1) - 1).abs() > TOLERANCE) & ~_rows_without_key(stage)
    yield Check(f"{int(off.sum())} of {off.numel()} rows do not sum to one: dropout keeps only their mean", None)


def _context_checks(stage: StageInRun) -> Iterable[Check]:
    value, (weights, v) = stage.value, (before.value for before in stage.inputs)
    yield product("weights × V", value, weights, v)
    if not stage.has_beside("dropped_weights"):
        margin = TOLERANCE * (1 + v.abs().max())
        between = (value >= v.amin(-2, keepdim=True) - margin) & (value <= v.amax(-2, keepdim=True) + margin)
        inside = bool(between[~_rows_without_key(stage)].all())
        yield Check("every number lies between the smallest and the largest value of its column", inside)


def _context(stage: StageInRun, cell: Cell) -> Derivation:
    weights, v = stage.inputs
    values = as_numbers(v.value[cell.batch, cell.head, :, cell.column])
    found = derivations.dot(
        Terms(f"{weights.entry.title.lower()}, query {cell.row}", "weights", row_of(weights, cell)),
        Terms(f"values, column {cell.column}", "value", values),
    )
    formula, keys = "c = Σ a · v over the keys", stage.run.axes(weights.path)[1]
    return framed(stage, cell, "weights times values", formula, found, columns=keys)


def _output_formula(stage: StageInRun) -> str:
    return linear_formula("Y", "C", "W^{O}", "b^{O}")(stage) if stage.operation else "Y = C"


def _output_checks(stage: StageInRun) -> Iterable[Check]:
    """The product with a matrix, or, without an output projection, the copy of what it would be given."""
    if stage.operation:
        return by_operation.checks(stage)
    (before,) = stage.inputs
    return (equal(f"no projection: equal to {before.name}", stage.value, before.value),)


def _agreeing(own: Callable[[StageInRun], Iterable[Check]]) -> Callable[[StageInRun], Iterable[Check]]:
    """What must hold of a stage, and that its attention is PyTorch's own."""

    def found(stage: StageInRun) -> Iterable[Check]:
        yield from own(stage)
        yield attention_agreement(stage.run.trace, stage.module)

    return found


def _beside(name: str, with_it: str, without: str) -> Callable[[StageInRun], str]:
    """One formula where the same module has a stage of another name, else another."""
    return lambda stage: with_it if stage.has_beside(name) else without


def _here(stage: StageInRun, *names: str) -> dict[str, str]:
    return {name: stage.beside(name).path for name in names}


_SOFTMAX = r"A_{qk} = \frac{e^{\tilde S_{qk}}}{\sum_j e^{\tilde S_{qj}}}"
_OF_SCORES = ("row", "temperature", "directions")
_EACH_MASK = (
    If(("causal",), "[Causal](causal): no reader opens a book that stands after its own place."),
    If(("padding",), "[Padding](padding): books that only fill the shelf stay shut."),
    If(("sliding_window",), "[Sliding window](sliding window): only books near the reader's own place are open."),
    If(
        ("prefix",),
        "[Prefix](prefix): the first books are open to all, later ones only to those who stand at them or after.",
    ),
    If(("strided",), "[Strided](strided): counted from its own place, only one book in so many is open."),
    If(("custom",), "[Painted](painted mask): locked cell by cell, as painted, written or given."),
)
_stage = partial(StageEntry, facts=facts, block="attention")

ENTRIES: tuple[StageEntry, ...] = (
    _stage(
        "query_input",
        "Input of the queries",
        "residual",
        formula=r"X_q \in \mathbb{R}^{T_q \times d_{model}}",
        when=_is_cross,
        plain=(
            "[Attention] is a library, and here two texts meet in it. The tokens of the target are the readers: "
            "each will write down what it looks for in the source.",
        ),
        exact=(
            "The vectors that ask. In [cross-attention] they are those of the target: each of its tokens asks "
            "about the source.",
        ),
    ),
    _stage(
        "query_input",
        "Input of the queries",
        "residual",
        formula=r"X_q \in \mathbb{R}^{T_q \times d_{model}}",
        plain=(
            "[Attention] is a library. The cards enter as readers: each token will write down what it looks for. "
            "It has a book on the shelf too, so its card serves three times.",
        ),
        exact=(
            "The vectors that ask. In [self-attention] the same tensor also serves the [keys](key) and the "
            "[values](value).",
        ),
    ),
    _stage(
        "key_input",
        "Input of the keys",
        "residual",
        formula=r"X_k \in \mathbb{R}^{T_k \times d_{model}}",
        when=_is_cross,
        plain=(
            "The cards of the source, whose tokens have the books.",
            If(("memory",), "They come as the [encoder] left them."),
            "From each will be made what stands on the spine.",
        ),
        exact=(
            "The vectors that are looked up. In [cross-attention] they are those of the source, one for each "
            "source token.",
            If(("memory",), "They are the output of the [encoder]."),
        ),
    ),
    _stage(
        "key_input",
        "Input of the keys",
        "residual",
        formula=r"X_k \in \mathbb{R}^{T_k \times d_{model}}",
        plain=("The same cards once more: from each will be made what stands on the spine of the token's book.",),
        exact=(
            "The vectors that are looked up. In [self-attention] this is the very tensor that the "
            "[queries](query) come from.",
        ),
    ),
    _stage(
        "value_input",
        "Input of the values",
        "residual",
        formula=r"X_v \in \mathbb{R}^{T_k \times d_{model}}",
        when=_is_cross,
        plain=("The cards of the source once more: from each will be made what stands in the book.",),
        exact=(
            "The vectors whose content is passed on. In [cross-attention] they are those of the source.",
            If(("memory",), "They are the output of the [encoder] once more."),
        ),
    ),
    _stage(
        "value_input",
        "Input of the values",
        "residual",
        formula=r"X_v \in \mathbb{R}^{T_k \times d_{model}}",
        plain=("The same cards a third time: from each will be made what stands in the token's book.",),
        exact=("The vectors whose content is passed on. In [self-attention] this is the same tensor once more.",),
    ),
    _stage(
        "qkv",
        "Queries, keys and values in one",
        "neutral",
        formula=linear_formula(r"[Q \; K \; V]", "X", "W^{QKV}", "b^{QKV}"),
        parts=("q_proj", "k_proj", "v_proj"),
        plain=(
            "From its card every token makes all three at once: its slip, the spine of its book and the book, side "
            "by side in one row. They are its [query], its [key] and its [value].",
        ),
        exact=(
            "One matrix makes [queries](query), [keys](key) and [values](value) at once: it holds the three "
            "matrices side by side, and so does its result. One large product is faster than three, and gives the "
            "same numbers. Most code is written so; in nn.MultiheadAttention the matrix is in_proj_weight.",
        ),
    ),
    _stage(
        "kv",
        "Keys and values in one",
        "neutral",
        formula=linear_formula(r"[K \; V]", "X_k", "W^{KV}", "b^{KV}"),
        parts=("k_proj", "v_proj"),
        plain=(
            "From its card every token of the source makes two things at once, side by side in one row: the spine "
            "of its book, its [key], and the book, its [value].",
        ),
        exact=(
            "Two thirds of the one matrix for [queries](query), [keys](key) and [values](value) make the keys and "
            "values of the source in one product. The queries come from the other sequence, so they have a product "
            "of their own, with the first third. nn.MultiheadAttention does the same.",
        ),
    ),
    _stage(
        "q_proj",
        "Query projection",
        "query",
        formula=_part_formula,
        numpy=_part_line,
        checks=_part_checks,
        derive=_part_of,
        when=_is_part,
        plain=(
            "The first part of each row is the token's slip, its [query]: what it looks for.",
            If(("several_heads",), "It is {n_heads} slips side by side: one for each [head]."),
        ),
        exact=(
            "The first columns of the product that made [keys](key) and [values](value) too: for the token of each "
            "row its [query], what it looks for. Nothing is computed.",
            If(("several_heads",), "Each of the {n_heads} [heads](head) owns {d_k} neighbouring columns."),
        ),
    ),
    _stage(
        "q_proj",
        "Query projection",
        "query",
        formula=linear_formula("Q", "X_q", "W^{Q}", "b^{Q}"),
        plain=(
            "From its card every token makes a slip, its [query]: what it looks for.",
            If(("several_heads",), "It makes {n_heads} of them, side by side: one for each [head]."),
        ),
        exact=(
            "One [linear layer] turns the vector of every token that asks into its [query], what it looks for.",
            If(
                ("several_heads",),
                "It does so for all {n_heads} [heads](head) at once: each owns {d_k} neighbouring columns.",
            ),
        ),
    ),
    _stage(
        "k_proj",
        "Key projection",
        "key",
        formula=_part_formula,
        numpy=_part_line,
        checks=_part_checks,
        derive=_part_of,
        when=_is_part,
        plain=(
            "The part of each row before the last is what stands on the spine of the token's book, its [key]: what "
            "it is found by.",
            If(("several_heads",), "It is {n_heads} spines side by side: one for each [head]."),
        ),
        exact=(
            "The columns before those of the [values](value), of the product that made both: for the token of each "
            "row its [key], what it is found by. Nothing is computed.",
            If(("several_heads",), "Each of the {n_heads} [heads](head) owns {d_k} neighbouring columns."),
        ),
    ),
    _stage(
        "k_proj",
        "Key projection",
        "key",
        formula=linear_formula("K", "X_k", "W^{K}", "b^{K}"),
        plain=(
            "From its card every token makes what stands on the spine of its book, its [key]: what it is found by.",
            If(("several_heads",), "It makes {n_heads} spines, one for each [head]."),
        ),
        exact=(
            "One [linear layer] turns the vector of every token that can be attended to into its [key], what it is "
            "found by.",
            If(
                ("several_heads",),
                "It does so for all {n_heads} [heads](head) at once: each owns {d_k} neighbouring columns.",
            ),
        ),
    ),
    _stage(
        "v_proj",
        "Value projection",
        "value",
        formula=_part_formula,
        numpy=_part_line,
        checks=_part_checks,
        derive=_part_of,
        when=_is_part,
        plain=(
            "The last part of each row is what stands in the token's book, its [value]: what a reader takes home.",
            If(("several_heads",), "It is {n_heads} books side by side: one for each [head]."),
        ),
        exact=(
            "The last columns of the product that made the [keys](key) too: for the token of each row its [value], "
            "what it hands over. Nothing is computed.",
            If(("several_heads",), "Each of the {n_heads} [heads](head) owns {d_v} neighbouring columns."),
        ),
    ),
    _stage(
        "v_proj",
        "Value projection",
        "value",
        formula=linear_formula("V", "X_v", "W^{V}", "b^{V}"),
        plain=(
            "From its card every token makes what stands in its book, its [value]: what a reader takes home.",
            If(("several_heads",), "It makes {n_heads} books, one for each [head]."),
        ),
        exact=(
            "One [linear layer] turns the vector of every token that can be attended to into its [value], what it "
            "hands over.",
            If(
                ("several_heads",),
                "It does so for all {n_heads} [heads](head) at once: each owns {d_v} neighbouring columns.",
            ),
        ),
    ),
    _stage(
        "q",
        "Queries per head",
        "query",
        formula=r"Q_h = Q[:, \text{head } h]",
        numpy=_heads_line,
        checks=_heads_checks,
        derive=_in_head,
        charts=("directions",),
        plain=(
            If(
                ("several_heads",),
                "The slips are handed to {n_heads} librarians, the [heads](head), each with a "
                "question of its own. Row t is what token t asks the one shown.",
            ),
            If(("one_head",), "The slips go to the only librarian, the [head]. Row t is what token t asks."),
        ),
        exact=(
            If(
                ("several_heads",),
                "The projection cut into {n_heads} [heads](head). Nothing is computed: the same "
                "numbers, with an axis for the head. Row t is what token t asks in this head.",
            ),
            If(
                ("one_head",),
                "There is one [head], so nothing is cut: the same numbers, with an axis for the head. "
                "Row t is what token t asks, its [query].",
            ),
        ),
    ),
    _stage(
        "k",
        "Keys per head",
        "key",
        formula=r"K_h = K[:, \text{head } h]",
        numpy=_heads_line,
        checks=_heads_checks,
        derive=_in_head,
        charts=("directions",),
        plain=(
            If(
                ("several_heads",),
                "Each librarian, a [head], has spines of its own. Row t is what stands on the "
                "spine of token t for the one shown.",
            ),
            If(("one_head",), "The spines as the only librarian, the [head], sees them. Row t is that of token t."),
        ),
        exact=(
            If(
                ("several_heads",),
                "The projection cut into {n_heads} [heads](head). Row t is what token t offers "
                "to be found by in this head.",
            ),
            If(
                ("one_head",),
                "There is one [head], so nothing is cut. Row t is what token t offers to be found by, its [key].",
            ),
        ),
    ),
    _stage(
        "v",
        "Values per head",
        "value",
        formula=r"V_h = V[:, \text{head } h]",
        numpy=_heads_line,
        checks=_heads_checks,
        derive=_in_head,
        plain=(
            If(
                ("several_heads",),
                "Each librarian, a [head], hands out books of its own. Row t is what stands in "
                "the book of token t for the one shown.",
            ),
            If(
                ("one_head",), "The books that the only librarian, the [head], hands out. Row t is that of token t."
            ),
        ),
        exact=(
            If(
                ("several_heads",),
                "The projection cut into {n_heads} [heads](head). Row t is what token t passes on in this head.",
            ),
            If(
                ("one_head",),
                "There is one [head], so nothing is cut. Row t is what token t passes on, its [value].",
            ),
        ),
    ),
    _stage(
        "scores",
        "Scores",
        "weights",
        formula=r"S = Q_h K_h^\top",
        numpy=from_inputs("{0} @ {1}.swapaxes(-1, -2)"),
        checks=_agreeing(_scores_checks),
        derive=_score,
        charts=_OF_SCORES,
        plain=(
            "Every slip (row) is held against every spine (column). The better what is asked for and what is "
            "offered agree, the larger the [score](scores).",
        ),
        exact=(
            "One [dot product] for every [query] (row) and every [key] (column): how well the two fit. Only "
            "differences within a row will matter.",
            If(("unmasked",), "The key with the largest score gets the largest weight."),
            If(("blocks_nothing",), "The key with the largest score gets the largest weight."),
            If(
                ("masked",),
                "Of the keys that are not blocked, that with the largest score gets the largest weight.",
            ),
        ),
    ),
    _stage(
        "scaled_scores",
        "Scaled scores",
        "weights",
        formula=_scaled_formula,
        numpy=_scaled_line,
        checks=_agreeing(_scaled_checks),
        derive=_score,
        charts=_OF_SCORES,
        plain=(
            "A long slip gives large [scores] merely because it is long, and large scores make the choice all or "
            "nothing.",
            If(("scaled",), "Dividing by {root_d_k} makes up for the length."),
            If(("unscaled",), "That would be made up for by scaling, but it is off: the scores stay as they are."),
        ),
        exact=(
            If(
                ("scaled",),
                "Dot products of random vectors grow with √d_k, and where scores are large the "
                "[softmax] has almost no gradient. Dividing by [√d_k](scaling) = {root_d_k} makes up for it, so "
                "that long vectors score like short ones.",
            ),
            If(
                ("unscaled",),
                "[Scaling](scaling) is off, so the scores stay as they are. Dot products of random "
                "vectors grow with √d_k, and where scores are large the [softmax] has almost no gradient.",
            ),
        ),
    ),
    _stage(
        "mask",
        "Mask",
        "weights",
        formula=r"M_{qk} = 1 \text{ if } q \text{ may attend to } k \text{, else } 0",
        numpy=_mask_line,
        checks=_agreeing(_mask_checks),
        derive=_verdicts,
        charts=_OF_SCORES,
        numbers="shares",
        marks_blocked=True,
        plain=(
            "The [mask] says which books (columns) a reader (row) may open; hatched ones are locked.",
            *_EACH_MASK,
            If(("several_masks",), "A book is open only where all of them allow it."),
            If(("blocks_nothing",), "Here nothing is locked."),
        ),
        exact=(
            "Which [query] (row) may attend to which [key] (column): hatched cells are blocked by the [mask], here "
            "{masks}.",
            If(("several_masks",), "They combine with and."),
            If(("blocks_nothing",), "None of the cells is blocked."),
            "True (1) = may attend, as in F.scaled_dot_product_attention; attn_mask and key_padding_mask of "
            "nn.MultiheadAttention mean the opposite, True = blocked.",
        ),
    ),
    _stage(
        "masked_scores",
        "Masked scores",
        "weights",
        formula=_beside(
            "mask",
            r"\tilde S_{qk} = \hat S_{qk} \text{ if } M_{qk} = 1 \text{, else } {-\infty}",
            r"\tilde S = \hat S",
        ),
        numpy=_masked_line,
        checks=_agreeing(_masked_checks),
        derive=_score,
        charts=_OF_SCORES,
        marks_blocked=True,
        plain=(
            If(
                ("masked",),
                "Where the [mask] locks a book, its score becomes minus infinity: however well its "
                "spine fits, it cannot win.",
            ),
            If(("unmasked",), "There is no [mask]: every book is open, and the scores stay as they were."),
            If(("blocks_nothing",), "The [mask] locks no book here, so the scores stay as they were."),
            If(
                ("scores_zeroed",),
                "Here is a mistake, made on purpose: the score of a locked book becomes 0, not "
                "minus infinity. That is a score like any other, so it can still win.",
            ),
            If(
                ("masked_late",),
                "Here is a mistake, made on purpose: locked books keep their scores, and are "
                "struck out only after the shares were given.",
            ),
        ),
        exact=(
            If(
                ("masked",),
                "Cells that the [mask] blocks become minus infinity, so that the [softmax] gives them "
                "exactly zero. The others stay as they are.",
            ),
            If(("unmasked",), "There is no [mask]: all scores stay as they are."),
            If(("blocks_nothing",), "The [mask] blocks no cell here: all scores stay as they are."),
            If(
                ("scores_zeroed",),
                "The mask bug at work: the scores are multiplied by the [mask], so a blocked "
                "score becomes 0, a score like any other, instead of minus infinity.",
            ),
            If(
                ("masked_late",),
                "The mask bug at work: the scores stay as they are, and the [mask] is multiplied "
                "onto the weights after the [softmax].",
            ),
        ),
    ),
    _stage(
        "weights",
        "Attention weights",
        "weights",
        formula=_beside("mask", rf"{_SOFTMAX} \text{{, or }} 0 \text{{ if no key is left}}", _SOFTMAX),
        numpy=_weights_line,
        checks=_agreeing(_weights_checks),
        derive=_weight,
        charts=(*_OF_SCORES, "distance"),
        numbers="shares",
        marks_blocked=True,
        is_telling=True,
        left_out=("mask",),
        plain=(
            "Every reader has one whole of attention to give, and shares it out among the books: the better the "
            "fit, the larger the share, its [weight](attention weights).",
            If(("masked",), "A locked book gets exactly nothing."),
            If(("masked", "keyless"), "A reader to whom every book is locked gives nothing at all."),
            If(("scores_zeroed",), "By the mask bug, locked books get a share too."),
            If(
                ("masked_late",),
                "By the mask bug, locked books are struck out only now, so that what is left of a "
                "row no longer makes a whole.",
            ),
        ),
        exact=(
            "The [softmax] turns each row of scores into shares that sum to one: how much of its attention a "
            "[query] (row) gives to each [key] (column).",
            If(("masked", "keyless"), "A query with no key left gets a row of exact zeros."),
            If(("scores_zeroed",), "By the mask bug, blocked cells have a score of 0 and so a weight."),
            If(
                ("masked_late",),
                "By the mask bug the [mask] is multiplied onto these shares, so that rows with "
                "blocked cells sum to less than one.",
            ),
        ),
    ),
    _stage(
        "dropped_weights",
        "Weights after dropout",
        "weights",
        formula=r"\tilde A = \operatorname{dropout}(A)",
        numpy=with_dropout("{0}"),
        checks=_agreeing(_dropped_checks),
        derive=dropout,
        numbers="shares",
        marks_blocked=True,
        plain=(
            "As in training, [dropout] strikes out each share with a chance of {p}, and enlarges the others to "
            "make up for it on average. So that no reader learns to rely on one book alone.",
        ),
        exact=(
            "[Dropout](dropout) sets each weight to zero with probability {p} and divides the others by 1 - {p}, "
            "as in training. A row then sums to one only on average. Set it to 0 to see the model as it is used.",
        ),
    ),
    _stage(
        "context",
        "Context",
        "value",
        formula=_beside("dropped_weights", r"C_h = \tilde A V_h", "C_h = A V_h"),
        checks=_agreeing(_context_checks),
        derive=_context,
        plain=(
            "Every reader takes from each book as much as its share says, and carries the mixture home: its "
            "[context]. Only here does anything pass from one token to another.",
        ),
        exact=(
            If(
                ("no_dropout",),
                "For each [query], the mixture of all [values](value) in the proportions of its weights.",
            ),
            If(
                ("dropout",),
                "For each [query], the mixture of all [values](value) in the proportions of its "
                "weights after [dropout].",
            ),
            "Here information moves from one token to another, and nowhere but in an [attention] does it do so.",
        ),
    ),
    _stage(
        "concat",
        "Heads side by side",
        "value",
        formula=r"C = \operatorname{Concat}(C_1, \dots, C_H)",
        numpy=from_inputs("np.concatenate(np.moveaxis({0}, 1, 0), axis=-1)"),
        checks=_agreeing(_concat_checks),
        derive=_side_by_side,
        plain=(
            If(
                ("several_heads",),
                "What a reader got from its {n_heads} librarians, the [heads](head), is laid side by side.",
            ),
            If(("one_head",), "There is one librarian, the [head], so there is nothing to lay beside it."),
        ),
        exact=(
            If(
                ("several_heads",),
                "The [contexts](context) of all {n_heads} [heads](head), laid next to each other "
                "in one row per token. Nothing is computed.",
            ),
            If(("one_head",), "The [context] of the one [head], in one row per token. Nothing is computed."),
        ),
    ),
    _stage(
        "output",
        "Attention output",
        "residual",
        formula=_output_formula,
        checks=_agreeing(_output_checks),
        on_the_stream=True,
        plain=(
            If(
                ("projected",),
                "What was carried home is put into the language of the cards: {d_out} numbers for each token.",
            ),
            If(("projected", "in_layer"), "So it can be added to them."),
            If(("unprojected",), "Nothing more is done to it: what was carried home goes out as it is."),
        ),
        exact=(
            If(
                ("projected", "several_heads"),
                "The [output projection] mixes what the [heads](head) found into {d_out} numbers per token.",
            ),
            If(
                ("projected", "one_head"),
                "The [output projection] turns what the [head] found into {d_out} numbers per token.",
            ),
            If(("projected", "in_layer"), "That is the width of the [residual stream]."),
            If(
                ("unprojected",),
                "This attention has no [output projection]: it puts out what stands side by side as it is.",
            ),
        ),
    ),
)
