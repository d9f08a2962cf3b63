"""A run of the model as a trace of any model, to be written as a recording."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import replace

from headlight.attentions import Attention
from headlight.recording import Texts
from headlight.roles import with_named_roles
from headlight.stages import Stage
from headlight.trace import Trace
from model import Trace as Recorded
from model.dataflow import Node, Operation, ParameterInput, StageInput, inputs_of, operations_of
from visualizer.runs.paths import attention_modules
from visualizer.runs.run import Run
from visualizer.settings.fields import WORKED_EXAMPLES

GIVEN, ALIAS = "given", "alias"
"""The operations of a stage that comes from outside, and of one that is the very tensor of another."""

_REMARKS: Mapping[str, str] = {"after_softmax": "changed_after_softmax", "before_softmax": "multiplied_by_zero"}


def as_trace(run: Run) -> Trace:
    """The attentions, the stages, the parameters and the tokens of a run; its tensors are not copied.

    Of a checkpoint no stages and parameters, but all sequences of a batch.
    """
    if run.attentions:
        seen = Trace(list(run.attentions.values()))
        seen.texts = Texts(_texts(run, "source"), _texts(run, "target"))
        return seen
    stages = {path: _stage(run, path, run.dataflow[path]) for path in run.trace}
    attentions = with_named_roles([_attention(run, module) for module in attention_modules(run.trace)])
    trace = Trace(attentions, stages=stages)
    used = {
        part.name for node in run.dataflow.values() for part in inputs_of(node) if isinstance(part, ParameterInput)
    }
    trace.parameters = {name: value for name, value in run.parameters.items() if name in used}
    if run.settings.weights not in WORKED_EXAMPLES:  # their vectors are no tokens
        trace.texts = Texts(_texts(run, "source"), _texts(run, "target"))
    return trace


def as_file(run: Run) -> io.BytesIO:
    """The same as a ``.headlight`` file."""
    return io.BytesIO(as_trace(run).to_bytes(parameters=True))


def _stage(run: Run, path: str, node: Node) -> Stage:
    stage = run.trace[path]
    names = [part.path if isinstance(part, StageInput) else part.name for part in inputs_of(node)]
    *folded, operation = list(operations_of(node)) or [ALIAS if names else GIVEN]
    return Stage(
        path=path,
        module=stage.module_path,
        operation=operation,
        inputs=tuple(names),
        folded=tuple(folded),
        value=stage.value,
        node=node if isinstance(node, Operation) else None,
    )


def _attention(run: Run, module: str) -> Attention:
    remarks = [_REMARKS[run.settings.fault]] if run.settings.fault in _REMARKS else []
    found = attention_in(run.trace, module)
    has_vectors = found.query is not None
    return replace(
        found,
        scale=found.scale if has_vectors and run.scales_scores(module) else 1.0,
        dropout=run.settings.dropout if f"{module}.dropped_weights" in run.trace else 0.0,
        remarks=(*remarks, *found.remarks),
    )


def attention_in(trace: Recorded, module: str) -> Attention:
    """One attention of our model, from its stages.

    Raises:
        ValueError: its weights are no stage.
    """
    stages = {name: trace.get(f"{module}.{name}" if module else name) for name in _NAMES}
    values = {name: None if stage is None else stage.value.detach() for name, stage in stages.items()}
    weights = values["weights"]
    if weights is None:
        raise ValueError(f"{module} has no weights")
    batch, n_heads, n_queries, n_keys = weights.shape
    query, key, value = values["q"], values["k"], values["v"]
    return Attention(
        path=module or "attention",
        module=module,
        kind="softmax",
        query_shape=() if query is None else tuple(query.shape),
        key_shape=() if key is None else tuple(key.shape),
        value_shape=() if value is None else tuple(value.shape),
        shape=(batch, n_heads, n_queries, n_keys),
        key_heads=n_heads,
        dtype=weights.dtype,
        scale=1.0 if query is None else 1 / math.sqrt(query.shape[-1]),
        is_causal=False,
        dropout=0.0,
        allowed=values["mask"],
        weights=weights,
        context=values["context"],
        query=query,
        key=key,
        value=value,
        remarks=() if values["modified_scores"] is None else ("scores_changed",),
    )


_NAMES = ("q", "k", "v", "mask", "modified_scores", "weights", "context")


def _texts(run: Run, sequence: str) -> tuple[tuple[str, ...], ...]:
    found = dict(run.batches).get("target" if sequence == "target" else "source", ())
    return tuple(tuple(tokens.tokens) for tokens in found)
