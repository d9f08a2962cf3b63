"""What can be said of any stage from the expression that it was computed by, whatever its name is."""

from __future__ import annotations

import torch

from model.dataflow import Constant, StageInput, evaluate, inputs_of, operations_of
from visualizer.runs.run import Run


def words_on(run: Run, path: str) -> str:
    """One sentence on what a stage was computed from, and by which operations."""
    node = run.dataflow[path]
    if isinstance(node, Constant):
        return "This stage comes from outside: the model was given it."
    inputs = dict.fromkeys(part.path if isinstance(part, StageInput) else part.name for part in inputs_of(node))
    operations = list(operations_of(node))
    if not operations:
        return f"This stage is the very tensor of {', '.join(inputs)}."
    return f"This stage is computed from {', '.join(inputs) or 'what is given'} by {', then '.join(operations)}."


def is_its_expression(run: Run, path: str) -> tuple[str, bool]:
    """Whether a stage, computed again from its inputs by the recorded operations, is the same bit by bit."""
    node = run.dataflow[path]
    with torch.no_grad():
        again = evaluate(node, run.trace, run.model)
    operations = " → ".join(operations_of(node)) or "no operation"
    same = torch.equal(again, run.trace[path].value)
    return f"computed again from its inputs by {operations}: {'equal' if same else 'different'}", same
