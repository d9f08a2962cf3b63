"""A frozen ``Settings`` in, a finished ``Run`` out: the only way from what a person chose to numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from model import (
    CombinedMask,
    MultiHeadAttention,
    Trace,
    TracedModule,
    Transformer,
    TransformerConfig,
    positions_from_first_token,
    record,
    seed_dropout,
)
from model.faults import FAULTS
from model.tracing import Edit
from model.training import model_with
from model.weights import build_model, head_names
from model.worked_examples import WORKED_EXAMPLES, WorkedExample
from visualizer.attention_masks import Masks, applied_masks, promised_masks
from visualizer.components.axis import Axis, SequenceName
from visualizer.dataflow import Operand, attention_modules, operands
from visualizer.explanations import explain
from visualizer.limits import problem_with, problem_with_text
from visualizer.settings import TRAINED, Selection, Settings
from visualizer.stage_texts import Explanation
from visualizer.tokens import Encoded, TokenSequence, encode, lines_of
from visualizer.trained import checkpoint_of, encode_trained, shape_of


class Subject(NamedTuple):
    """One sequence of the batch of some settings."""

    settings: Settings
    item: int


@dataclass(frozen=True, eq=False)
class Run:
    """One finished forward pass, and everything needed to draw and explain it.

    Attributes:
        settings: what it was computed from.
        model: the model that computed it, in training mode where dropout is on.
        trace: every stage.
        masks: the masks that each attention was given, by its path.
        promised: the masks that were chosen for it; others only where the model is broken on purpose.
        batches: the sequences that were computed at once, ``source`` and, with a decoder beside an encoder,
            ``target``; of each line of the text one.
        vocabulary: the label of every token id that the model gives a probability to.
        head_names: what each head does, in the order of the heads; empty names where nothing is known.
        example: the worked example that it is of; None for a model.
        published: the published numbers by stage; none for a model, and none without the example's own mask.
        item: the sequence of the batch that is looked at.
    """

    settings: Settings
    model: TracedModule
    trace: Trace
    masks: Mapping[str, CombinedMask]
    promised: Mapping[str, CombinedMask]
    batches: Mapping[SequenceName, tuple[TokenSequence, ...]]
    vocabulary: tuple[str, ...]
    head_names: tuple[str, ...]
    example: WorkedExample | None = None
    published: Mapping[str, Tensor] = field(default_factory=dict)
    item: int = 0

    @property
    def tokens(self) -> Mapping[SequenceName, TokenSequence]:
        """The tokens of the sequence that is looked at, and of its target."""
        return {name: batch[min(self.item, len(batch) - 1)] for name, batch in self.batches.items()}

    @property
    def subject(self) -> Subject:
        """What the numbers of the sequence that is looked at depend on."""
        return Subject(self.settings, self.item)

    @property
    def text(self) -> str:
        """The line of the text that is looked at."""
        lines = lines_of(self.settings.text)
        return lines[min(self.item, len(lines) - 1)]

    def at(self, item: int) -> Run:
        """The same run, looked at in another sequence of its batch, or the last one."""
        return replace(self, item=min(item, self.n_batch_items - 1))

    def alone(self) -> Run:
        """The sequence that is looked at as the only one of its batch, for who looks at one: the same numbers.

        Its stages are views of those of the batch, and what was one tensor still is.
        """
        if self.n_batch_items == 1:
            return self
        one = slice(self.item, self.item + 1)
        values = {id(stage.value): stage.value[one] for stage in self.trace.values() if stage.dims[0][0] == "B"}
        stages = {
            path: replace(stage, value=values[id(stage.value)], dims=(("B", 1), *stage.dims[1:]))
            if id(stage.value) in values
            else stage
            for path, stage in self.trace.items()
        }
        return replace(
            self,
            trace=Trace(stages),
            masks=_of_item(self.masks, one),
            promised=_of_item(self.promised, one),
            batches={name: (sequence,) for name, sequence in self.tokens.items()},
            published={
                path: numbers[one] if self.trace[path].dims[0][0] == "B" else numbers
                for path, numbers in self.published.items()
            },
        )

    def explain(self, path: str) -> Explanation:
        """What a person is told about a stage or a parameter."""
        return explain(self.trace, path)

    def nearest(self, selection: Selection) -> Selection:
        """The selection with every place that this run does not have replaced by the nearest that it has."""
        path = with_layer(self.trace, selection.stage, selection.layer)
        n_rows, n_columns = self.trace[path].value.shape[-2:]
        n_heads = self.n_heads(path) or self.settings.n_heads
        return replace(
            selection,
            stage=without_layer(path),
            layer=layer_of(path) if "layers." in path else selection.layer,
            head=min(selection.head, n_heads - 1),
            query=min(selection.query, n_rows - 1),
            key=min(selection.key, n_columns - 1),
            batch=min(selection.batch, self.n_batch_items - 1),
        )

    def operands(self, path: str) -> tuple[Operand, ...]:
        """The inputs of a stage, with the bias where the model adds one."""
        found = operands(self.trace, path)
        names = dict(self.model.named_parameters())
        biases = [
            Operand(operand.source.replace(".weight", ".bias"), "+", is_parameter=True, rows=operand.rows)
            for operand in found
            if operand.is_parameter and operand.transposed
        ]
        return (*found, *(bias for bias in biases if bias.source in names))

    def axes(self, path: str) -> tuple[Axis, Axis]:
        """The rows and columns of a stage, with their labels."""
        rows, columns = self.trace[path].dims[-2:]
        return self._axis(path, *rows), self._axis(path, *columns)

    def token_id(self, path: str, row: int) -> int:
        """The id of the token in a row of a stage.

        Raises:
            ValueError: the rows of the stage are not tokens.
        """
        sequence = self.axes(path)[0].sequence
        if sequence is None:
            raise ValueError(f"the rows of {path} are not tokens")
        return self.tokens[sequence].ids[row]

    def names_of(self, n_heads: int) -> tuple[str, ...]:
        """What each of the heads of an attention does, "" where nothing is known."""
        return (self.head_names + ("",) * n_heads)[:n_heads]

    def head_label(self, head: int) -> str:
        """``head 2 · same token``."""
        name = self.names_of(head + 1)[head]
        return f"head {head} · {name}" if name else f"head {head}"

    def position(self, path: str, row: int, batch: int) -> int:
        """Where the token in a row of a stage stands, as the model counts."""
        positions = self.positions.get(self.axes(path)[0].sequence or "source")
        return row if positions is None else int(positions[min(batch, len(positions) - 1), row])

    @property
    def positions(self) -> Mapping[SequenceName, Tensor]:
        """Where the tokens of each sequence stand, (B, T), without those in which it is simply 0, 1, 2, ..."""
        return _positions(self.settings, self.batches)

    def n_heads(self, path: str) -> int | None:
        """The number of heads of a stage; None where it has no head axis."""
        return dict(self.trace[path].dims).get("H")

    @property
    def n_batch_items(self) -> int:
        """How many sequences were computed at once."""
        return max(self.batch_size(path) for path in self.trace)

    def batch_size(self, path: str) -> int:
        """The number of batch items of a stage; 1 where it has no batch axis."""
        return dict(self.trace[path].dims).get("B", 1)

    def head_dim(self, path: str) -> int:
        """Width of one head of the attention that ``path`` belongs to."""
        return int(self.trace[f"{path.rpartition('.')[0]}.v"].value.shape[-1])

    def scales_scores(self, module: str) -> bool:
        """Whether an attention divided its scores by √d_k."""
        attention = self.model.get_submodule(module)
        return not isinstance(attention, MultiHeadAttention) or attention.scale_scores

    def activation(self, path: str) -> str:
        """The activation function of the feed-forward network that ``path`` belongs to."""
        return str(self.model.get_submodule(path.rpartition(".")[0]).activation)

    def layer_norm_eps(self, path: str) -> float:
        """What the layer norm at ``path`` adds to the variance."""
        return float(self.model.get_submodule(path).eps)  # type: ignore[arg-type]  # a module's attributes are untyped

    def mask_of(self, module: str) -> CombinedMask:
        """The masks of one attention."""
        return self.masks.get(module, CombinedMask({}))

    def blocked_by(self, module: str, query: int, key: int, batch: int, head: int) -> tuple[str, ...]:
        """The names of the masks that block a cell of an attention."""
        return self.mask_of(module).blocked_by(query, key, batch, head)

    def _axis(self, path: str, symbol: str, size: int) -> Axis:
        sequence = self._sequence(path, symbol)
        if sequence is not None:
            return Axis(_AXIS_NAMES[symbol], self.tokens[sequence].labels[:size], sequence)
        if symbol == "V":
            return Axis("vocabulary", self.vocabulary, None)
        parts = {"3*": "qkv", "2*": "kv"}.get(symbol[:2], ("",))
        return Axis(_AXIS_NAMES.get(symbol, "column"), side_by_side(parts, size), None)

    def _sequence(self, path: str, symbol: str) -> SequenceName | None:
        """Which sequence of tokens an axis runs over."""
        if symbol not in ("T", "Tq", "Tk", "S"):
            return None
        of_target = "target" in self.batches and not path.startswith("encoder.")
        crosses = symbol == "Tk" and self.is_cross_attention(path.rpartition(".")[0])
        return "target" if of_target and not crosses else "source"

    def is_cross_attention(self, module: str) -> bool:
        """Whether an attention's keys come from another tensor than its queries."""
        inputs = [f"{module}.query_input", f"{module}.key_input"]
        if all(path in self.trace for path in inputs):
            return self.trace[inputs[0]].value is not self.trace[inputs[1]].value
        return "target" in self.batches


def compute_run(settings: Settings) -> Run:
    """Run the model, or the worked example, that the settings name.

    Raises:
        ValueError: there is nothing to run or too much; the message is one sentence with what to do.
    """
    if settings.weights in WORKED_EXAMPLES:
        return _run_example(settings, WORKED_EXAMPLES[settings.weights]())
    if problem := problem_with(settings):
        raise ValueError(problem)
    if settings.weights == TRAINED:
        checkpoint = checkpoint_of(settings)
        settings = replace(settings, **shape_of(checkpoint))
        model = model_with(checkpoint.recipe, checkpoint.weights)
        return _record(settings, model, encode_trained(settings), head_names=())
    return _run_model(settings, encode(settings))


def encoded(settings: Settings) -> Encoded:
    """The tokens that the model gets for some settings.

    Raises:
        ValueError: a text is too long, or none of the task that the model was trained on.
    """
    if problem := problem_with_text(settings):
        raise ValueError(problem)
    return encode_trained(settings) if settings.weights == TRAINED else encode(settings)


def repeat(run: Run) -> None:
    """Run the model again on the same tokens and masks, for whoever records or differentiates it."""
    _forward(run.model, run.batches, run.masks, run.positions)


def side_by_side(parts: Sequence[str], size: int) -> tuple[str, ...]:
    """Labels of columns in which equal parts lie side by side: ``q 0``, ``q 1``, ..., ``k 0``, and so on."""
    width = size // len(parts)
    return tuple(f"{parts[i // width]} {i % width}".strip() for i in range(size))


def without_layer(path: str) -> str:
    """``encoder.layers.0.self_attention.scores`` -> ``encoder.self_attention.scores``."""
    return re.sub(r"layers\.\d+\.", "", path)


def with_layer(trace: Trace, stage: str, layer: int) -> str:
    """The path of a stage in the layer nearest to ``layer``.

    Where the trace has no such stage, of the most similar one: the same in the other half of the model, one of the
    same name, the attention weights, or the first.
    """
    likenesses = (str, lambda path: path.partition(".")[2], lambda path: path.rpartition(".")[2])
    for likeness in likenesses:
        alike = [path for path in trace if likeness(stage) and likeness(without_layer(path)) == likeness(stage)]
        if alike:
            return alike[min(layer, len(alike) - 1)]
    modules = attention_modules(trace)
    return f"{modules[min(layer, len(modules) - 1)]}.weights" if modules else next(iter(trace))


def layer_of(path: str) -> int:
    """The layer's number in a path; 0 where it has none."""
    found = re.search(r"layers\.(\d+)\.", path)
    return int(found[1]) if found else 0


def _run_model(settings: Settings, encoded: Encoded) -> Run:
    config = _config(settings, encoded)
    model = build_model(config, settings.weights, settings.seed)
    if settings.dropout > 0:
        model.train()
        seed_dropout(model, settings.seed)
    return _record(settings, model, encoded, head_names(config, settings.weights))


def _record(settings: Settings, model: Transformer, encoded: Encoded, head_names: tuple[str, ...]) -> Run:
    """Run a model under the masks that the settings ask for."""
    model.requires_grad_(False)
    batches: dict[SequenceName, tuple[TokenSequence, ...]] = {"source": encoded.sources}
    if encoded.targets is not None:
        batches["target"] = encoded.targets
    promised = promised_masks(settings, batches)
    masks = _by_layer(applied_masks(settings, promised))
    with torch.inference_mode(), record(model, edits(settings, masks)) as trace:
        _forward(model, batches, masks, _positions(settings, batches))
    vocabulary = encoded.output_vocabulary.labels
    return Run(settings, model, trace, masks, _by_layer(promised), batches, vocabulary, head_names)


def _config(settings: Settings, encoded: Encoded) -> TransformerConfig:
    return TransformerConfig(
        architecture=settings.architecture,
        vocab_size=len(encoded.vocabulary),
        target_vocab_size=None if encoded.target_vocabulary is None else len(encoded.target_vocabulary),
        d_model=settings.d_model,
        n_heads=settings.n_heads,
        head_dim=settings.head_dim or None,
        d_ff=settings.d_ff,
        n_layers=settings.n_layers,
        n_decoder_layers=settings.depth if settings.architecture == "encoder-decoder" else None,
        dropout=settings.dropout,
        norm=settings.norm,
        positions=settings.positions,
        activation=settings.activation,
        scale_scores=settings.scale_scores,
        final_norm=settings.final_norm,
        qkv_bias=settings.qkv_bias,
        fused_qkv=settings.fused_qkv,
        output_bias=settings.output_bias,
        layer_norm_eps=settings.layer_norm_eps,
        unembedding_bias=settings.unembedding_bias,
    )


def _by_layer(masks: Masks) -> dict[str, CombinedMask]:
    """The masks of each attention, by its whole path."""
    return {
        f"{stack}.layers.{layer}.{attention}": mask
        for kind, in_layers in masks.items()
        for stack, _, attention in [kind.partition(".")]
        for layer, mask in enumerate(in_layers)
    }


def _of_item(masks: Mapping[str, CombinedMask], one: slice) -> dict[str, CombinedMask]:
    """The masks of one sequence of a batch; attentions that share them still do."""
    found = {
        id(mask): CombinedMask({name: _part(part, one) for name, part in mask.parts.items()})
        for mask in masks.values()
    }
    return {path: found[id(mask)] for path, mask in masks.items()}


def _part(mask: Tensor, one: slice) -> Tensor:
    return mask[one] if mask.dim() == 4 and len(mask) > 1 else mask


def _forward(
    model: TracedModule,
    batches: Mapping[SequenceName, Sequence[TokenSequence]],
    masks: Mapping[str, CombinedMask],
    positions: Mapping[SequenceName, Tensor],
) -> None:
    ids = [torch.tensor([sequence.ids for sequence in batch]) for batch in batches.values()]
    counted = {f"{name}_positions": of_sequence for name, of_sequence in positions.items()}
    model(*ids, **_mask_arguments(masks), **counted)


def _positions(
    settings: Settings, batches: Mapping[SequenceName, Sequence[TokenSequence]]
) -> dict[SequenceName, Tensor]:
    """Counted from the first token that is no padding, unless the fault chosen is to count the padding too."""
    if settings.fault == "padding_counted":
        return {}
    is_padding = {
        name: torch.tensor([sequence.is_padding for sequence in batch]) for name, batch in batches.items()
    }
    return {name: positions_from_first_token(pads) for name, pads in is_padding.items() if pads[:, 0].any()}


def _mask_arguments(masks: Mapping[str, CombinedMask]) -> dict[str, list[Tensor | None]]:
    """The masks, one per layer, as the arguments of the model."""
    has_target = any(without_layer(path) == "decoder.cross_attention" for path in masks)
    arguments: dict[str, list[Tensor | None]] = {}
    for path, mask in masks.items():
        name = _ARGUMENTS[without_layer(path)] if has_target else "source_mask"
        arguments.setdefault(name, []).append(mask.allowed)
    return arguments


_ARGUMENTS = {
    "encoder.self_attention": "source_mask",
    "decoder.self_attention": "target_mask",
    "decoder.cross_attention": "memory_mask",
}


def edits(settings: Settings, masks: Mapping[str, CombinedMask]) -> dict[str, Edit]:
    """What breaks the model where that was asked for."""
    if settings.fault not in FAULTS:
        return {}
    return dict(FAULTS[settings.fault].edits([path for path, mask in masks.items() if mask.names]))


def _run_example(settings: Settings, example: WorkedExample) -> Run:
    """Run a worked example under its own mask, or under none where none is chosen."""
    own_mask = example.mask if settings.mask else None
    trace = example.run(mask=own_mask)
    parts = {} if own_mask is None else {example.mask_name: own_mask}
    masks = {module: CombinedMask(parts) for module in attention_modules(trace)}
    published = {} if example.mask is not None and own_mask is None else example.expected
    batches = {name: (_numbered(name, n_tokens),) for name, n_tokens in example.sequences.items()}
    model = example.module.requires_grad_(False)
    return Run(settings, model, trace, masks, masks, batches, (), (), example, published)


def _numbered(name: SequenceName, n_tokens: int) -> TokenSequence:
    """The unnamed vectors of a worked example: x0, x1, ... and, for a target, y0, y1, ..."""
    labels = tuple(f"{_LETTERS[name]}{i}" for i in range(n_tokens))
    return TokenSequence(labels, tuple(range(n_tokens)), (False,) * n_tokens, labels)


_LETTERS: dict[SequenceName, str] = {"source": "x", "target": "y"}
_AXIS_NAMES = {"T": "token", "S": "token", "Tq": "query", "Tk": "key", "V": "vocabulary"}
