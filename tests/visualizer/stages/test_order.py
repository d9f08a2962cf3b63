"""The same tokens in another order: what is the same, what is not, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.test_app import assert_healthy, in_link, open_app
from tests.visualizer.sample_runs import BASE
from visualizer.runs.compute import compute_run
from visualizer.runs.tokens import encode, places
from visualizer.settings.fields import MAX_ORDER
from visualizer.settings.settings import Settings
from visualizer.stages.order import compare_orders

LOVE = replace(BASE, text="I love AI", pad=0, mask=(), positions="none", order=1)


def test_every_order_is_one_of_the_same_tokens():
    for n_tokens in (1, 2, 3, 9):
        for order in range(MAX_ORDER + 1):
            found = places(order, n_tokens)
            assert sorted(found) == list(range(n_tokens))
            assert n_tokens == 1 or (found == tuple(range(n_tokens))) == (order == 0)
            assert found == places(order, n_tokens)
    assert len({places(order, 9) for order in range(MAX_ORDER + 1)}) > MAX_ORDER - 5


@pytest.mark.parametrize("side", ["left", "right"])
def test_tokens_keep_their_ids_and_padding_its_place(side):
    settings = replace(LOVE, text="I love AI\nlove hurts", pad=1, pad_side=side)
    typed, shuffled = encode(replace(settings, order=0)), encode(settings)
    assert shuffled.vocabulary == typed.vocabulary
    for before, after in zip(typed.sources, shuffled.sources, strict=True):
        assert after.is_padding == before.is_padding
        text = [token for token in after.tokens if token != "<pad>"]
        assert text == [token for token in before.tokens if token != "<pad>"][::-1]


def compared(settings: Settings):
    typed, shuffled = compute_run(replace(settings, order=0)), compute_run(settings)
    return compare_orders(typed, shuffled), typed, shuffled


@pytest.mark.parametrize("architecture", ["encoder", "decoder", "encoder-decoder"])
@pytest.mark.parametrize("order", [1, 7])
def test_without_positions_the_vectors_are_shuffled(architecture, order):
    settings = replace(
        LOVE, architecture=architecture, order=order, text="I love AI so much\nAI too", target="x\ny"
    )
    for masks in ((), ("padding",)):
        check, typed, shuffled = compared(replace(settings, mask=masks))
        assert check.holds is True
        assert check.text.startswith("The model cannot tell this order from the typed one")
        path = "encoder.layers.1.norm2" if "target" in typed.batches else "logits"
        origin = torch.tensor(places(order, 5))
        before, after = typed.trace[path].value[0], shuffled.trace[path].value[0]
        torch.testing.assert_close(after, before[origin], atol=1e-5, rtol=0)
        assert (after - before).abs().max() > 0.1


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_with_positions_they_are_others_and_the_difference_is_that_of_the_runs(positions):
    check, typed, shuffled = compared(replace(LOVE, positions=positions))
    before, after = (run.trace["logits"].value[0] for run in (typed, shuffled))
    difference = (after - before[torch.tensor([2, 1, 0])]).abs().max().item()
    assert difference > 0.05
    assert check.holds is None
    assert check.text == (
        "Each position has another vector, so the order counts. "
        f"The vectors of a token differ by up to {difference:.2g}."
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"mask": ("causal",)},
            "The causal mask goes by position, so",
        ),
        ({"mask": ("causal", "padding", "strided")}, "The causal and strided masks go by position"),
        ({"mask": ("custom",), "custom": "q == 0"}, "The painted mask goes by position"),
        (
            {"score": "score - slope(h) * (q - k)"},
            "The change of the scores goes by position, so the order counts even",
        ),
        ({"score": "k", "mask": ("causal",)}, "The change of the scores goes by position, so the order counts too"),
        ({"edits": "encoder.layers.0.residual1-r1-zero"}, "An edit goes by position, so the order counts even"),
        ({"dropout": 0.5}, "Dropout sets other numbers"),
    ],
)
def test_what_goes_by_place_is_named(change, said):
    check, _, _ = compared(replace(LOVE, text="I love AI so much", order=2, **change))
    assert check.holds is None
    assert said in check.text
    assert "even without positions" in check.text or "dropout" in change


def test_a_mask_that_goes_by_token_shuffles_with_them():
    check, _, _ = compared(replace(LOVE, mask=("custom",), custom="not is_pad(k)", pad=2))
    assert check.holds is True


def test_a_window_backwards_is_the_same_window():
    window = {"text": "I love AI so much", "mask": ("sliding_window",), "window": 2}
    assert compared(replace(LOVE, **window))[0].holds is True
    assert compared(replace(LOVE, order=2, **window))[0].holds is None


def test_the_tick_can_fail():
    """A model in which something else goes by place is caught: here the run of another seed."""
    typed, shuffled = compute_run(replace(LOVE, order=0)), compute_run(replace(LOVE, seed=1))
    assert compare_orders(typed, shuffled).holds is False


def test_one_click_shuffles_and_one_brings_the_typed_order_back():
    app = open_app(text="I love AI", positions="none", mask="none", weights="random", view="heads")
    assert not any("another order" in caption.value for caption in app.caption)
    app.button(key="shuffle").click().run()
    assert_healthy(app)
    assert in_link(app, "order") == "1"
    assert in_link(app, "text") == "I love AI"
    told = next(caption.value for caption in app.caption if "another order" in caption.value)
    assert ":green[:material/check_circle:] The model cannot tell this order from the typed one" in told
    app.button(key="shuffle").click().run()
    assert in_link(app, "order") == "2"
    app.button(key="as_typed").click().run()
    assert "order" not in app.query_params
    app = open_app(weights="trained", task="reverse", order="3")
    assert_healthy(app)
    assert "shuffle" not in {button.key for button in app.button}


@pytest.mark.parametrize(
    "change",
    [
        {"score": "2 * tanh(score / 2)"},
        {"score": "score * n_keys"},
        {"edits": "encoder.layers.0.self_attention.context-h1-mean"},
        {"score": "score - abs(q - k)", "architecture": "encoder-decoder", "target": "x y"},
        {"edits": "decoder.layers.0.residual1-r1-zero", "architecture": "encoder-decoder", "target": "x y"},
    ],
    ids=str,
)
def test_a_change_that_does_not_go_by_the_places_of_the_text_leaves_the_vectors_shuffled(change):
    check, _, _ = compared(replace(LOVE, text="I love AI so much", order=2, **change))
    assert check.holds is True
