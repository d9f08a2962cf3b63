"""Edits of a run, each compared with a model or a text that gives the same without one."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from model import record
from visualizer.runs.compute import compute_run
from visualizer.runs.promises import measure
from visualizer.settings.examples import OPENING
from visualizer.settings.settings import Settings

ENGLISH = OPENING.settings
OTHER = "The dog slept on the chair because it was"
DECODER = Settings(architecture="decoder", tokens="bytes", text="one two", weights="random", n_heads=2)
BESIDE = replace(DECODER, architecture="encoder-decoder", text="one two", target="zwei", norm="pre")
PASSES = {"small English": ENGLISH, "decoder": DECODER, "encoder": replace(DECODER, architecture="encoder")}


def logits(settings):
    run = compute_run(settings)
    assert not run.complaints
    return run.trace["logits"].value


@pytest.mark.parametrize("settings", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize("head", [0, 1])
def test_a_head_left_out_is_the_model_with_its_columns_of_w_o_at_zero(settings, head):
    plain = compute_run(settings)
    module = next(path.removesuffix(".context") for path in plain.trace if path.endswith(".context"))
    model = copy.deepcopy(plain.model)
    attention = model.get_submodule(module)
    attention.w_o.weight.data[:, head * attention.head_dim : (head + 1) * attention.head_dim] = 0
    with torch.no_grad(), record(model) as trace:
        plain.forward(replace(plain, model=model))
    edited = logits(replace(settings, edits=f"{module}.context-h{head}-zero"))
    torch.testing.assert_close(edited, trace["logits"].value, atol=1e-5, rtol=1e-5)
    assert not torch.equal(edited, plain.trace["logits"].value)


@pytest.mark.parametrize(
    ("settings", "other", "path"),
    [
        (ENGLISH, OTHER, "decoder.inputs.embedded"),
        (ENGLISH, OTHER, "decoder.layers.0.residual2"),
        (DECODER, "six ten", "decoder.layers.1.norm1"),
        (BESIDE, "six ten", "encoder.norm"),
    ],
)
def test_the_whole_residual_stream_of_another_text_gives_what_that_text_gives(settings, other, path):
    if path not in compute_run(settings).trace:
        path = next(one for one in reversed(compute_run(settings).trace) if one.startswith("encoder."))
    edited = logits(replace(settings, edits=f"{path}-other", other_text=other))
    assert torch.equal(edited, logits(replace(settings, text=other)))


def test_one_row_becomes_the_mean_of_all():
    path = "decoder.layers.0.feed_forward.output"
    plain = compute_run(DECODER).trace[path].value
    edited = compute_run(replace(DECODER, edits=f"{path}-r3-mean")).trace[path].value
    torch.testing.assert_close(edited[:, 3], plain.mean(1))
    others = [row for row in range(plain.shape[1]) if row != 3]
    assert torch.equal(edited[:, others], plain[:, others])


def test_edits_of_one_stage_are_made_in_turn():
    path = "decoder.layers.0.self_attention.context"
    plain = compute_run(DECODER).trace[path].value
    edited = compute_run(replace(DECODER, edits=f"{path}-h0-r0-zero~{path}-h0-mean")).trace[path].value
    first = plain[:, 0].clone()
    first[:, 0] = 0
    torch.testing.assert_close(edited[:, 0], first.mean(1, keepdim=True).expand_as(first))
    assert torch.equal(edited[:, 1], plain[:, 1])


def test_an_edit_and_a_mask_bug_are_both_in_force():
    broken = replace(DECODER, fault="after_softmax")
    path = "decoder.layers.0.self_attention.weights"
    plain, edited = (
        compute_run(replace(broken, edits=edits)).trace[path].value for edits in ("", f"{path}-h0-zero")
    )
    assert (plain.sum(-1)[..., :-1] < 0.999).all()
    assert torch.equal(edited[:, 1], plain[:, 1])
    assert (edited[:, 0] == 0).all()


@pytest.mark.parametrize(
    ("edits", "other", "complaint"),
    [
        ("decoder.layers.7.norm1-zero", "", "this model has no such stage"),
        ("decoder.layers.0.self_attention.mask-zero", "", "the stage holds no floating-point numbers"),
        ("decoder.layers.0.self_attention.context-h2-zero", "", r"head (2) must be from 0 to 1"),
        ("decoder.layers.0.norm1-h0-zero", "", "has heads, not one of 3 axes"),
        ("decoder.layers.0.norm1-r7-mean", "", "row (7) must be from 0 to 6"),
        ("decoder.layers.0.norm1-other", "seven", "the other text has 5 tokens, and this one 7"),
        ("decoder.layers.0.norm1-other", "", "there is no other text."),
    ],
)
def test_an_edit_that_cannot_be_made_is_left_out_with_a_sentence(edits, other, complaint):
    kept = "decoder.layers.0.norm2-r1-zero"
    run = compute_run(replace(DECODER, edits=f"{edits}~{kept}", other_text=other))
    (said,) = run.complaints
    assert said.startswith(f"The edit {edits} is left out: ")
    assert complaint in said
    assert run.settings.edits == kept
    assert (run.trace["decoder.layers.0.norm2"].value[:, 1] == 0).all()


def test_other_words_are_another_model():
    words = replace(DECODER, tokens="words", edits="decoder.layers.0.norm1-other", other_text="three four")
    assert "the other text has other words" in compute_run(words).complaints[0]


def test_dropout_is_the_same_with_and_without_an_edit_that_changes_nothing():
    noisy = replace(DECODER, dropout=0.5)
    path = "decoder.layers.1.residual2"
    same = replace(noisy, edits=f"{path}-other", other_text=noisy.text)
    assert torch.equal(logits(noisy), logits(same))


def test_a_worked_example_is_not_edited():
    run = compute_run(Settings(weights="encoder_layer", edits="logits-zero"))
    assert run.complaints
    assert not run.settings.edits


def test_a_proof_is_of_the_edited_model():
    settings = replace(DECODER, text="one", n_layers=1, d_model=8)
    runs = [
        compute_run(replace(settings, edits=edits)) for edits in ("", "decoder.layers.0.self_attention.output-mean")
    ]
    leaks = [measure(run, "source", lambda _: None).dependence["logits"].triu(1).any() for run in runs]
    assert leaks == [False, True]
