"""Recordings: a run is saved, its file is opened again, and every operation of it is walked through."""

from __future__ import annotations

import re

import torch
from playwright.sync_api import expect

import headlight
from tests.browser.headlight_page import link_of, panels, rerun
from tests.headlight.small_models import stacked, vectors, written_out
from tests.reading import click_cell
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings

SMALL = {"text": "the cat sat", "n_layers": "1", "d_model": "16", "d_ff": "16"}
HEADS = "attention_heads_decoder_self_attention"
MAP = "stage_map"


def test_a_saved_run_opens_as_any_model_and_is_stepped_through(open_app, tmp_path):
    page = open_app(view="heads", **SMALL)
    with page.expect_download() as download:
        page.locator("summary", has_text="Save numbers and code").click()
        page.get_by_role("link", name=".headlight").click()
    download.value.save_as(tmp_path / "mine.headlight")

    page = open_app(source="recording", view="heads")
    with rerun(page, HEADS):
        page.locator("input[type=file]").set_input_files(tmp_path / "mine.headlight")
    link = {"source": "recording", "view": "heads", "watched_source": "uploaded"}
    assert link_of(page) == link | {"watched_file": link_of(page)["watched_file"]}
    page.reload()
    expect(page.get_by_text("mine.headlight")).to_be_visible()
    expect(panels(page, HEADS)).to_have_count(4)
    settings = Settings(text="the cat sat", n_layers=1, d_model=16, d_ff=16)
    weights = compute_run(settings).trace["encoder.layers.0.self_attention.weights"].value
    with rerun(page):
        click_cell(panels(page, HEADS).nth(2), 2, 1, (3, 3))
    assert link_of(page) | {"query": "2", "cell": "on"} == link_of(page)  # head 2 and key 1 are the usual ones
    expect(panels(page, HEADS).nth(2)).to_contain_text("head 2")

    with rerun(page, MAP):
        page.get_by_role("radio", name="Step through").click()
    current = page.locator(".stage-map .stage[aria-current=step]")
    expect(current).to_have_text("weights")
    expect(page.locator(".stage-map .block.current")).to_have_text("self-attention")
    page.get_by_text("2 checks passed").click()
    expect(page.get_by_text("computed again from its inputs")).to_be_visible()
    expect(page.locator(".st-key-derivation_0")).to_contain_text(f"{float(weights[0, 2, 2, 1]):.4g}"[:4])
    with rerun(page):
        page.keyboard.press("ArrowRight")
    assert link_of(page)["stage"] == "encoder.layers.0.self_attention.context"
    expect(current).to_have_text("context")

    model, x = stacked(written_out(), n_layers=1), vectors()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(x)
    trace.save(tmp_path / "written.headlight")
    with rerun(page):
        page.get_by_role("button", name="Open another").click()
    with rerun(page, MAP):
        page.locator("input[type=file]").set_input_files(tmp_path / "written.headlight")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="all", exact=True).click()
    with rerun(page):
        page.locator(".stage").get_by_text("masked_fill", exact=True).click()
    assert link_of(page)["stage"] == "0.masked_fill"
    with rerun(page):
        page.locator(".stage").get_by_text("Softmax with its mask").click()
    assert link_of(page)["stage"] == "0.masked_softmax"
    expect(page.locator(".stage-map .counter")).to_have_text(re.compile(r"^stage \d+ of 14$"))
