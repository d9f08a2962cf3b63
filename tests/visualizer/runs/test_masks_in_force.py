"""From settings to the masks of every layer and head."""

from dataclasses import replace

import pytest
import torch

from visualizer.runs.compute import compute_run
from visualizer.runs.masks_in_force import layer_left_out, painted_cells, readable_painting
from visualizer.runs.masks_in_force import mask_context as context_of
from visualizer.runs.tokens import encode, segments
from visualizer.settings.painted_mask import encode_cells
from visualizer.settings.settings import Settings

BASE = Settings(
    text="a b | c d e | f", d_model=16, n_heads=2, n_layers=3, d_ff=16, weights="random", mask=("causal",)
)


def mask_in(run, path):
    return run.trace[f"{path}.mask"].value[0]


def test_each_layer_and_head_is_given_its_own_painting():
    run = compute_run(replace(BASE, mask=("custom",), custom="k <= q;1.*:k == q;*.1:k < 2;2.1:True"))
    query, key = torch.arange(8)[:, None], torch.arange(8)
    cells = {"causal": key <= query, "itself": key == query, "first": (key < 2).expand(8, 8), "all": key >= 0}
    expected = [["causal", "first"], ["itself", "itself"], ["causal", "all"]]
    for layer, heads in enumerate(expected):
        mask = mask_in(run, f"encoder.layers.{layer}.self_attention")
        for head, name in enumerate(heads):
            assert torch.equal(mask[head], cells[name].expand(8, 8)), (layer, head)
            weights = run.trace[f"encoder.layers.{layer}.self_attention.weights"].value[0, head]
            assert weights.masked_fill(mask[head], 0.0).count_nonzero() == 0


@pytest.mark.parametrize("architecture", ["encoder", "decoder", "encoder-decoder"])
def test_one_layer_can_go_without_its_masks(architecture):
    settings = replace(BASE, architecture=architecture, mask=("causal", "padding"), pad=1, fault="left_out")
    run = compute_run(settings)
    left_out = layer_left_out(settings.n_layers)
    assert left_out == 1
    for path, promised in run.promised.items():
        is_left_out = f".layers.{left_out}." in path
        assert (f"{path}.mask" in run.trace) == (not is_left_out)
        assert run.masks[path].names == (() if is_left_out else promised.names)
        assert promised.names


def test_each_stack_has_as_many_masks_as_layers():
    settings = replace(
        BASE,
        architecture="encoder-decoder",
        n_layers=1,
        n_decoder_layers=4,
        mask=("causal", "padding", "custom"),
        custom="k <= q;3.*:k == q",
        fault="left_out",
    )
    run = compute_run(settings)
    without = [path for path, mask in run.masks.items() if not mask.names]
    assert without == [
        "encoder.layers.0.self_attention",
        "decoder.layers.2.self_attention",
        "decoder.layers.2.cross_attention",
    ]
    painted = mask_in(run, "decoder.layers.3.self_attention")
    assert painted[0].sum() <= painted.shape[-1], "the last layer of the decoder has a painting of its own"


def test_a_fault_changes_what_comes_after_the_mask_alone():
    right, wrong = compute_run(BASE), compute_run(replace(BASE, fault="after_softmax"))
    path = "encoder.layers.0.self_attention"
    assert torch.equal(mask_in(right, path), mask_in(wrong, path))
    edited = [stage for stage in wrong.trace if wrong.trace[stage].edited]
    assert {stage.rpartition(".")[2] for stage in edited} == {"masked_scores", "weights"}
    expected = wrong.trace[f"{path}.scaled_scores"].value.softmax(-1) * mask_in(wrong, path)
    assert torch.equal(wrong.trace[f"{path}.weights"].value, expected)
    assert not any(stage.edited for stage in right.trace.values())


def test_without_a_mask_a_fault_has_nothing_to_break():
    assert compute_run(replace(BASE, mask=(), fault="before_softmax")).trace


def test_documents_end_with_their_bar():
    assert segments(encode(BASE).sources[0]) == (0, 0, 0, 1, 1, 1, 1, 2)


@pytest.mark.parametrize(("side", "is_padding"), [("left", [True, True, False]), ("right", [False, True, True])])
def test_padding_stands_on_the_side_chosen(side, is_padding):
    source = encode(replace(BASE, text="a", pad=2, pad_side=side)).sources[0]
    assert list(source.is_padding) == is_padding


def test_an_expression_that_is_none_is_left_out_and_named():
    batches = {"source": encode(BASE).sources}
    settings, complaints = readable_painting(replace(BASE, custom="k <=;0.*:k == q;*.1:q % 0 == 1"), batches)
    assert settings.custom == "0.*:k == q"
    assert len(complaints) == 2
    assert all("left out of the painted mask" in complaint for complaint in complaints)
    assert readable_painting(settings, batches) == (settings, ())


def test_cells_of_another_length_leave_the_rest_open():
    context = context_of(encode(BASE).sources[0])
    source = encode_cells(torch.ones(2, 2, dtype=torch.bool).numpy())
    allowed = painted_cells(source, context)
    assert not allowed[:2, :2].any()
    assert allowed[2:].all()
    assert allowed[:, 2:].all()


PAIR = replace(
    BASE,
    architecture="encoder-decoder",
    text="a b c d e",
    target="x y",
    pad=1,
    mask=("causal", "padding", "custom"),
    custom_encoder="k <= q;2.1:q == k",
    custom_cross="k <= q + 1;*.1:k < 2",
)


def test_the_encoder_and_the_cross_attention_attend_as_they_are_painted():
    run = compute_run(PAIR)
    query, key = torch.arange(6)[:, None], torch.arange(6)
    real = key < 5
    expected = {
        "encoder.layers.0.self_attention": [(key <= query) & real] * 2,
        "encoder.layers.2.self_attention": [(key <= query) & real, (key == query) & real],
        "decoder.layers.0.cross_attention": [(key <= query[:4] + 1) & real, (key < 2).expand(4, 6)],
        "decoder.layers.1.self_attention": [(key[:4] <= query[:4]) & (key[:4] < 3)] * 2,
    }
    for path, heads in expected.items():
        mask = mask_in(run, path).expand(2, -1, -1)
        weights = run.trace[f"{path}.weights"].value[0]
        for head, cells in enumerate(heads):
            assert torch.equal(mask[head], cells), (path, head)
            assert not weights[head].masked_fill(cells, 0.0).any()
            assert bool((weights[head][cells] > 0).all())


def test_the_padding_mask_can_be_left_out_of_one_attention():
    run = compute_run(replace(PAIR, mask=("causal", "padding"), cross_padding=False))
    assert run.masks["decoder.layers.0.cross_attention"].names == ()
    assert run.masks["encoder.layers.0.self_attention"].names == ("padding",)
    assert run.masks["decoder.layers.0.self_attention"].names == ("causal", "padding")


def test_a_painting_of_the_cross_attention_is_read_with_both_sequences():
    batches = {"source": encode(PAIR).sources, "target": encode(PAIR).targets}
    settings, complaints = readable_painting(replace(PAIR, custom_cross="k <= q;1.*:q <"), batches)
    assert settings.custom_cross == "k <= q"
    assert len(complaints) == 1
    assert "of the cross-attention" in complaints[0]
    cells = encode_cells(torch.ones(2, 4, dtype=torch.bool).numpy())
    allowed = painted_cells(cells, context_of(batches["target"][0], batches["source"][0]))
    assert allowed.shape == (4, 6)
    assert not allowed[:2, :4].any()
    assert int(allowed.sum()) == 24 - 8
