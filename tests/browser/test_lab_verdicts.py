"""In a browser: a mask is described until it is said what it should be, then judged, and fixed by one click."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import link_of, rerun

LINK = {"view": "lab", "architecture": "decoder", "text": "a b c d", "weights": "random"}


def test_a_mask_is_judged_once_it_is_said_what_it_should_be_and_fixed_by_one_click(open_app):
    page = open_app(**LINK)
    field = page.locator(".st-key-expression input")
    field.fill("q <= k")
    with rerun(page):
        field.press("Enter")
    expect(page.get_by_text("Say what it should be, and every cell is compared.")).to_be_visible()
    expect(page.locator(".finding")).to_have_count(0)
    expect(page.get_by_text("Also under: causal")).to_be_visible()
    assert link_of(page)["mask"] == "custom"
    page.locator(".st-key-intent_unsaid [role=combobox]").click()
    with rerun(page):
        page.get_by_role("option", name="Causal", exact=True).click()
    finding = page.locator(".finding")
    expect(finding).to_contain_text("rows and columns are swapped")
    with rerun(page):
        finding.get_by_role("button", name="Fix: This is not causal").click()
    expect(page.locator(".findings")).to_have_text("Every cell is as it should be: causal.")
    assert link_of(page) | {"mask": "custom", "custom": "k <= q", "intent": "causal"} == link_of(page)


def test_a_loaded_array_takes_the_screen_and_comes_to_the_painter_by_one_click(open_app):
    page = open_app(**LINK, panel="load", passed_to="sdpa", intent="bidirectional")
    pasted = page.locator(".st-key-pasted_mask textarea")
    pasted.fill("[[True, False, False], [True, True, False], [True, True, True]]")
    with rerun(page):
        pasted.press("Control+Enter")
    expect(page.get_by_text("This is causal.")).to_be_visible()
    expect(page.locator(".st-key-mask_painter")).to_have_count(0)
    expect(page.locator(".st-key-gallery")).to_have_count(0)
    with rerun(page, "mask_painter"):
        page.get_by_role("button", name="Paint this mask over a text of 3 tokens").click()
    assert link_of(page) | {"mask": "custom", "custom": "k <= q", "text": "t0 t1 t2"} == link_of(page)
    expect(page.locator(".finding")).to_contain_text("This is not bidirectional")
