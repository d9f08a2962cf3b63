"""The Mask lab as a person uses it: paint, say, explain, mend, prove, and take the painting to the other views."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.headlight_page import choose_view, link_of, messages_sent, panels, pill, rerun, settle
from tests.reading import click_cell, point_at, tooltip, tooltip_numbers
from visualizer.runs.compute import compute_run
from visualizer.settings.link import read_query
from visualizer.settings.settings import Selection, Settings

PAINTER = "mask_painter"
TEXT = "a b c d"
SHAPE = (4, 4)


def painter(page: Page):
    return panels(page, PAINTER).first


def write(page: Page, expression: str) -> None:
    field = page.locator(".st-key-expression input")
    field.fill(expression)
    with rerun(page):
        field.press("Enter")


def expression(page: Page) -> str:
    return page.locator(".st-key-expression input").input_value()


def test_a_painted_cell_is_in_the_link_in_words_and_in_every_view(open_app):
    page = open_app(view="lab", text=TEXT, mask="none", head=0)
    with rerun(page, PAINTER):
        click_cell(painter(page), 2, 0, SHAPE)
    assert link_of(page)["mask"] == "custom"
    assert link_of(page)["custom"] == expression(page) != ""
    point_at(painter(page), 2, 0, SHAPE)
    expect(tooltip(page)).to_contain_text("may not see")
    expect(tooltip(page)).to_contain_text("painted")
    expect(pill(page, "mask", "Painted")).to_have_attribute("aria-pressed", "true")
    choose_view(page, "Step through")
    picture = panels(page, "picture").last
    point_at(picture, 2, 0, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by custom")
    assert tooltip_numbers(page) == [0]
    with rerun(page, PAINTER):
        page.get_by_role("button", name="Paint the mask").click()
    assert link_of(page)["view"] == "lab"


def test_an_expression_paints_and_a_stroke_rewrites_it(open_app):
    page = open_app(view="lab", text=TEXT, mask="none")
    write(page, "k <= q")
    assert link_of(page)["custom"] == "k <= q"
    with rerun(page, PAINTER):
        click_cell(painter(page), 3, 3, SHAPE)
    assert expression(page) == link_of(page)["custom"] != "k <= q"
    with rerun(page, PAINTER):
        click_cell(painter(page), 3, 3, SHAPE)
    assert expression(page) == "k <= q"


def test_a_mistake_in_an_expression_is_pointed_at_and_loses_nothing(open_app):
    page = open_app(view="lab", text=TEXT, mask="custom", custom="k <= q", n_heads=8, d_model=64)
    overview = page.locator(f".st-key-{PAINTER} .overview")
    assert overview.evaluate("one => one.scrollWidth <= one.clientWidth"), "no head is cut off"
    write(page, "k <= same_tokens")
    expect(page.get_by_test_id("stCode").first).to_contain_text("same_token")
    assert expression(page) == "k <= same_tokens"
    assert link_of(page)["custom"] == "k <= q"
    write(page, "k < 2")
    assert link_of(page)["custom"] == "k < 2"


def test_one_head_of_one_layer_can_be_painted(open_app):
    page = open_app(view="lab", text=TEXT, mask="custom", custom="k <= q", scope="layer_head", layer=1, head=2)
    with rerun(page, PAINTER):
        click_cell(painter(page), 0, 3, SHAPE)
    assert link_of(page)["custom"].startswith("k <= q;1.2:")
    choose_view(page, "Heads")
    heads = panels(page, "attention_heads_encoder_self_attention")
    point_at(heads.nth(2), 0, 3, SHAPE)
    assert tooltip_numbers(page)[0] >= 0
    expect(tooltip(page)).not_to_contain_text("blocked")
    point_at(heads.nth(1), 0, 3, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by custom")


def test_the_cross_attention_is_painted_queries_by_keys_and_undone_in_its_own_mask(open_app):
    link = {"architecture": "encoder-decoder", "text": TEXT, "target": "x y", "mask": "causal", "weights": "random"}
    page = open_app(view="lab", attention="cross", **link)
    undo = page.get_by_role("button", name="Undo")
    with rerun(page, PAINTER):
        click_cell(painter(page), 2, 3, (3, 4))
    painted = link_of(page)
    assert painted["custom_cross"] == expression(page) != ""
    assert "custom" not in painted
    run = compute_run(read_query({name: [text] for name, text in painted.items()})[0])
    assert run.trace["decoder.layers.0.cross_attention.weights"].value[0, :, 2, 3].eq(0).all()
    point_at(painter(page), 2, 3, (3, 4))
    expect(tooltip(page)).to_contain_text("painted")
    with rerun(page, PAINTER):
        page.get_by_role("radio", name="Encoder", exact=True).click()
    expect(undo).to_have_attribute("aria-disabled", "true")
    point_at(painter(page), 2, 3, SHAPE)
    expect(tooltip(page)).to_contain_text("sees")
    with rerun(page, PAINTER):
        page.get_by_role("radio", name="Cross-attention", exact=True).click()
    expect(undo).to_have_attribute("aria-disabled", "false")
    with rerun(page, PAINTER):
        undo.click()
    assert "custom_cross" not in link_of(page)


SMALL_PICTURES = """(canvas) => {
  const [box, context] = [canvas.getBoundingClientRect(), canvas.getContext("2d")];
  const scale = canvas.width / box.width;
  return [...canvas.parentElement.querySelectorAll(".thumbnail")].map((thumbnail) => {
    const { x, y, width, height } = thumbnail.getBoundingClientRect();
    const place = [x - box.x, y - box.y, width, height].map((length) => Math.round(length * scale));
    return String(context.getImageData(...place).data);
  });
}"""


def test_all_weights_follow_a_stroke_and_nothing_is_sent_until_it_ends(open_app):
    text = " ".join(f"w{i}" for i in range(64))
    link = {"architecture": "encoder", "text": text, "weights": "random", "mask": "custom", "custom": "k != 8"}
    page = open_app(view="lab", **link)
    plot = page.locator(f".st-key-{PAINTER} .matrix-plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    heads = page.locator(f".st-key-{PAINTER} .overview-pictures")
    page.wait_for_function(f"probe.painted['{PAINTER} heads']")
    drawn = heads.evaluate(SMALL_PICTURES)
    assert len(drawn) == 8
    before = messages_sent(page)
    page.mouse.move(box["x"] + 8.5 / 64 * box["width"], box["y"] + 20.5 / 64 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 8.5 / 64 * box["width"], box["y"] + 40.5 / 64 * box["height"], steps=9)
    freed = "k != 8 or (q >= 20 and q <= 40)"
    run = compute_run(Settings(architecture="encoder", text=text, weights="random", mask=("custom",), custom=freed))
    weight = float(run.trace["encoder.layers.0.self_attention.weights"].value[0, Selection().head, 40, 8])
    expect(tooltip(page)).to_contain_text(f"weight {weight:#.4g}")
    expect(tooltip(page)).not_to_contain_text("before this change")
    assert all(now != then for now, then in zip(heads.evaluate(SMALL_PICTURES), drawn, strict=True))
    assert messages_sent(page) == before
    with rerun(page, PAINTER):
        page.mouse.up()
    assert link_of(page)["custom"] not in ("", "k != 8")
    assert len(page.url) < 2_000


def test_a_finding_is_mended_by_one_click(open_app):
    page = open_app(view="lab", text=TEXT, architecture="decoder", mask="custom", custom="q <= k", intent="causal")
    finding = page.locator(".finding").filter(has_text="rows and columns are swapped")
    with rerun(page, PAINTER):
        finding.get_by_role("button", name="Fix").first.click()
    expect(page.locator(".finding")).to_have_count(0)
    assert expression(page) == "k <= q"


def test_what_was_painted_in_one_case_is_not_undone_in_the_next(open_app):
    page = open_app(view="lab")
    gallery, shape = page.locator(".st-key-gallery"), (8, 8)
    undo = page.get_by_role("button", name="Undo", exact=True)
    with rerun(page, PAINTER):
        gallery.get_by_role("button", name="Transposed", exact=True).click()
    with rerun(page, PAINTER):
        click_cell(painter(page), 3, 0, shape)
    expect(undo).to_have_attribute("aria-disabled", "false")
    with rerun(page, PAINTER):
        gallery.get_by_role("button", name="Inverted", exact=True).click()
    expect(undo).to_have_attribute("aria-disabled", "true")
    with rerun(page, PAINTER):
        gallery.get_by_role("button", name="Causal", exact=True).click()
    click_cell(painter(page), 2, 6, shape)
    said = page.get_by_role("status").filter(has_text="causal")
    expect(said).to_have_text("causal still blocks query 2, key 6, since the key comes later")
    with rerun(page):
        page.locator(".painted-offer").click()
    assert expression(page) == "k <= q"


def test_real_bugs_are_named_and_a_refused_file_leaves_no_trace(open_app):
    link = {"view": "lab", "panel": "load", "architecture": "decoder", "text": "a b c d e f", "weights": "random"}
    later = [[int(key > query) for key in range(6)] for query in range(6)]
    bugs = (
        ("transformer", "causal", later, "This place refuses int64"),  # pytorch/pytorch#21518
        (
            "sdpa",
            "causal",
            [[bool(cell) for cell in row] for row in later],
            "it is inverted",
        ),  # LLMs-from-scratch#1061
        ("jax", "window:3", [[1] * 6 + [0, 0], [1] * 7 + [0], [1] * 8], "bottom-right aligned"),  # lalamo#200
    )
    for place, intent, array, sentence in bugs:
        page = open_app(**link, passed_to=place, intent_array=intent)
        pasted = page.locator(".st-key-pasted_mask textarea")
        pasted.fill(str(array))
        with rerun(page):
            pasted.press("Control+Enter")
        expect(page.locator(".stApp").get_by_text(sentence).first).to_be_visible()
    upload = page.locator(".st-key-mask_file input[type=file]")
    with rerun(page):
        upload.set_input_files({"name": "bad.bin", "mimeType": "application/octet-stream", "buffer": b"no mask"})
    refused = page.get_by_text("it must end in one of .npy")
    expect(refused).to_be_visible()
    with rerun(page):
        upload.set_input_files({"name": "good.csv", "mimeType": "text/csv", "buffer": b"1,0\n1,1"})
    expect(page.get_by_text("An array of 2 × 2")).to_be_visible()
    expect(refused).to_have_count(0)
    expect(page.locator(".st-key-mask_file").get_by_text("bad.bin")).to_have_count(0)


def test_the_other_masks_can_be_taken_into_the_painting(open_app):
    page = open_app(view="lab", text=TEXT, mask="causal,padding", pad=1)
    with rerun(page):
        page.get_by_role("button", name="Paint over causal, padding").click()
    assert link_of(page)["mask"] == "custom"
    assert expression(page) == "k <= q and not is_pad(k)"
    expect(pill(page, "mask", "Causal")).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize(("case", "verdict"), [("Causal", "Passes"), ("Mask after softmax", "Fails")])
def test_the_proof_of_a_case(open_app, case, verdict):
    page = open_app(view="lab")
    with rerun(page):
        page.locator(".st-key-gallery").get_by_role("button", name=case, exact=True).click()
    settle(page)
    expect(page.get_by_test_id("stAlert").filter(has_text=verdict)).to_be_visible()
    if verdict == "Fails":
        with rerun(page):
            page.get_by_role("button", name="Go to this stage").click()
        assert "view" not in link_of(page)
        expect(page.get_by_text("changed on purpose by the mask bug")).to_be_visible()


def test_a_translation_follows_the_painting(open_app):
    page = open_app(view="lab", text=TEXT, mask="custom", custom="q - k < 2 and k <= q", panel="translate")
    expect(page.get_by_test_id("stCode").last).to_contain_text("(q - k < 2) & (k <= q)")
    with rerun(page):
        page.locator(".st-key-library").get_by_text("FlexAttention", exact=True).click()
    expect(page.get_by_test_id("stCode").last).to_contain_text("mask_mod")


def test_compare_takes_the_painting_as_one_of_its_masks(open_app):
    page = open_app(view="compare", text=TEXT, custom="k == q", mask_a="causal", mask_b="custom")
    point_at(panels(page, "compare_grids").nth(1), 3, 0, SHAPE)
    expect(tooltip(page)).to_contain_text("blocked by custom")


def test_a_pasted_function_is_read_pointed_at_and_seen_beside_changed_scores_and_in_blocks(open_app):
    page = open_app(view="lab", text=TEXT, mask="none", head=0, panel="scores")
    field = page.locator(".st-key-expression input")
    field.click()
    function = (
        "WINDOW = 1\n\ndef near(b, h, q_idx, kv_idx):\n    # close by\n    past = q_idx >= kv_idx\n    return past"
    )
    page.keyboard.insert_text(f"{function} & (q_idx - kv_idx <= WINDOW)")
    with rerun(page):
        field.press("Enter")
    assert link_of(page)["custom"] == expression(page) == "q >= k and q - k <= 1"
    with rerun(page):
        field.fill("q_idx >= kv_idx & h == 0")
        field.press("Enter")
    expect(page.get_by_test_id("stCode").first).to_contain_text("^^^^")
    expect(page.get_by_text("put each comparison in brackets, as in")).to_be_visible()
    score = page.locator(".st-key-score_text input")
    with rerun(page):
        score.fill("score - slope(h) * (q_idx - kv_idx)")
        score.press("Enter")
    assert link_of(page)["score"] == "score - slope(h) * (q - k)"
    expect(page.get_by_test_id("stCode").nth(1)).to_contain_text("score_mod=score_mod, block_mask=block_mask")
    with rerun(page):
        page.get_by_role("radio", name="Blocks").click()
    expect(page.get_by_text("4,096 blocks")).to_be_visible()
    choose_view(page, "Step through")
    expect(page.locator(".stage-map .stage", has_text="modified_scores").first).to_be_attached()
