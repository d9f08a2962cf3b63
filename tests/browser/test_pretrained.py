"""A checkpoint in the browser: opened, under another mask by a press in the picture, compared, and written on."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.headlight_page import choose_view, link_of, panels, rerun
from tests.headlight.pretrained.tiny_checkpoints import saved

HEADS = "attention_heads_decoder_self_attention"
BLOCKED = re.compile("10 of 25 cells blocked by causal")


def test_a_checkpoint_is_opened_and_masked_in_its_picture(open_app, tmp_path):
    folder = str(saved("llama", tmp_path))
    page = open_app(source="pretrained", view="heads", pretrained_model=folder, pretrained_text="the cat")
    with rerun(page, HEADS):
        page.get_by_role("button", name="Load", exact=True).click()
    expect(panels(page, HEADS)).to_have_count(4)
    expect(panels(page, HEADS).first.get_by_role("img")).to_have_attribute("aria-label", BLOCKED)
    with rerun(page, HEADS):
        page.locator(f".st-key-{HEADS}").get_by_role("button", name="Causal").click()
    assert link_of(page)["mask"] == "none"
    expect(page.get_by_text("By itself this checkpoint has the causal mask")).to_be_visible()
    expect(panels(page, HEADS).first.get_by_role("img")).not_to_have_attribute("aria-label", BLOCKED)
    with rerun(page, HEADS):
        page.get_by_role("button", name="Back to the causal mask").click()
    assert "mask" not in link_of(page)

    choose_view(page, "Compare")
    expect(page.get_by_text("of the weight moved").first).to_be_visible()
    choose_view(page, "Mask lab")
    expect(page.locator(".st-key-mask_painter")).to_contain_text("10 of 25 cells blocked")
    choose_view(page, "Generate")
    expect(page.get_by_text("Which token comes next")).to_be_visible()
