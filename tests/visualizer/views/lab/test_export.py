"""A saved mask comes back, and every translation is in one file."""

from __future__ import annotations

import ast
import io
import zipfile

import pytest
import torch

from headlight.masks.translations import TRANSLATIONS, MaskToTranslate
from tests.controls import chosen
from tests.test_app import open_app
from tests.visualizer.told import dials_in
from visualizer.safe_text import markdown_safe
from visualizer.views.lab.export import as_npy, as_safetensors, as_scripts
from visualizer.views.lab.mask_files import uploaded

CAUSAL = torch.ones(4, 4).tril().bool()
NONE = torch.zeros(4, dtype=torch.bool)


@pytest.mark.parametrize("allowed", [CAUSAL[None], torch.stack([CAUSAL, CAUSAL.T])])
def test_what_is_saved_comes_back(allowed):
    given = MaskToTranslate(allowed, NONE, NONE, n_heads=2)
    for name, data in (("m.npy", as_npy(given)), ("m.safetensors", as_safetensors(given))):
        (read,) = uploaded(name, data).values()
        assert torch.equal(read.expand_as(allowed), allowed)


def test_every_translation_is_saved_as_python():
    archive = zipfile.ZipFile(io.BytesIO(as_scripts(MaskToTranslate(CAUSAL[None], NONE, NONE, n_heads=2))))
    assert {name.removesuffix(".py") for name in archive.namelist()} == TRANSLATIONS.keys()
    for name in archive.namelist():
        ast.parse(archive.read(name))


def test_the_way_to_compare_with_what_it_should_be_counts_the_cells():
    link = {
        "architecture": "decoder",
        "text": "a b c d",
        "mask": "custom",
        "custom": "k <= q + 1",
        "weights": "random",
    }
    app = open_app(view="lab", intent="causal", **link)
    app.button(key="compare_intent").click().run()
    assert chosen(app, "view") == "compare"
    drawn = [text.value for text in app.markdown]
    assert any("A opens 3 cells that B blocks" in text for text in drawn), drawn
    assert not any(markdown_safe("so nothing differs") in text for text in drawn)
    app.toggle(key="against_intent").set_value(False).run()
    assert "mask_b" in dials_in(app, "compare_grids")


def test_a_door_opens_its_own_tools_and_leads_back():
    app = open_app(view="lab", architecture="decoder", text="a b c d", panel="apply")
    assert app.text_input(key="expression").value == "k <= q", "the mask in force is there to be changed"
    app.button(key="door_array").click().run()
    assert chosen(app, "panel") == "load"
    assert not {"panel", "library", "start_from"} & {menu.key for menu in app.selectbox}
    app.button(key="door_say").click().run()
    assert (chosen(app, "panel"), chosen(app, "mask")) == ("translate", ("causal",))
    assert not [one for one in app.button if one.key == "door_say"], "it is open"


def test_the_files_are_made_while_their_menu_is_open():
    app = open_app(view="lab", text="a b c", mask="causal", panel="translate")
    assert not app.get("download_button")
    app.session_state["export"] = True
    app.run()
    assert not app.exception
    assert len(app.get("download_button")) == 3
