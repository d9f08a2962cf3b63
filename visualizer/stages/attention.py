"""The stages of multi-head attention around the scores ("Attention Is All You Need", section 3.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

from headlight.attentions import Attention
from model import Trace
from model.texts import listed, texts_of
from visualizer.colors import Role
from visualizer.components.derivation.element import Derivation
from visualizer.glossary import mask_piece
from visualizer.runs.run import Run
from visualizer.stages import by_operation, score_changes
from visualizer.stages.by_operation import from_inputs, linear_formula, moved
from visualizer.stages.checks import Check, attention_agreement, equal, square_root
from visualizer.stages.derivations import Cell
from visualizer.stages.entry import StageEntry, StageInRun, beside
from visualizer.stages.explanations import Fact, Facts
from visualizer.stages.numpy_lines import NumpyLine

say = texts_of(__name__)

# What is true of an attention.


def facts(stage: StageInRun) -> Facts:
    """Return the facts about the attention that a stage is of."""
    n_heads, d_k = (stage.beside("q").value.shape[axis] for axis in (1, -1))
    names = [f"[{words}]({entry})" for words, entry in map(mask_piece, stage.run.mask_of(stage.module).names)]
    values = {
        "n_heads": str(n_heads),
        "d_k": str(d_k),
        "d_v": str(stage.beside("v").value.shape[-1]),
        "root_d_k": square_root(d_k),
        "masks": listed(names),
        "change": score_changes.change_of(stage).text if stage.has_beside("modified_scores") else "",
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
    """Yield the facts about the masking of an attention. With a mask bug it is not as it should be."""
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


# One matrix for several projections.

_FUSED = {"qkv": ("q_proj", "k_proj", "v_proj"), "kv": ("k_proj", "v_proj")}
"""Stages of one matrix for several projections, which lie side by side in it."""

_PLACES = {
    2: (say("first_half"), say("second_half")),
    3: (say("first_third"), say("second_third"), say("last_third")),
}


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
    text = say("part", part=part + 1, n_parts=n_parts, whole=whole.name)
    yield equal(text, stage.value, whole.value.chunk(n_parts, -1)[part])


def _part_of(stage: StageInRun, cell: Cell) -> Derivation:
    whole, part, _ = _part(stage)
    width = stage.value.shape[-1]
    column = part * width + cell.column
    origin = say("column_of_part", column=column, whole=whole.name, part=part, width=width, place=cell.column)
    return moved(stage, cell, origin, float(whole.value[cell.batch, cell.row, column]))


# Heads.


def _heads_line(stage: StageInRun) -> NumpyLine:
    _, n_heads, _, head_dim = stage.value.shape
    return from_inputs(f"{{0}}.reshape(*{{0}}.shape[:-1], {n_heads}, {head_dim}).swapaxes(1, 2)")(stage)


def _heads_checks(stage: StageInRun) -> Iterable[Check]:
    """The columns of a projection, cut into heads."""
    value, (projection,) = stage.value, stage.inputs
    text = say("cut", count=value.numel(), projection=projection.name, width=value.shape[-1])
    yield equal(text, value, torch.unflatten(projection.value, -1, (value.shape[1], -1)).transpose(1, 2))


def _in_head(stage: StageInRun, cell: Cell) -> Derivation:
    (projection,), head_dim = stage.inputs, stage.run.head_dim(stage.path)
    column = cell.head * head_dim + cell.column
    origin = say(
        "column_of_head", column=column, whole=projection.name, head=cell.head, width=head_dim, place=cell.column
    )
    return moved(stage, cell, origin, float(projection.value[cell.batch, cell.row, column]))


def _concat_checks(stage: StageInRun) -> Iterable[Check]:
    value, (context,) = stage.value, stage.inputs
    yield equal(say("side_by_side", count=value.numel()), value, context.value.transpose(1, 2).flatten(-2))


def _side_by_side(stage: StageInRun, cell: Cell) -> Derivation:
    (context,) = stage.inputs
    head, column = divmod(cell.column, stage.run.head_dim(stage.path))
    number = float(context.value[cell.batch, head, cell.row, column])
    return moved(stage, cell, say("column_of_context", head=head, column=column), number)


def _output_formula(stage: StageInRun) -> str:
    return linear_formula("Y", "C", "W^{O}", "b^{O}")(stage) if stage.operation else "Y = C"


def _output_checks(stage: StageInRun) -> Iterable[Check]:
    """The product with a matrix, or, without an output projection, the copy of what it would be given."""
    if stage.operation:
        return by_operation.checks(stage)
    (before,) = stage.inputs
    return (equal(say("no_projection", before=before.name), stage.value, before.value),)


def agreeing(own: Callable[[StageInRun], Iterable[Check]]) -> Callable[[StageInRun], Iterable[Check]]:
    """Add to the checks of a stage that its attention is PyTorch's own."""

    def found(stage: StageInRun) -> Iterable[Check]:
        yield from own(stage)
        yield agreement(stage.run, stage.module)

    return found


def agreement(run: Run, module: str) -> Check:
    """Check that PyTorch's own attention gives what an attention gave in this very run; compared once."""
    if run.has_edit_in(module):
        return Check(say("edited_attention"), None)
    if (seen := run.attentions.get(module)) is not None:
        return _agreement_seen(seen)
    return run.once(("agreement", module), lambda: attention_agreement(run.trace, module))


def _agreement_seen(seen: Attention) -> Check:
    """Check that the weights of a checkpoint, times its values, are what it went on with."""
    if seen.difference is None or seen.context is None:
        return Check(say("not_compared"), None)
    if seen.sinks:
        return Check(say("with_sink"), None)
    if seen.difference == 0.0:
        return Check(say("seen_exactly"), True)
    vectors = (each for each in (seen.query, seen.value) if each is not None)
    types = {seen.dtype, *(each.dtype for each in vectors)}  # scores may be of float32 between vectors of bfloat16
    share = 1e-4 if types <= {torch.float32, torch.float64} else 2e-2
    size = 1.0 + float(seen.context.nan_to_num(0.0).abs().max())
    return Check(say("seen", difference=seen.difference), seen.difference <= share * size)


_stage = partial(StageEntry, facts=facts, block="attention")
_detail = partial(_stage, is_detail=True)
_of_fused = partial(
    _detail, formula=_part_formula, numpy=_part_line, checks=_part_checks, derive=_part_of, when=_is_part
)
_head = partial(_stage, numpy=_heads_line, checks=_heads_checks, derive=_in_head)

_PROJECTIONS: dict[tuple[str, str, Role], Callable[[StageInRun], str]] = {
    ("q_proj", say("q_proj_title"), "query"): linear_formula("Q", "X_q", "W^{Q}", "b^{Q}"),
    ("k_proj", say("k_proj_title"), "key"): linear_formula("K", "X_k", "W^{K}", "b^{K}"),
    ("v_proj", say("v_proj_title"), "value"): linear_formula("V", "X_v", "W^{V}", "b^{V}"),
}
"""The projections by name, title and colour, each with its formula where it is none of the parts of another one."""

ENTRIES: tuple[StageEntry, ...] = (
    _stage(
        "query_input",
        say("query_input_title"),
        "residual",
        formula=r"X_q \in \mathbb{R}^{T_q \times d_{model}}",
    ),
    _detail(
        "key_input",
        say("key_input_title"),
        "residual",
        formula=r"X_k \in \mathbb{R}^{T_k \times d_{model}}",
    ),
    _detail(
        "value_input",
        say("value_input_title"),
        "residual",
        formula=r"X_v \in \mathbb{R}^{T_k \times d_{model}}",
    ),
    _detail(
        "qkv",
        say("qkv_title"),
        "neutral",
        formula=linear_formula(r"[Q \; K \; V]", "X", "W^{QKV}", "b^{QKV}"),
        parts=("q_proj", "k_proj", "v_proj"),
    ),
    _detail(
        "kv",
        say("kv_title"),
        "neutral",
        formula=linear_formula(r"[K \; V]", "X_k", "W^{KV}", "b^{KV}"),
        parts=("k_proj", "v_proj"),
    ),
    *(_of_fused(*about, texts=f"{about[0]}_part") for about in _PROJECTIONS),
    *(_detail(*about, formula=formula) for about, formula in _PROJECTIONS.items()),
    _head("q", say("q_title"), "query", formula=r"Q_h = Q[:, \text{head } h]", charts=("directions",)),
    _head("k", say("k_title"), "key", formula=r"K_h = K[:, \text{head } h]", charts=("directions",)),
    _head("v", say("v_title"), "value", formula=r"V_h = V[:, \text{head } h]"),
    _detail(
        "concat",
        say("concat_title"),
        "value",
        formula=r"C = \operatorname{Concat}(C_1, \dots, C_H)",
        numpy=from_inputs("np.concatenate(np.moveaxis({0}, 1, 0), axis=-1)"),
        checks=agreeing(_concat_checks),
        derive=_side_by_side,
    ),
    _stage(
        "output",
        say("output_title"),
        "residual",
        formula=_output_formula,
        checks=agreeing(_output_checks),
        on_the_stream=True,
    ),
)
