"""The intention of a mask, proved on the model: what leaks, what is cut off, and what could not have failed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from model.analysis.reach import first_layer_reached
from tests.test_app import open_app
from visualizer.runs.compute import compute_run
from visualizer.runs.intended import read_intent
from visualizer.runs.masks_in_force import mask_context
from visualizer.runs.promises import Intended, measure, prove
from visualizer.settings.attentions import attention_named
from visualizer.settings.fields import changed
from visualizer.settings.settings import Selection, Settings
from visualizer.views.lab.case import case_of
from visualizer.views.lab.reach import reached_in

SMALL = Settings(
    architecture="decoder", weights="random", text="a b | c d", d_model=8, n_heads=2, n_layers=2, d_ff=8, mask=()
)


def proof_of(intent, claim="intended", **settings):
    run = compute_run(replace(SMALL, **settings))
    measurement = measure(run, "source", lambda done: None)
    cells = read_intent(intent).expected(mask_context(run.tokens["source"]))
    intended = None if cells is None else Intended("decoder.self_attention", cells)
    return prove(run, measurement, "source", claim, intended)


KEPT = {
    "causal": ("causal", {"mask": ("causal",)}),
    "padding on the left": ("causal+padding", {"mask": ("causal", "padding"), "pad": 2, "pad_side": "left"}),
    "padding on the right": ("bidirectional+padding", {"mask": ("padding",), "pad": 2}),
    "documents": ("causal+documents", {"mask": ("custom",), "custom": "k <= q and segment(q) == segment(k)"}),
    "a window over two layers": ("window:2", {"mask": ("custom",), "custom": "0 <= q - k < 2"}),
    "a prefix": ("prefix:2", {"mask": ("prefix",), "prefix": 2}),
}


@pytest.mark.parametrize(("intent", "settings"), KEPT.values(), ids=KEPT)
def test_a_model_that_does_what_it_should_passes(intent, settings):
    proof = proof_of(intent, **settings)
    assert proof.passes
    assert not proof.unmeasured.any()


LEAKING = {
    "one key too many": ("causal", {"mask": ("custom",), "custom": "k <= q + 1"}),
    "padding is seen": ("causal+padding", {"mask": ("causal",), "pad": 2, "pad_side": "left"}),
    "documents leak": ("causal+documents", {"mask": ("causal",)}),
    "a window too wide": ("window:2", {"mask": ("custom",), "custom": "0 <= q - k < 3"}),
    "a prefix too long": ("prefix:2", {"mask": ("prefix",), "prefix": 4}),
}


@pytest.mark.parametrize(("intent", "settings"), LEAKING.values(), ids=LEAKING)
def test_a_mask_that_opens_too_much_fails_though_it_holds_as_it_is(intent, settings):
    proof = proof_of(intent, **settings)
    assert not proof.passes
    assert proof.leak is not None
    assert proof_of(intent, "promised", **settings).passes


def test_what_should_get_through_and_cannot_is_counted():
    proof = proof_of("bidirectional", mask=("causal",))
    assert proof.leak is None
    assert int(proof.cut_off.sum()) == 10
    assert not proof.passes


def test_a_claim_without_its_cells_is_refused():
    with pytest.raises(ValueError, match="takes the cells"):
        proof_of("painted")


LINK = {"view": "lab", "panel": "prove", "architecture": "decoder", "text": "a b c", "weights": "random"}
SAID = {
    "chosen": ({"intent": "causal"}, "success", "Passes"),
    "unsaid": ({}, "info", "say above that it is causal"),
    "the masks' own": ({"intent": "causal", "claim": "promised"}, "info", "only the model is tested"),
    "forbids nothing": ({"intent": "bidirectional", "mask": "none"}, "info", "could not have failed"),
    "as painted": ({"intent": "painted"}, "info", "say above that it is causal"),
    "cut off": ({"intent": "bidirectional"}, "error", "cut off what should get through: 3 cells"),
    "leaking": ({"intent": "causal", "mask": "none"}, "error", "Something passes that should not"),
}


@pytest.mark.parametrize(("link", "kind", "text"), SAID.values(), ids=SAID)
def test_green_is_kept_for_what_could_have_failed(link, kind, text):
    app = open_app(**LINK, **link)
    assert any(text in element.value for element in getattr(app, kind))
    assert bool(app.success) == (kind == "success")


PAIR = replace(
    SMALL, architecture="encoder-decoder", text="a b c", target="x y", mask=("causal", "padding", "custom")
)


def proof_beside(name: str, intent: str, **settings):
    run = compute_run(replace(PAIR, **settings))
    attention = attention_named(name, "encoder-decoder")
    of_encoder = name == "encoder"
    measurement = measure(run, attention.keys, lambda done: None, of_encoder=of_encoder)
    meant = read_intent(intent)
    cells = meant.expected(mask_context(run.tokens[attention.queries], run.tokens[attention.keys]))
    return prove(run, measurement, attention.keys, "intended", Intended(attention.path, cells, meant.padding))


def test_the_encoder_is_proved_by_its_own_outputs():
    proof = proof_beside("encoder", "causal+padding", custom_encoder="k <= q", pad=1)
    assert proof.passes
    assert [verdict.n_forbidden for verdict in proof.verdicts] == [6, 6]
    assert proof.verdicts[-1].path == "encoder.layers.1.norm2"
    proof = proof_beside("encoder", "causal+padding", custom_encoder="k <= q + 1", pad=1)
    assert (proof.leak.path, proof.leak.row, proof.leak.token) == ("encoder.layers.0.self_attention.weights", 0, 1)


def test_the_cross_attention_is_proved_over_the_tokens_of_the_source():
    one_way = {"custom_encoder": "k <= q", "custom_cross": "k <= q"}
    proof = proof_beside("cross", "causal+padding", **one_way)
    assert proof.passes
    assert proof.verdicts[-1].n_forbidden == 3
    assert proof.allowed["logits"].shape == (3, 3)
    proof = proof_beside("cross", "causal+padding", **one_way | {"custom_cross": "k <= q + 1"})
    assert proof.leak.path == "decoder.layers.0.cross_attention.weights"
    proof = proof_beside("cross", "bidirectional+padding", pad=1, cross_padding=False)
    assert proof.leak.path == "decoder.layers.0.cross_attention.weights"
    proof = proof_beside("cross", "bidirectional+padding", pad=1, encoder_padding=False)
    assert proof.leak.path == "encoder.layers.0.self_attention.weights", "padding passes through the encoder"


def test_reach_in_cross_attention_is_over_the_other_sequence():
    settings = replace(PAIR, text="a b c d", custom_encoder="k == q", custom_cross="k <= q and q - k < 2")
    case = case_of(compute_run(settings), changed(Selection(), attention="cross"))
    reached = reached_in(case)
    query, key = torch.arange(3)[:, None], torch.arange(4)
    assert torch.equal(reached[0], (key <= query) & (query - key < 2))
    assert torch.equal(reached[1], key <= query), "over the decoder's own attention"
    assert torch.equal(first_layer_reached(reached, begins_with_itself=False)[2], torch.tensor([2, 1, 1, -1]))
