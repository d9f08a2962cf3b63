"""Edits of a checkpoint against the same model with other weights, and what the page draws of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from headlight.pretrained.checkpoint import load
from headlight.pretrained.opening import cost_of, open_checkpoint
from headlight.pretrained.passes import run
from headlight.pretrained.tokens import Words, tokenized
from tests.headlight.pretrained.tiny_checkpoints import FAMILIES, saved
from tests.visualizer.views.watched.test_watched_view import link_of, open_app, pictures, said
from visualizer.runs.interventions import edits_of
from visualizer.runs.watched import WatchedRun
from visualizer.settings.interventions import Intervention
from visualizer.views.watched.pretrained.edited import context_stage

HEAD, HEAD_DIM = 1, 4
WORDS = Words("the cat", "un the")
PROJECTIONS = {
    "gpt2": "transformer.h.0.attn.c_proj",
    "llama": "model.layers.0.self_attn.o_proj",
    "qwen3": "model.layers.0.self_attn.o_proj",
    "bert": "encoder.layer.0.attention.output.dense",
    "bart": "model.encoder.layers.0.self_attn.out_proj",
    "t5": "encoder.block.0.layer.0.SelfAttention.o",
}
"""The output projection of the first attention of each family."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("headlight.pretrained.places.sites", lambda: ())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_left_out_is_the_model_without_its_columns_of_the_output_projection(family, tmp_path):
    checkpoint = load(family, saved(family, tmp_path))
    words = WORDS if checkpoint.part != "decoder" else Words(WORDS.text)
    given = tokenized(checkpoint, words, 64)
    own = run(checkpoint, given, keep="all")
    path = context_stage(WatchedRun(own.trace, family), own.trace[0])
    left_out = edits_of([Intervention(path, "zero", head=HEAD)], dict)
    edited = run(checkpoint, given, keep="all", edits=left_out).output
    weight = checkpoint.model.get_submodule(PROJECTIONS[family]).weight
    columns = slice(HEAD * HEAD_DIM, (HEAD + 1) * HEAD_DIM)
    with torch.no_grad():
        (weight[columns] if family == "gpt2" else weight[:, columns]).zero_()  # Conv1D has its inputs first
    torch.testing.assert_close(edited, run(checkpoint, given).output, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(edited, own.output, atol=1e-3)


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_what_another_text_gives_at_a_stage_gives_its_run_from_there(family, tmp_path):
    checkpoint = load(family, saved(family, tmp_path))
    here, there = (tokenized(checkpoint, Words(text), 64) for text in ("the cat", "the sat"))
    other = run(checkpoint, there, keep="all")
    widest = [path for path in other.trace.stages if path.endswith("layer_norm")][0 if family == "bert" else -1]
    taken = edits_of([Intervention(widest, "other")], cache(lambda: other.trace.stages))
    torch.testing.assert_close(run(checkpoint, here, keep="all", edits=taken).output, other.output)


def test_a_head_is_left_out_and_put_back_on_the_page(tmp_path):
    folder = str(saved("llama", tmp_path))
    checkpoint = open_checkpoint(cost_of(folder), lambda *_: None)
    query = {
        "pretrained_model": folder,
        "pretrained_text": "the cat",
        "watched_panel": "edits",
        "watched_head": "1",
    }
    app = open_app(watched_door="pretrained", **query)
    assert "Choose a head" in said(app)
    path = "model.layers.0.self_attn.matmul_2"
    app = open_app(watched_door="pretrained", **query, pretrained_edits=f"{path}-h1-zero")
    assert not app.exception
    assert app.button(key="take_back_0").label == r"Head 1 of model\.layers\.0\.self\_attn: left out"

    given = tokenized(checkpoint, Words("the cat"), 64)
    edits = edits_of([Intervention(path, "zero", head=1)], dict)
    before, after = run(checkpoint, given).output[0], run(checkpoint, given, keep="all", edits=edits).output[0]
    token = int(before[-1].argmax())
    assert f"logit {before[-1, token]:.2f} → **{after[-1, token]:.2f}**" in said(app)
    ids = [piece.id for piece in given.pieces]
    losses = [-np.mean(logits.log_softmax(-1)[range(4), ids[1:]].numpy()) for logits in (before, after)]
    assert f"loss of the text {losses[0]:.3f} → **{losses[1]:.3f}**" in said(app)
    grids = next(header for header in pictures(app).values() if header["key"] == "pretrained_masks")
    assert [panel["title"] for panel in grids["panels"]] == ["The model as it is", "Edited", "Difference"]

    app.button(key="take_back_0").click().run()
    assert "pretrained_edits" not in link_of(app)
    assert "Choose a head" in said(app)


def test_an_edit_that_the_checkpoint_does_not_have_is_left_out_with_a_sentence(tmp_path):
    folder = str(saved("bert", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "pretrained_text": "the cat", "watched_panel": "edits"}
    app = open_app(watched_door="pretrained", **query, pretrained_edits="no.stage-zero")
    assert not app.exception
    assert "this model has no such stage" in app.warning[0].value
    assert "No weight changed" in said(app)
