"""A model that learned a task: its own mask, what is said of another one, and what is said of its probabilities."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import link_of, pill, rerun


def test_a_link_opens_a_trained_model_with_the_mask_of_its_training(open_app):
    link = {"weights": "trained", "task": "match_brackets", "stage": "probabilities"}
    page = open_app(**link)
    expect(page.get_by_text("The model was trained on “Match brackets” for")).to_be_visible()
    expect(page.get_by_text("not trained")).to_have_count(0)
    expect(pill(page, "mask", "Causal")).to_have_attribute("aria-pressed", "false")
    assert link_of(page) == link

    said = page.get_by_text("learned its task with no mask; here it runs with the causal mask")
    with rerun(page):
        pill(page, "mask", "Causal").click()
    expect(said).to_be_visible()
    assert link_of(page) == link | {"mask": "causal"}
    with rerun(page):
        page.get_by_role("button", name="Back to no mask").click()
    expect(said).to_have_count(0)
    expect(pill(page, "mask", "Causal")).to_have_attribute("aria-pressed", "false")


def test_heads_that_learned_have_labelled_rows_and_the_measure_of_their_task_first(open_app):
    page = open_app(view="heads", weights="trained", task="repeat_block")
    table = page.get_by_test_id("stDataFrame")
    expect(table.locator("th").first).to_be_attached()
    titles = table.locator("th").all_text_contents()
    assert titles.index("On the expected token") < titles.index("Entropy (bits)")
    expect(table.get_by_text("None")).to_have_count(0)
