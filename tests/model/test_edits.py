"""Interventions change what they name, by exactly what they should, and nothing before it."""

import math

import pytest
import torch

from model import MultiHeadAttention, TraceError, record
from model.edits import mean_over_rows, only, replace, zero
from tests.model.builders import (
    random_mask,
    random_tensor,
    randomized,
    small_inputs,
    small_masks,
    small_transformer,
)

D_MODEL, N_HEADS = 8, 4
ATTENTION = "encoder.layers.0.self_attention"


def traced(model, *inputs, edits=None, **masks):
    with torch.no_grad(), record(model, edits) as trace:
        output = model(*inputs, **masks)
    return output, trace


@pytest.mark.parametrize("head", range(N_HEADS))
def test_an_ablated_head_takes_away_its_context_times_its_slice_of_w_o(head):
    attention = randomized(MultiHeadAttention(D_MODEL, N_HEADS)).double()
    x = random_tensor(2, 5, D_MODEL, dtype=torch.float64)
    mask = random_mask(5, 5)
    whole, trace = traced(attention, x, x, x, mask)
    ablated, ablated_trace = traced(attention, x, x, x, mask, edits={"context": only(zero, head=head)})
    columns = slice(head * attention.head_dim, (head + 1) * attention.head_dim)
    contribution = trace["context"].value[:, head] @ attention.w_o.weight[:, columns].T
    torch.testing.assert_close(whole - ablated, contribution, atol=1e-12, rtol=0)
    others = [other for other in range(N_HEADS) if other != head]
    assert torch.equal(trace["context"].value[:, others], ablated_trace["context"].value[:, others])
    assert (ablated_trace["context"].value[:, head] == 0).all()


def test_without_any_head_only_the_bias_is_left():
    attention = randomized(MultiHeadAttention(D_MODEL, 1))
    x = random_tensor(2, 5, D_MODEL)
    output, _ = traced(attention, x, x, x, edits={"context": only(zero, head=0)})
    assert torch.equal(output, attention.w_o.bias.expand(2, 5, -1))


def test_an_edited_mask_is_the_mask_used():
    model, inputs, masks = small_transformer(), small_inputs(), small_masks()
    open_everywhere = {f"encoder.layers.{layer}.self_attention.mask": torch.ones_like for layer in range(2)}
    edited, trace = traced(model, *inputs, edits=open_everywhere, **masks)
    assert torch.equal(edited, model(*inputs))
    assert trace[f"{ATTENTION}.mask"].value.all()
    assert (trace[f"{ATTENTION}.masked_scores"].value > -math.inf).all()


def test_a_mask_can_block_everything():
    output, trace = traced(
        small_transformer(), *small_inputs(), edits={f"{ATTENTION}.mask": torch.zeros_like}, **small_masks()
    )
    assert (trace[f"{ATTENTION}.weights"].value == 0).all()
    assert output.isfinite().all()


def test_nothing_before_an_edit_changes():
    model, inputs = small_transformer("encoder-decoder", norm="pre"), small_inputs("encoder-decoder")
    _, before = traced(model, *inputs)
    path = "decoder.layers.1.cross_attention.weights"
    _, after = traced(model, *inputs, edits={path: lambda value: value / 2})
    unchanged = [torch.equal(before[name].value, after[name].value) for name in before]
    assert all(unchanged[: list(before).index(path)])
    assert not any(unchanged[list(before).index(path) : list(before).index(path) + 4])
    assert not unchanged[-1]


def test_an_edit_works_at_every_path():
    model, inputs, masks = small_transformer(), small_inputs(), small_masks()
    expected, trace = traced(model, *inputs, **masks)
    for path, stage in trace.items():
        flipped = ~stage.value if stage.value.dtype == torch.bool else -stage.value
        output, edited = traced(model, *inputs, edits={path: replace(flipped)}, **masks)
        assert edited[path].value is flipped
        assert not torch.equal(output, expected), path


def test_what_is_patched_in_decides_all_that_follows():
    """The residual stream of another run, put in after a layer, gives that run's output."""
    model, (ids,) = small_transformer(), small_inputs()
    other = ids.flip(1)
    expected, donor = traced(model, other)
    path = "encoder.layers.0.norm2"
    patched, _ = traced(model, ids, edits={path: replace(donor[path].value)})
    assert torch.equal(patched, expected)


def test_only_the_row_of_the_head_that_is_named_is_edited():
    value = random_tensor(2, 3, 4, 5)
    edited = only(zero, head=1, row=2)(value)
    expected = value.clone()
    expected[:, 1, 2] = 0
    assert torch.equal(edited, expected)


def test_every_row_becomes_the_mean_of_all_rows():
    value = random_tensor(2, 3, 4, 5)
    expected = value.numpy().mean(axis=2, keepdims=True)
    torch.testing.assert_close(mean_over_rows(value), torch.from_numpy(expected).expand_as(value))


@pytest.mark.parametrize("value", [torch.ones(3), torch.ones(2, 3, dtype=torch.long)])
def test_what_has_no_mean_is_refused(value):
    with pytest.raises(ValueError, match="rows of floating-point numbers"):
        mean_over_rows(value)


@pytest.mark.parametrize("row", [-1, 6])
def test_a_row_that_is_not_there_is_refused(row):
    with (
        pytest.raises(ValueError, match=rf"row \({row}\) must be from 0 to 5"),
        record(model := small_transformer(), {f"{ATTENTION}.context": only(zero, row=row)}),
    ):
        model(*small_inputs())


def test_an_edit_keeps_gradients():
    model = small_transformer().requires_grad_(True)
    with record(model, {f"{ATTENTION}.context": only(zero, head=0)}):
        model(*small_inputs()).square().sum().backward()
    w_o = model.get_submodule(ATTENTION).w_o.weight.grad
    assert (w_o[:, : D_MODEL // 2] == 0).all()
    assert w_o[:, D_MODEL // 2 :].abs().sum() > 0


@pytest.mark.parametrize("head", [-1, 2, 7])
def test_a_head_that_is_not_there_is_refused(head):
    with (
        pytest.raises(ValueError, match=rf"head \({head}\) must be from 0 to 1"),
        record(model := small_transformer(), {f"{ATTENTION}.context": only(zero, head=head)}),
    ):
        model(*small_inputs())


def test_a_tensor_without_heads_is_refused():
    with (
        pytest.raises(ValueError, match="not one of 3 axes"),
        record(model := small_transformer(), {f"{ATTENTION}.q_proj": only(zero, head=0)}),
    ):
        model(*small_inputs())


def test_another_shape_is_refused():
    with (
        pytest.raises(TraceError, match=r"edit at logits returned shape \(3,\): it must stay \(2, 6, 13\)"),
        record(model := small_transformer(), {"logits": replace(torch.zeros(3))}),
    ):
        model(*small_inputs())


def test_another_type_of_number_is_refused():
    with (
        pytest.raises(TraceError, match=r"mask returned torch\.float32: it must stay torch\.bool"),
        record(model := small_transformer(), {f"{ATTENTION}.mask": lambda value: value / 2}),
    ):
        model(*small_inputs(), **small_masks())
