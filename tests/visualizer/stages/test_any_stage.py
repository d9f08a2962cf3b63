"""A stage of a module that was never seen before has a full page."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import nn
from torch.nn import functional as F

from model import TracedModule, record
from model.dataflow import Constant, Operation, ParameterInput, StageInput
from tests.visualizer.sample_runs import run_of
from visualizer.components.stage_map.model_map import model_map
from visualizer.glossary import pieces
from visualizer.runs.run import Run
from visualizer.stages.derivations import Cell
from visualizer.stages.entry import StageEntry
from visualizer.stages.expressions import words_on_node
from visualizer.stages.panels import operand_panel, stage_panel
from visualizer.stages.registry import (
    ENTRIES,
    checks,
    derive,
    entry_of,
    explanation,
    formula_of,
    numpy_line,
    on_map,
    operands_of,
)
from visualizer.stages.source_lines import code_line


class Toy(TracedModule):
    """Every kind of operation once, under names of which some are those of other stages."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 6)
        self.linear = nn.Linear(6, 6, bias=False)
        self.norm = nn.LayerNorm(6)
        self.gain = nn.Parameter(torch.arange(6.0))

    def forward(self, ids, may_attend):
        tap = self.tap
        rows = tap("rows", self.table(ids), "B T D")
        mixed = tap("mixed", F.silu(self.linear(rows)) * self.gain, "B T D")
        left, right = mixed.chunk(2, -1)
        heads = tap("heads", torch.unflatten(right, -1, (3, 1)).transpose(1, 2), "B H T Dh")
        scores = tap("scores", left @ left.mT / math.sqrt(3), "B T T2")
        blocked = tap("blocked", scores.masked_fill(~may_attend, -math.inf), "B T T2")
        weights = tap("weights", blocked.softmax(-1), "B T T2")
        total = tap("total", self.norm(weights @ rows + rows), "B T D")
        tap("sum_of_all", total.sum(-1), "B T")
        tap("vector", self.gain.cumsum(0), "D")
        return tap("same", heads, "B H T Dh")


def toy_run() -> Run:
    """A run of the toy with the tokens of another."""
    torch.manual_seed(0)
    model = Toy().eval().requires_grad_(False)
    inputs = torch.tensor([[1, 4, 0, 2]]), torch.ones(4, 4, dtype=torch.bool).tril()
    with torch.no_grad(), record(model) as trace:
        model(*inputs)
    return replace(
        run_of("no mask"),
        model=model,
        trace=trace,
        masks={},
        promised={},
        vocabulary=(),
        forward=lambda run: model(*inputs),
    )


@pytest.fixture(scope="module")
def run():
    return toy_run()


def test_it_has_a_title_words_a_line_of_code_and_a_place_on_the_map(run):
    assert set(model_map(on_map(run)).paths) == set(run.trace)
    for path, stage in run.trace.items():
        assert entry_of(run, path).title
        assert stage.name in code_line(stage).code
        assert numpy_line(run, path) is None
        assert "".join(piece.text for piece in pieces(explanation(run, path, "exact"))).endswith(".")
    assert explanation(run, "mixed", "plain") == (
        "This stage is computed from rows, linear.weight, gain by linear, then silu, then mul."
    )


def test_its_inputs_and_it_are_drawn(run):
    for path in run.trace:
        stage_panel(run, path, head=0, batch=0)
        for operand in operands_of(run, path):
            operand_panel(run, operand, head=0, batch=0)

    def drawn(path):
        return [(operand.operator, operand.source, operand.transposed) for operand in operands_of(run, path)]

    assert drawn("mixed") == [("", "rows", False), ("×", "linear.weight", True), ("⊙", "gain", False)]
    assert drawn("scores") == [("", "mixed", False), ("×", "mixed", True)]
    assert drawn("same") == [("", "heads", False)]


def test_it_is_checked_by_computing_it_again(run):
    for path in run.trace:
        found = checks(run, path)
        assert all(check.holds for check in found), path
        assert found[0].text.startswith("computed again from its inputs by")
    with torch.no_grad(), record(run.model, {"mixed": lambda value: value + 1}) as trace:
        run.forward(run)
    assert checks(replace(run, trace=trace), "mixed")[0].holds is False
    assert checks(replace(run, trace=trace), "scores")[0].holds is True


def test_every_number_of_it_is_derived(run):
    for path, stage in run.trace.items():
        if path == "vector":  # of all numbers before
            assert not derive(run, Cell(path, 0, 0, 0, 1))
            continue
        n_rows, n_columns = (1, 1, *stage.value.shape)[-2:]
        for row, column in product(range(n_rows), range(n_columns)):
            (found,) = derive(run, Cell(path, 0, 0, row, column))
            assert found.agrees, (path, row, column, found.steps)
    (score,) = derive(run, Cell("scores", 0, 0, 2, 1))
    assert [terms.operator for terms in score.rows] == ["", "×", "="]
    (moved,) = derive(run, Cell("heads", 0, 2, 1, 0))
    assert moved.steps[0].text == "mixed[0, 1, 5]", "the third number of the right half of token 1"
    (looked_up,) = derive(run, Cell("rows", 0, 0, 1, 3))
    assert looked_up.steps[0].text == "table.weight[4, 3]"


def test_what_its_operation_promises_is_checked(run):
    weights, looked_up = ([check.text for check in checks(run, path)] for path in ("weights", "rows"))
    assert weights[1].startswith("every row sums to one")
    assert weights[2].startswith("softmax of the blocked recomputed in float64")
    assert len(looked_up) == 2, "that it can be computed again, and has no NaN"


def test_one_entry_says_everything_else(run, monkeypatch):
    """Its title, colour, text, formula and place; what the entry leaves out still follows from the operation."""
    entry = StageEntry(
        "weights",
        "Shares of the rows",
        "weights",
        exact="A [softmax] of {d_model} scores.\ndropout: Some are dropped.",
        formula="A = softmax(S)",
        numbers="shares",
        block="attention",
        is_telling=True,
    )
    monkeypatch.setitem(ENTRIES, "tests/visualizer/stages/test_any_stage.py", (entry,))
    assert explanation(run, "weights", "exact") == "A [softmax] of 4 scores."
    assert formula_of(run, "weights") == "A = softmax(S)"
    (shown,) = (block for block in model_map(on_map(run)).blocks if block.telling.path == "weights")
    assert (shown.label, shown.role) == ("attention", "weights")
    panel = stage_panel(run, "weights", head=0, batch=0)
    assert (panel.title, panel.palette, panel.bounds) == ("Shares of the rows", "sequential", (0.0, 1.0))
    (share,) = derive(run, Cell("weights", 0, 0, 2, 1))
    assert share.agrees
    assert share.title == "weights of token 2, column 1: softmax along the row"
    assert numpy_line(run, "weights").code.splitlines()[-1].startswith("weights = exponentials / ")
    assert [check.holds for check in checks(run, "weights")] == [True, True, True]
    assert entry_of(run, "blocked").title == "Blocked", "no other stage is described by it"


def page(path: str) -> None:
    """A script that draws the page of one stage."""
    from tests.visualizer.stages.test_any_stage import toy_run
    from visualizer.settings.settings import Selection
    from visualizer.state import state
    from visualizer.views.step import render

    state.load()
    render(toy_run(), Selection(stage=path))


@pytest.mark.parametrize("path", ["rows", "heads", "weights", "total", "sum_of_all", "vector"])
def test_its_page_is_drawn(run, path):
    app = AppTest.from_function(page, args=(path,)).run(timeout=30)
    assert not app.exception
    assert entry_of(run, path).title in app.markdown[0].value


X, W, B, GIVEN = StageInput("x"), ParameterInput("w"), ParameterInput("b"), Constant(torch.zeros(2, 2))


@pytest.mark.parametrize(
    ("node", "explanation"),
    [
        (Operation("linear", (X, W, B), F.linear), "Each row of x times w, transposed, plus b."),
        (Operation("linear", (X, W), F.linear), "Each row of x times w, transposed."),
        (Operation("linear", (GIVEN, W, B), F.linear), "This stage is computed from w, b by linear."),
        (Operation("embedding", (GIVEN, W), F.embedding), "One row of w for each token, looked up by number."),
        (Operation("add", (X, B), torch.add, keywords={"alpha": 2}), "This stage is computed from x, b by add."),
        (
            Operation("linear", (Operation("transpose", (X,), torch.transpose), W), F.linear),
            "This stage is computed from x, w by linear.",
        ),
        (
            Operation("multi_head_attention_forward", (X, X, X, W, B), F.multi_head_attention_forward),
            "Multi-head attention in one call of PyTorch, from the projections to the output, of x.",
        ),
        (
            Operation("scaled_dot_product_attention", (X, X, GIVEN), F.scaled_dot_product_attention),
            "Scores, masks, softmax and weighted values in one call of PyTorch, of x.",
        ),
    ],
)
def test_an_operation_alone_has_a_sentence_where_that_says_everything(node, explanation):
    assert words_on_node(node) == explanation
