"""Every line of NumPy, executed on the recorded inputs of its stage, gives the stage."""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.masks.language.scores import bias_table
from model import Dropout, record, seed_dropout
from tests.visualizer.sample_runs import BASE, VARIANTS, run_of
from visualizer.runs.compute import compute_run
from visualizer.settings.fields import TRAINED, WORKED_EXAMPLES
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings
from visualizer.stages.numpy_lines import notes
from visualizer.stages.registry import ENTRIES, entry_of, numpy_line

MORE = {
    "dropout with pre-norm": replace(
        BASE, architecture="encoder-decoder", norm="pre", dropout=0.3, activation="gelu"
    ),
    "positions with gaps": replace(BASE, positions="learned", pad_side="left"),
    "no positions on the left": replace(BASE, positions="none", pad_side="left"),
    "several texts": replace(BASE, text="the cat\nthe dog saw the cat\na mat", pad=0),
    "trained": fitted(Settings(weights=TRAINED, task="reverse", text="light")),
}
TOLERANCE = 1e-12


def in_float64(name):
    """A run whose model, and so every stage, is in double precision, and what its dropouts kept, call by call."""
    if name in WORKED_EXAMPLES:
        return run_of(name), {}
    run = compute_run((VARIANTS | MORE)[name])
    run = replace(run, model=deepcopy(run.model).double())  # other runs may share the model
    kept = defaultdict(list)
    for path, module in run.model.named_modules():
        if isinstance(module, Dropout):
            module.register_forward_pre_hook(lambda module, x, path=path: kept[path].append(draw_again(module, *x)))
    seed_dropout(run.model, run.settings.seed)
    with torch.no_grad(), record(run.model) as trace:
        run.forward(run)
    return replace(run, trace=trace), kept


def draw_again(module, x):
    """Draw the mask that a dropout is about to apply, from a copy of its generator; None if it is not active."""
    if not module.active:
        return None
    copy = torch.Generator()
    copy.set_state(module.generator.get_state())
    return torch.empty_like(x).bernoulli_(1 - module.p, generator=copy)


def from_outside(run, path, kept):
    """The variables of a line that are no stages and no parameters."""
    module = run.trace[path].module_path
    sequence = run.axes(path)[0].sequence or "source"
    names = {"ids": torch.tensor([tokens.ids for tokens in run.batches[sequence]])}
    if (attention := run.model.get_submodule(module)) and hasattr(attention, "n_heads"):
        names["bias"] = bias_table(attention.n_heads)
    if sequence in run.positions:
        names["positions"] = run.positions[sequence]
    if module in run.masks and run.masks[module].allowed is not None:
        names["mask"] = run.masks[module].allowed
    if run.example is not None:
        for variables in (("x",), ("query", "key", "value"), ("q", "k", "v")):
            names |= dict(zip(variables, run.example.inputs, strict=False))
    draws = kept.get(f"{module}.dropout", ())
    earlier = [other for other in run.trace if other.rpartition(".")[0] == module and "dropped_output" in other]
    if draws and draws[0] is not None:
        names["keep"] = draws[earlier.index(path) if path in earlier else 0]
    return names


@pytest.mark.parametrize("name", [*VARIANTS, *MORE, *WORKED_EXAMPLES])
def test_every_line_gives_its_stage(name):
    run, kept = in_float64(name)
    for path, stage in run.trace.items():
        line = numpy_line(run, path)
        assert line is not None, path
        outside = from_outside(run, path, kept)
        names = {"np": np, "math": math}
        names |= {name: outside[name].numpy() for name in line.from_outside}
        names |= {name: read(run, source) for name, source in line.reads.items()}
        exec(line.code, names)  # written in the project, not by a person who uses it
        found, expected = names[stage.name], stage.value.numpy()
        assert found.shape == expected.shape, path
        assert found.dtype == expected.dtype, path
        differ = found != expected  # infinities are equal, not near
        difference = np.abs(found[differ].astype(float) - expected[differ])
        assert difference.max(initial=0.0) <= TOLERANCE * scale(expected), path


def read(run, source):
    if source in run.trace:
        return run.trace[source].value.numpy()
    return run.model.get_parameter(source).detach().numpy()


def scale(expected):
    """Return the number that 1e-12 is relative to: the largest magnitude of the stage, but at least one."""
    finite = expected[np.isfinite(expected)].astype(float)
    return max(1.0, np.abs(finite).max(initial=0.0))


@pytest.mark.parametrize("name", [*VARIANTS, *MORE, *WORKED_EXAMPLES])
def test_a_line_reads_what_it_names_and_assigns_its_stage(name):
    run = run_of(name) if name not in MORE else compute_run(MORE[name])
    for path, stage in run.trace.items():
        line = numpy_line(run, path)
        tree = ast.parse(line.code)
        assert ast.unparse(tree.body[-1]).startswith(f"{stage.name} = ")
        loaded = {
            node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        nodes = [node for statement in tree.body[:-1] for node in ast.walk(statement)]
        assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        assigned |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        assigned |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        assert loaded - assigned - {"np", "math", "abs", "int"} == {*line.reads, *line.from_outside}


def test_no_entry_is_left_over():
    runs = [run_of(name) for name in (*VARIANTS, *WORKED_EXAMPLES)]
    seen = {id(entry_of(run, path)) for run in runs for path in run.trace}
    assert [entry.name for entries in ENTRIES.values() for entry in entries if id(entry) not in seen] == []


def test_a_line_reads_like_the_formula():
    run = run_of("pre-norm")
    layer = "encoder.layers.1"
    lines = {name: numpy_line(run, f"{layer}.{name}").code for name in ("self_attention.scores", "residual1")}
    assert lines["self_attention.scores"] == "scores = q @ k.swapaxes(-1, -2)"
    assert lines["residual1"] == "residual1 = residual2 + self_attention_output"
    q_proj = numpy_line(run, f"{layer}.self_attention.q_proj")
    assert q_proj.code == "q_proj = query_input @ w_q.T + b_q"
    fused = run_of("fused q, k, v beside an encoder")
    module = "decoder.layers.1.cross_attention"
    lines = [numpy_line(fused, f"{module}.{name}").code for name in ("q_proj", "kv", "v_proj")]
    assert lines[0] == "q_proj = query_input @ w_qkv[0:16].T"
    assert lines[1] == "kv = key_input @ w_qkv[16:48].T"
    assert lines[2] == "v_proj = np.split(kv, 2, axis=-1)[1]"
    assert "w_qkv as nn.Linear stores it" in notes(numpy_line(fused, f"{module}.kv"))
    assert notes(q_proj) == "w_q as nn.Linear stores it, (d_out, d_in)"
    dropped = numpy_line(run_of("dropout"), "encoder.layers.0.dropped_output1")
    assert dropped.code == "dropped_output1 = self_attention_output * keep / (1 - 0.3)"
    assert "keep is True" in notes(dropped)
