"""Operations that are one known step: what it reads, its formula, and how a number came to be."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import headlight
from model.dataflow import inputs_of
from model.edits import zero
from tests.headlight.test_transformers_models import IDS, built
from visualizer.pictures.step import Place, equation, every_head
from visualizer.runs.operations_run import dims_of, run_of_operations
from visualizer.runs.watched import WatchedRun
from visualizer.settings.settings import Selection, Settings
from visualizer.stages import operations
from visualizer.stages.derivations import Cell
from visualizer.stages.informative import cell_at
from visualizer.stages.registry import checks, derive, entry_of, explanation_in_pieces, operands_of


@pytest.fixture(scope="module", params=["gpt2", "gptj", "llama"])
def run(request):
    model = built(request.param, attn_implementation="eager")
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(IDS)
    return run_of_operations(WatchedRun(trace, request.param))


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def steps_of(run):
    return run.seen.trace.patterns.values()


def last_cell(run, path, back):
    """The cell that is so many places before the last one, along each axis."""
    n_rows, n_columns = run.trace[path].value.shape[-2:]
    batch, head = run.batch_size(path) - 1, (run.n_heads(path) or 1) - 1
    row, column = max(0, n_rows - 1 - back), max(0, n_columns - 1 - back)
    return Cell(path, max(0, batch - back), max(0, head - back), row, column)


def test_every_number_of_a_step_is_followed_to_what_the_step_reads(run):
    for folded in steps_of(run):
        stage = run.trace[folded.path]
        for cell in (last_cell(run, folded.path, back) for back in (0, 1)):
            (found,) = derive(run, cell)
            assert found.agrees, folded.path
            number = float(stage.value[cell.index(stage.value.dim())])
            assert found.result == pytest.approx(number, rel=1e-4, abs=1e-6)
            leaves = {leaf for node in folded.inputs.values() for leaf in inputs_of(node)}
            names = {(getattr(leaf, "path", "") or leaf.name).rpartition(".")[2] for leaf in leaves}
            read = {
                step.text.partition("[")[0].rpartition(".")[2] for step in found.steps if step.text.endswith("]")
            }
            assert read <= names, folded.path
            assert read or folded.pattern.name == "gated_feed_forward", folded.path


def test_a_step_shows_what_it_reads_as_its_formula_sees_it(run):
    for folded in steps_of(run):
        picture = equation(run, Place(folded.path, 0, 1))
        assert [panel.title.partition(" = ")[0] for panel in picture.panels[:-1]] == list(folded.inputs)
        assert all(check.holds for check in checks(run, folded.path))
        if folded.pattern.name.startswith("rotary"):
            value = run.trace[folded.path].value
            assert picture.panels[0].array.shape == value.shape[-2:]
            assert not next(operations.read_by_step(run, folded)).is_whole


def test_what_a_mask_blocks_is_hatched_and_not_a_number_among_others(run):
    folded = next(folded for folded in steps_of(run) if folded.pattern.name == "masked_softmax")
    mask = equation(run, Place(folded.path, 0, 0)).panels[1]
    assert mask.blocked.tolist() == torch.ones(7, 7).triu(1).tolist()
    assert mask.bounds == (0.0, 1.0)
    (found,) = derive(run, Cell(folded.path, 0, 0, 4, 2))
    assert found.blocked == (False,) * 5 + (True,) * 2


def test_numbers_of_steps():
    folded = SimpleNamespace(numbers={"epsilon": 1e-6, "c": 0.125})
    assert operations.numbers_of_step(folded) == r"\epsilon = 1 \cdot 10^{-6},\quad c = 0.125"
    module, name = "a", SimpleNamespace(name="rms_norm", title="RMSNorm")
    step = SimpleNamespace(module=module, pattern=name)
    stage = SimpleNamespace(path="a.rms_norm_2", module_path="a", step=step)
    assert operations.label_of(stage) == "RMSNorm 2"


def watched(model, *inputs, tokens=()):
    """The operations of a model's pass as a run."""
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(*inputs)
    trace.tokens = tuple(tokens)
    return run_of_operations(WatchedRun(trace, "", vocabulary=[f"token {one}" for one in range(1000)]))


def test_of_a_table_the_rows_that_are_looked_up_are_drawn():
    run = watched(nn.Embedding(1000, 4), torch.tensor([[7, 900, 7]]), tokens="aba")
    table, found = equation(run, Place("embedding", 0, 0)).panels
    assert table.rows.labels == ("token 7", "token 900")
    assert table.rows.numbers == (7, 900)
    assert (found.array == table.array[[0, 1, 0]]).all()
    assert "1,000 × 4" in table.subtitle


def test_every_operation_is_drawn(run):
    for path, stage in run.trace.items():
        if stage.value.numel():
            assert equation(run, Place(path, 0, 0)).panels, path


def test_no_rows_are_named_of_what_was_picked_out_of_a_table():
    class Picked(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", normal(8, 4))

        def forward(self, ids):
            return self.table[ids][0] * 2, self.table[2:5] * 2

    run = watched(Picked(), torch.tensor([[7, 0, 3]]), tokens="abc")
    rows = [operand.rows for path in run.trace for operand in operands_of(run, path) if operand.is_parameter]
    assert (2, 5) in rows
    assert set(rows) == {None, (2, 5)}


def test_of_a_large_product_the_parts_around_the_number_are_drawn():
    model = nn.Sequential(nn.ReLU(), nn.Linear(4, 2000, bias=False))
    run = watched(model, normal(1, 300, 4))
    x, weight, found = equation(run, Place("1.linear", 0, 0, (299, 1400))).panels
    assert [axis.numbers[:1] for axis in (x.rows, weight.columns, found.rows, found.columns)] == [
        (256,),
        (1024,),
        (256,),
        (1024,),
    ]
    row, column = found.rows.numbers.index(299), found.columns.numbers.index(1400)
    product = x.array[row] @ weight.array[:, weight.columns.numbers.index(1400)]
    assert found.array[row, column] == pytest.approx(product, rel=1e-5)


def test_tokens_are_rows_where_the_model_has_them_before_its_sequences():
    attention = nn.MultiheadAttention(8, 2).eval()
    x = normal(5, 1, 8)
    model = nn.Sequential(nn.Linear(8, 8), Attending(attention))
    run = watched(model, x, tokens="abcde")
    panel = equation(run, Place("0.linear", 0, 0)).panels[-1]
    assert panel.rows.labels == tuple("abcde")
    assert panel.subtitle == "0.linear  5 × 1 × 8"
    (found,) = derive(run, Cell("0.linear", 0, 0, 3, 2))
    assert found.agrees
    assert found.result == pytest.approx(float(run.seen.trace.stages["0.linear"].value[3, 0, 2]), rel=1e-5)


def test_columns_as_many_as_the_tokens_are_tokens_in_each_head_and_for_all_heads_at_once():
    model = Attending(nn.MultiheadAttention(8, 2, batch_first=True).eval())
    run = watched(model, normal(1, 5, 8), tokens="abcde")

    def columns(*shape):
        return dims_of(run.seen, "where", shape)[-1][0]

    assert (columns(1, 2, 5, 5), columns(1, 1, 5, 5)) == ("T", "T")
    assert (columns(1, 3, 5, 5), columns(1, 1, 5, 8), columns(1, 5, 5)) == ("", "", "")


class Attending(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


def test_what_is_known_of_an_operation_depends_on_no_name_that_a_file_gives():
    run = watched(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), normal(1, 3, 4))
    for path in run.trace:
        entry = entry_of(run, path)
        assert entry.role == operations.role_of(run.trace[path])
        assert all(check.holds for check in checks(run, path))
        assert len(explanation_in_pieces(run, path, "plain")) == 1
    hostile = replace(run.seen.trace.stages["0.linear"], inputs=("[softmax](query)",), node=None)
    run.seen.trace.stages["0.linear"] = hostile
    again = run_of_operations(WatchedRun(run.seen.trace, ""))
    (said,) = explanation_in_pieces(again, "0.linear", "plain")
    assert "[softmax](query)" in said.text
    assert not said.entry


def test_a_line_of_pytorch_gives_the_numbers_of_its_operation():
    run = watched(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), normal(1, 3, 4))
    code = operations.code_of(run.trace["1.relu"])
    assert code == "_1_relu = F.relu(_0_linear)"


class Written(nn.Module):
    """A module that computes what it is given, with modules of its own."""

    def __init__(self, compute, **modules):
        super().__init__()
        self.compute = compute
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *inputs):
        return self.compute(self, *inputs)


def signs_of(run, path, cell=(0, 0)):
    return [panel.operator for panel in equation(run, Place(path, 0, 0, cell)).panels]


@pytest.mark.parametrize(
    ("compute", "last"),
    [
        (lambda model, x: model.linear(x), "linear.linear"),  # the input is no stage
        (lambda model, x: model.linear((x * 2)[:, -1:]), "linear.linear"),
        (lambda model, x: torch.add(x * 2, x * 3, alpha=2), "add"),
        (lambda model, x: (x * 2)[:, 1:] - (x * 2)[:, :-1], "sub"),
        (lambda model, x: torch.where(x * 2 > 0, x * 3, x * 4), "where"),
        (lambda model, x: torch.cat([x * 2, model.linear.weight[None, :0]], 1), "cat"),
    ],
)
def test_there_is_no_equation_between_what_does_not_make_the_result(compute, last):
    run = watched(Written(compute, linear=nn.Linear(4, 4)), normal(1, 5, 4))
    *inputs, output = signs_of(run, last, (2, 1))
    assert set(inputs) <= {"", ","}
    assert output == "→"


@pytest.mark.parametrize(
    ("compute", "signs"),
    [
        (lambda model, x: (x * 2) @ (x * 3).transpose(2, 3), ["", "×", "="]),
        (lambda model, x: (x * 2) / (x * 3), ["", "÷", "="]),
        (lambda model, x: model.linear(x * 2), ["", "×", "+", "="]),
    ],
)
def test_an_equation_holds_between_the_numbers_that_are_drawn(compute, signs):
    run = watched(Written(compute, linear=nn.Linear(4, 4)), normal(1, 2, 5, 4))
    assert signs_of(run, list(run.trace)[-1], (2, 1)) == signs


def test_heads_that_share_keys_are_drawn_with_their_own():
    def compute(model, x):
        keys = (x * 2).repeat_interleave(2, 1)
        return F.scaled_dot_product_attention(torch.cat([x, x], 1) * 3, keys, keys)

    run = watched(Written(compute), normal(1, 2, 5, 4))
    repeated = next(path for path in run.trace if path.startswith("repeat"))
    before = equation(run, Place(repeated, 0, 1)).panels[0]
    assert (before.array == run.trace["mul"].value[0, 0].numpy()).all()
    assert before.title == "mul · head 0"


def test_a_number_that_others_take_part_in_has_no_derivation_by_itself():
    run = watched(
        Written(lambda model, x: ((x * 2).roll(1, 1), (x * 3).cumsum(1), (x * 4).sum(-1, True))),
        normal(1, 5, 4),
    )
    for path in ("roll", "cumsum"):
        assert not derive(run, Cell(path, 0, 0, 2, 1)), path
    (found,) = derive(run, Cell("sum", 0, 0, 2, 0))
    assert found.agrees
    assert len(found.rows[0].values) == 4
    run = watched(Written(lambda model, x: (x * 2).to(torch.int64) + 1), normal(1, 5, 4) * 9)
    (found,) = derive(run, Cell("add", 0, 0, 2, 1))
    number = float(run.trace["mul"].value[0, 2, 1])
    assert [step.value for step in found.steps[:2]] == [pytest.approx(number), float(int(number))]


def test_what_drops_or_masks_everything_fails_no_check():
    attention = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True).train()
    run = watched(
        Written(lambda model, x: model.attention(x, x, x, need_weights=False)[0], attention=attention),
        normal(1, 5, 8),
    )
    assert all(check.holds for path in run.trace for check in checks(run, path))
    run = watched(Written(lambda model, x: (x - torch.inf).softmax(-1)), normal(1, 5, 8))
    assert [check.holds for check in checks(run, "softmax")] == [True, False]  # equal again, and no number


@pytest.mark.parametrize(
    "drawn",
    [
        lambda x: torch.empty(x.shape).uniform_(),
        lambda x: torch.empty_like(x).normal_(),
        lambda x: x.new_empty(x.shape).exponential_(),
        lambda x: torch.normal(x, 1.0),
        lambda x: torch.poisson(x.abs()),
    ],
)
def test_what_is_drawn_at_random_fails_no_check(drawn):
    run = watched(Written(lambda model, x: x + drawn(x)), normal(1, 3, 4))
    for path in run.trace:
        *again, _no_nan = checks(run, path)
        assert all(check.holds for check in again)


def test_recorded_code_says_what_was_computed():
    run = watched(Written(lambda model, x: ((x * 2) ** 2)[..., ::2] + (x * 3)[..., 1::2]), normal(1, 5, 4))
    assert operations.code_of(run.trace["pow"]) == "pow = mul ** 2"
    assert operations.code_of(run.trace["add"]) == "add = pow[..., ::2] + mul_2[..., 1::2]"


def test_of_a_table_with_many_rows_each_has_its_own_label():
    run = watched(nn.Embedding(1000, 4), torch.arange(700)[None])
    table = equation(run, Place("embedding", 0, 0, (300, 3))).panels[0]
    for label, number, row in zip(table.rows.labels, table.rows.numbers, table.array, strict=True):
        assert label == f"token {number}"
        assert (row == run.parameters["weight"][number].numpy()).all()


def test_a_stage_that_an_edit_changed_says_so_and_fails_no_check():
    model = Written(lambda model, x: F.scaled_dot_product_attention(x * 2, x * 3, x * 4) + 1)
    with torch.no_grad(), headlight.watch(model, keep="all", edits={"scaled_dot_product_attention": zero}) as trace:
        model(normal(1, 2, 5, 4))
    settings = Settings(weights="pretrained", edits="decoder.layers.0.self_attention.context-h0-zero")
    run = run_of_operations(WatchedRun(trace, ""), settings=settings)
    found, *_ = checks(run, "scaled_dot_product_attention")
    assert found.holds is None
    assert "an edit put other numbers here" in found.text
    assert all(check.holds for check in checks(run, "add"))


def test_every_head_can_be_chosen_where_a_stage_has_none():
    model = Written(
        lambda model, x: F.scaled_dot_product_attention(x * 2, x * 3, x * 4).transpose(1, 2).flatten(2) * 5
    )
    run = watched(model, normal(1, 7, 5, 4))
    product = list(run.trace)[-1]
    assert cell_at(run, product, Selection(head=6, cell=True)).head == 6
    before, _ = equation(run, Place(product, 0, 6)).panels
    assert (before.array == run.trace["scaled_dot_product_attention"].value[0, 6].numpy()).all()


def test_of_many_tokens_every_head_is_drawn_around_the_same_place():
    model = Written(lambda model, x: F.scaled_dot_product_attention(x * 2, x * 3, x * 4))
    run = watched(model, normal(1, 2, 300, 4))
    for head, panel in enumerate(every_head(run, Place("mul", 0, 0, (280, 1))).panels):
        assert panel.rows.numbers == tuple(range(256, 300))
        assert (panel.array == run.trace["mul"].value[0, head, 256:].numpy()).all()


def test_every_head_of_masked_scores_has_the_scale_of_the_others():
    mask = torch.full((5, 5), -1e30).triu(1)
    model = Written(lambda model, x: ((x * 2) @ (x * 3).mT + mask).softmax(-1) @ (x * 4))
    run = watched(model, normal(1, 2, 5, 4))
    panels = every_head(run, Place("add", 0, 0)).panels
    assert all(panel.blocked.tolist() == torch.ones(5, 5).triu(1).tolist() for panel in panels)
    greatest = run.trace["add"].value[run.trace["add"].value > -1e4].abs().max()
    assert {panel.bounds for panel in panels} == {(-float(greatest), float(greatest))}
