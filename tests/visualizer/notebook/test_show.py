"""Pictures in a notebook: the numbers are those that were given, and bad input gets one sentence."""

from __future__ import annotations

import re
from functools import partial
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

import headlight
from model import MultiHeadAttention, record
from tests.headlight.small_models import causal, stacked, vectors
from tests.visualizer.unpacking import unpacked
from visualizer.notebook.show import MOST
from visualizer.runs.compute import compute_run
from visualizer.runs.saved import as_trace
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings

TOKENS = ("the", "cat", "<b>sat")


def weights_of(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0)).softmax(-1)


def numbers_of(shown, number=0):
    """The header and the arrays of a picture, as the browser reads them."""
    return unpacked(shown.pictures[number][1].data)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (4, 2, 3, 3)])
def test_weights_are_shown_as_they_are(shape):
    weights = weights_of(*shape)
    header, arrays = numbers_of(headlight.attention(weights, TOKENS))
    np.testing.assert_array_equal(arrays["weights"], weights.view(*(1,) * (4 - len(shape)), *shape).numpy())
    assert header["rows"]["labels"] == header["columns"]["labels"] == list(TOKENS)
    assert "blocked" not in arrays


def test_what_transformers_gives_is_taken_as_it_comes():
    layers = tuple(weights_of(1, 2, 3, 3) + i * 0 for i in range(4))
    _, arrays = numbers_of(headlight.attention(layers, TOKENS))
    np.testing.assert_array_equal(arrays["weights"], torch.cat(layers).numpy())
    header, same = numbers_of(headlight.attention(SimpleNamespace(attentions=layers), torch.tensor([[7, 8, 9]])))
    assert header["rows"]["labels"] == ["7", "8", "9"]
    np.testing.assert_array_equal(same["weights"], arrays["weights"])
    _, same = numbers_of(headlight.attention(torch.cat(layers).tolist(), TOKENS))
    np.testing.assert_array_equal(same["weights"], arrays["weights"])


def test_a_row_without_a_key_left_is_shown():
    weights = weights_of(3, 3)
    weights[1] = torch.nan
    _, arrays = numbers_of(headlight.attention(weights, TOKENS))
    np.testing.assert_array_equal(arrays["weights"][0, 0], weights.numpy())


@given(st.data())
def test_what_a_mask_blocks_is_hatched_in_every_layer_and_head(data):
    n_layers, n_heads, n_tokens = (data.draw(st.integers(1, 3)) for _ in range(3))
    cells = (n_tokens, n_tokens)
    shape = data.draw(st.sampled_from([cells, (n_heads, *cells), (n_layers, 1, *cells)]))
    size = prod(shape)
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=size, max_size=size))).view(shape)
    _, arrays = numbers_of(headlight.attention(weights_of(n_layers, n_heads, n_tokens, n_tokens), mask=mask))
    blocked = ~mask.expand(n_layers, n_heads, n_tokens, n_tokens).numpy()
    found = arrays.get("blocked", np.zeros((1, 1, n_tokens, n_tokens)))
    np.testing.assert_array_equal(np.broadcast_to(found != 0, blocked.shape), blocked)


def test_keys_can_be_other_tokens():
    header, _ = numbers_of(headlight.attention(weights_of(2, 3, 5), TOKENS, keys=["a", "b", "c", "d", "e"]))
    assert header["rows"]["labels"] == list(TOKENS)
    assert header["columns"]["labels"] == list("abcde")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"weights": torch.full((3, 3), 2.0)}, "Weights are from 0 to 1, and these are from 2 to 2."),
        ({"weights": [torch.ones(2, 1, 3, 3) / 3]}, "There are 2 sequences in each layer"),
        ({"weights": {"layer": torch.eye(3)}}, "An array of numbers is needed, and this is a dict."),
        ({"weights": torch.eye(3), "mask": "causal"}, "An array of numbers is needed, and this is a str."),
        ({"weights": torch.empty(3, 3, device="meta")}, "An array of numbers is needed, and this is a Tensor."),
        ({"weights": torch.ones(3)}, "and these are (3,)"),
        ({"weights": torch.eye(3) + 0j}, "Weights are real numbers, and these are complex."),
        ({"weights": [torch.eye(3) + 0j]}, "Weights are real numbers, and these are complex."),
        ({"weights": torch.ones(2, 0, 0)}, "none of them empty"),
        ({"weights": torch.eye(3), "tokens": ["a"]}, "The number of texts is 1, and that of queries is 3."),
        (
            {"weights": torch.ones(2, 3) / 3, "tokens": ["a", "b"]},
            "texts is 2, and that of keys is 3.",
        ),
        ({"weights": torch.eye(3), "mask": torch.zeros(3, 3)}, "A mask is boolean"),
        ({"weights": torch.eye(3), "mask": torch.ones(2, 2, dtype=torch.bool)}, "A mask of shape (2, 2)"),
        ({"weights": [torch.eye(3), torch.eye(2)]}, "The layers have weights of different shapes"),
    ],
)
def test_bad_weights_get_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        headlight.attention(**arguments)


@pytest.mark.parametrize("view", ["heads", "step", "compare", "way"])
def test_a_model_of_settings_is_shown_in_each_view(view):
    shown = headlight.show(text="a b c", heads=2, mask="causal", architecture="decoder", view=view, mask_b=())
    assert [picture.key for _, picture in shown.pictures]
    assert "<iframe srcdoc=" in shown._repr_html_()
    assert shown.page.count("<section") == len(shown.pictures)


def test_a_choice_of_a_view_has_its_name_alone_or_that_of_a_link():
    one, other, usual = (
        headlight.show(text="a b", view="compare", **chosen).page
        for chosen in ({"mask_b": "none"}, {"compare.mask_b": "none"}, {})
    )
    assert one == other != usual


def test_other_tokens_of_the_run_that_was_kept_are_named_with_those_of_this_one():
    header, _ = numbers_of(headlight.show(text="a b d", view="compare", baseline="text=a+b+c"))
    assert header["rows"]["labels"] == header["columns"]["labels"] == ["a", "b", "c / d"]


@pytest.mark.parametrize(("mask", "names"), [(None, ()), ((), ()), (["padding", "causal"], ("causal", "padding"))])
def test_masks_are_named_as_in_a_call_of_python(mask, names):
    _, arrays = numbers_of(headlight.show(text="a b c", mask=mask, n_heads=2.0))
    run = compute_run(fitted(Settings(text="a b c", n_heads=2, mask=names)))
    weights = run.trace["encoder.layers.0.self_attention.weights"].value[0]
    np.testing.assert_array_equal(arrays["weights"][0], weights.numpy())


def test_the_heads_of_settings_are_those_of_the_app():
    _, arrays = numbers_of(headlight.show(text="a b c", heads=2, mask="causal", weights="random"))
    run = compute_run(fitted(Settings(text="a b c", n_heads=2, mask=("causal",), weights="random")))
    for layer, weights in enumerate(arrays["weights"]):
        expected = run.trace[f"encoder.layers.{layer}.self_attention.weights"].value[0]
        np.testing.assert_array_equal(weights, expected.numpy())


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"colour": "red"}, "There is no setting colour"),
        ({"view": "train"}, "There is no view train: the views are heads, step, compare, way."),
        ({"text": " "}, "There is nothing to run yet"),
        ({"text": 5}, "text is text, and this is a int."),
        ({"seen": "a b"}, "takes a trace, as headlight.watch gives it, and this is a str"),
        ({"heads": "many"}, "n_heads=many is not a number."),
        ({"heads": 0}, "n_heads=0 is not between 1 and"),
        ({"mask": "diagonal"}, "mask=diagonal is not none or a list of different names from causal"),
        ({"mask": ("causal", 2)}, "mask takes names, and this is a tuple."),
        ({"text": "a", "view": "step", "stage": "encoder.atention"}, "There is no stage encoder.atention"),
        ({"text": "a", "architecture": "attention", "view": "way"}, "An attention alone has no residual stream."),
    ],
)
def test_what_cannot_be_shown_says_why(chosen, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        headlight.show(**chosen)


def watched(keep="weights", n_tokens=3):
    model = stacked(partial(F.scaled_dot_product_attention, attn_mask=causal(n_tokens)))
    with torch.no_grad(), headlight.watch(model, keep=keep) as trace:
        model(vectors(n_tokens=n_tokens))
    return trace


def test_an_operation_of_a_trace_is_shown_with_its_inputs():
    trace = watched(keep="all")
    path = "1.key.linear"
    header, arrays = numbers_of(headlight.show(trace, view="step", stage=path, query=2, key=15))
    assert [panel["title"] for panel in header["panels"]] == ["add", "weight, transposed", "bias", "linear"]
    np.testing.assert_array_equal(arrays["values3"], trace.stages[path].value[0].numpy())
    assert header["selected"] == [path, 2, 15]
    first, _ = numbers_of(headlight.show(trace, view="step"))
    assert first["panels"][-1]["name"] == next(iter(trace.stages))


def test_a_token_is_followed_through_a_trace():
    trace = as_trace(compute_run(fitted(Settings(text="a b c", n_heads=2))))
    header, _ = numbers_of(headlight.show(trace, view="way", query=99))
    assert header["selected"] == 2
    assert [part["kind"] for part in header["parts"]].count("head") == 4


def test_what_record_gave_is_shown_as_it_is():
    attention = MultiHeadAttention(8, 2).eval()
    with torch.no_grad(), record(attention) as trace:
        attention(*(torch.randn(1, 3, 8),) * 3)
    shown = headlight.show(trace)
    _, arrays = numbers_of(shown)
    np.testing.assert_array_equal(arrays["weights"][0], trace["weights"].value[0].numpy())
    assert trace._repr_html_() == shown._repr_html_()
    with pytest.raises(ValueError, match="holds only attentions"):
        headlight.show(trace, view="step")
    linear = torch.nn.Linear(2, 2)
    with record(linear) as without:
        linear(torch.ones(1, 2))
    assert without._repr_html_() is None


def test_a_trace_is_shown_with_its_masks_and_layers():
    trace = watched()
    header, arrays = numbers_of(headlight.show(trace, layer=1))
    np.testing.assert_array_equal(arrays["weights"], torch.stack([one.weights[0] for one in trace]).numpy())
    np.testing.assert_array_equal(arrays["blocked"][0, 0] != 0, ~causal(3).numpy())
    assert header["layer"] == 1
    assert header["layer_names"] == [one.module for one in trace]


class Resampler(torch.nn.Module):
    """Latents that read the text and themselves: the first layer alone reads what is wholly another's."""

    def __init__(self):
        super().__init__()
        self.latents = torch.nn.Parameter(torch.randn(1, 2, 8))
        self.layers = torch.nn.ModuleList(torch.nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))

    def forward(self, x):
        latents = self.latents.expand(len(x), -1, -1)
        for layer in self.layers:
            both = torch.cat((x, latents), 1)
            latents = latents + layer(latents, both, both)[0]
        return latents


def test_layers_of_one_shape_are_shown_together_where_some_read_their_own_sequence_too():
    model = Resampler()
    with torch.no_grad(), headlight.watch(model) as trace:
        model(torch.randn(1, 3, 8))
    assert [each.is_cross for each in trace] == [True, False]
    _, arrays = numbers_of(headlight.show(trace))
    np.testing.assert_array_equal(arrays["weights"], torch.stack([one.weights[0] for one in trace]).numpy())


def test_a_trace_says_what_it_can_when_there_is_nothing_or_too_much_to_draw():
    assert "<iframe" in watched()._repr_html_()
    shapes = watched(keep="shapes")
    assert "<iframe" not in shapes._repr_html_()
    with pytest.raises(ValueError, match="No weights were kept"):
        headlight.show(shapes)
    model = torch.nn.Tanh()
    with headlight.watch(model) as empty:
        model(torch.ones(1, 3))
    with pytest.raises(ValueError, match=r"^No attention was seen\. In Tanh no softmax was followed"):
        headlight.show(empty)
    with pytest.raises(ValueError, match="With a trace only places can be chosen"):
        headlight.show(watched(), text="a")
    large = watched(n_tokens=4)
    many = headlight.Trace(list(large) * (MOST // 4 // 16 // 2 + 1))
    with pytest.raises(ValueError, match="choose some layers"):
        headlight.show(many)


def test_no_title_is_markup():
    page = headlight.attention(torch.eye(2), title="</title><script>alert(1)</script>").page
    assert "<script>alert" not in page
