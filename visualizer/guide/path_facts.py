"""The facts at a place of a run, for the words of a stop: all of it is read from the trace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from model.masks import with_leading_axes
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.guide.words import PathFacts
from visualizer.pictures.token_way import stack_of, taken_at
from visualizer.runs.paths import attention_modules, layer_of, with_layer
from visualizer.runs.run import Run
from visualizer.settings.fields import PRETRAINED, TRAINED, WORKED_EXAMPLES
from visualizer.settings.settings import Selection, default_stage
from visualizer.shares import percent
from visualizer.stages.checks import TOLERANCE
from visualizer.stages.informative import cell_at

say = texts_of(__name__)


def facts_at(run: Run, path: str, selection: Selection, *, on_its_way: bool = False) -> PathFacts:
    """Return the facts where the stage at ``path`` is looked at, for the token, head and column of the selection.

    Args:
        run: what is looked at.
        path: the stage.
        selection: the places in it.
        on_its_way: whether it is also said what the head writes to the residual stream; this takes long for a
            large model, and is computed anyway where the view of one token's way is drawn.
    """
    holding = set(_of_run(run))
    values = dict(_sizes(run))
    module = _attention_at(run, path)
    if module:
        if run.axes(path)[1].sequence is None:  # its columns are no keys: one that tells something is named
            selection = replace(selection, key=Selection().key, cell=False)
        attention = _Attention(run, module, selection)
        holding |= set(attention.conditions())
        values |= dict(attention.values())
        if on_its_way:
            values |= dict(attention.output())
    if (predicted := _predicted(run, selection)) is not None:
        values |= predicted
    return PathFacts(frozenset(holding), values)


def _of_run(run: Run) -> Iterator[str]:
    settings = run.settings
    yield "answers_in_place" if settings.architecture == "encoder" else "expects_next"
    if settings.weights not in WORKED_EXAMPLES:
        yield settings.weights
        if settings.weights not in (TRAINED, PRETRAINED):
            yield "untrained"
    if "probabilities" in run.trace:
        yield "predicts"
    is_ours = settings.weights != PRETRAINED
    if is_ours and settings.positions != "none":
        yield "positions"
    yield "two_texts" if settings.architecture == "encoder-decoder" else "one_text"
    if is_ours and settings.activation == "relu":
        yield "relu"
    yield "several_layers" if settings.depth > 1 else "one_layer"


def _sizes(run: Run) -> Iterator[tuple[str, str]]:
    if run.settings.weights in WORKED_EXAMPLES:
        return
    if run.settings.weights != PRETRAINED:
        yield "d_model", str(run.settings.d_model)
    if any(path.endswith("inputs.scaled_embedding") for path in run.trace):
        yield "embedding_scale", number(math.sqrt(run.settings.d_model))
    yield "n_layers", str(run.settings.depth)
    yield "vocabulary", f"{len(run.vocabulary):,}"


def _attention_at(run: Run, path: str) -> str:
    """The attention that a stage is of, or the one that the masks are for in its layer; empty without any."""
    modules = attention_modules(run.trace)
    module = run.trace[path].module_path
    if module in modules or not modules:
        return module if module in modules else ""
    usual = with_layer(run.trace, default_stage(run.settings.architecture), layer_of(path))
    return usual.rpartition(".")[0]


class _Attention:
    """One attention of a run as a token looks through one of its heads."""

    def __init__(self, run: Run, module: str, selection: Selection) -> None:
        self.run, self.module = run, module
        self.cell = cell_at(run, f"{module}.weights", selection)
        self.rows, self.columns = run.axes(f"{module}.weights")

    def conditions(self) -> Iterator[str]:
        names = self.run.mask_of(self.module).names
        yield from (name for name in ("causal", "padding") if name in names)
        yield "several_heads" if self.weights.shape[1] > 1 else "one_head"
        if where_repeated(self.rows, self.cell.row):
            yield "repeated"
        yield "inside" if self.next() else "at_end"
        if len(set(self.columns.labels)) < len(self.columns.labels):
            yield "repeats"
        batch, head, row = self.cell.batch, self.cell.head, self.cell.row
        rounding = 1e-2 if self.run.attentions else TOLERANCE  # those of a checkpoint may be of bfloat16
        if abs(float(self.weights[batch, head, row].sum()) - 1) < rounding:
            yield "sums_to_one"
        if (allowed := self.allowed()) is None:
            yield "unmasked"
            return
        yield "masked"
        yield "sees_all" if bool(allowed[row].all()) else "blocked"
        masked = self.run.trace.get(f"{self.module}.masked_scores")
        if masked is not None and bool(masked.value[batch, head][~allowed].isneginf().all()):
            yield "hides"

    def next(self) -> str:
        """The token that follows in the text; empty after the last one, which padding may follow."""
        after = self.cell.row + 1
        if after == len(self.rows.labels) or not self.rows.sequence:
            return ""
        return "" if self.run.tokens[self.rows.sequence].is_padding[after] else self.rows.labels[after]

    @property
    def weights(self) -> Tensor:
        return self.run.trace[f"{self.module}.weights"].value

    def seen(self) -> Tensor | None:
        """Return the keys that the token may see, (Tk); None without a mask that blocks anything."""
        found = self.allowed()
        return None if found is None else found[self.cell.row]

    def allowed(self) -> Tensor | None:
        """Return the keys that each token may see, (Tq, Tk); None without a mask that blocks anything."""
        stage = self.run.trace.get(f"{self.module}.mask")
        if stage is None or bool(stage.value.all()):
            return None
        mask = with_leading_axes(stage.value)
        of_item = mask[min(self.cell.batch, len(mask) - 1)]
        return of_item[min(self.cell.head, len(of_item) - 1)].expand(len(self.rows.labels), -1)

    def earlier(self) -> Iterator[tuple[str, str]]:
        """A token halfway to this one, and how many keys it sees, where those are fewer."""
        allowed, place = self.allowed(), self.cell.row // 2
        if allowed is not None and allowed[place].sum() < allowed[self.cell.row].sum():
            yield "earlier", self.rows.labels[place]
            yield "earlier_at", where_repeated(self.rows, place)
            yield "n_earlier", str(int(allowed[place].sum()))

    def values(self) -> Iterator[tuple[str, str]]:
        run, module, cell = self.run, self.module, self.cell
        yield "token", self.rows.labels[cell.row]
        yield "token_at", where_repeated(self.rows, cell.row)
        yield "position", str(run.position(f"{module}.weights", cell.row, cell.batch))
        if follows := self.next():
            yield "next", follows
        yield "key", self.columns.labels[cell.column]
        yield "key_at", where_repeated(self.columns, cell.column)
        yield "key_position", str(cell.column)
        yield "n_tokens", str(len(self.rows.labels))
        yield "n_keys", str(len(self.columns.labels))
        if self.rows.sequence and run.settings.weights not in WORKED_EXAMPLES:
            yield "id", str(run.tokens[self.rows.sequence].ids[cell.row])
        seen = self.seen()
        if seen is not None:
            yield "n_seen", str(int(seen.sum()))
            yield "n_blocked", str(int((~seen).sum()))
            yield from self.earlier()
        place = (cell.batch, cell.head, cell.row, cell.column)
        yield "weight", percent(float(self.weights[place]))
        if f"{module}.scores" in run.trace:
            yield "score", number(float(run.trace[f"{module}.scores"].value[place]))
        if f"{module}.scaled_scores" in run.trace and run.settings.scale_scores:
            yield "scaled_score", number(float(run.trace[f"{module}.scaled_scores"].value[place]))
        yield "n_heads", str(self.weights.shape[1])
        yield "head", str(cell.head)
        if name := run.names_of(cell.head + 1)[cell.head]:
            yield "head_name", name
        if f"{module}.q" in run.trace:
            yield "d_k", str(run.trace[f"{module}.q"].value.shape[-1])
        yield "layer", str(layer_of(module))
        yield from self.of_layer()

    def of_layer(self) -> Iterator[tuple[str, str]]:
        """Yield the width of the layer's feed-forward network, and the number of its hidden values above zero."""
        run, cell = self.run, self.cell
        activation = f"{self.module.rpartition('.')[0]}.feed_forward.activation"
        if activation in run.trace:
            row = run.trace[activation].value[cell.batch, cell.row]
            yield "d_ff", str(len(row))
            yield "n_active", str(int((row > 0).sum()))

    def output(self) -> Iterator[tuple[str, str]]:
        """The length of what the head writes to the residual stream."""
        run, cell = self.run, self.cell
        stack = stack_of(run, self.module)
        if stack is None:
            return
        way = taken_at(run.at(cell.batch).alone(), stack, cell.row).way
        for part, norms in zip(way.parts, way.norms, strict=True):
            if part.head == cell.head and part.path == f"{self.module}.weights":
                yield "written", number(float(norms[cell.row - way.first]))


def _predicted(run: Run, selection: Selection) -> dict[str, str] | None:
    """The answer at the token, and its probability; None where nothing is predicted."""
    if "probabilities" not in run.trace:
        return None
    value = run.trace["probabilities"].value
    row = value[min(selection.batch, len(value) - 1), min(selection.query, value.shape[1] - 1)]
    best = int(row.argmax())
    return {"answer": run.vocabulary[best], "probability": percent(float(row[best]))}


def where_repeated(axis: Axis, place: int) -> str:
    """`` at position 5``, where the token at a place stands at others too."""
    return say("at_position", place=place) if axis.labels.count(axis.labels[place]) > 1 else ""


def number(value: float) -> str:
    """``−3.14``: three digits, and a minus sign that is as long as a plus."""
    return f"{value:.3g}".replace("-", "−")
