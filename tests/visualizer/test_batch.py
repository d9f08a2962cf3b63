"""Several texts at once: a line each, one padded batch, and what is looked at is one of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.test_app import assert_healthy, in_link, open_app
from tests.visualizer.sample_runs import BASE, problem_with
from tests.visualizer.told import tell
from visualizer.components.packing import header_of
from visualizer.runs.compute import compute_run
from visualizer.runs.masks_in_force import mask_context
from visualizer.runs.prepare import prepare
from visualizer.runs.promises import measure, prove
from visualizer.runs.tokens import encode
from visualizer.runs.writer import writer_of
from visualizer.settings.fields import MAX_SEQUENCES
from visualizer.settings.fitting import fitted
from visualizer.settings.lines import lines_of
from visualizer.settings.link import read_query, write_query
from visualizer.settings.painted_mask import EVERYWHERE
from visualizer.settings.settings import Selection, Settings
from visualizer.stages.head_measures import measure_heads
from visualizer.views.lab.mask_edits import put_in_place, taken_over

LINES = ("the cat saw the dog", "a dog", "the dog saw")
TARGETS = ("la", "un chien noir", "le chien")
BATCH = replace(BASE, text="\n".join(LINES), target="\n".join(TARGETS), pad=0)
ARCHITECTURES = ("encoder", "decoder", "encoder-decoder")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", ("a b",)),
        ("a\nb", ("a", "b")),
        ("\n a \r\n\n \t\nb\n\n", (" a ", "b")),
        ("", ("",)),
        (" ", (" ",)),
        ("\n \n", ("",)),
    ],
)
def test_each_line_is_a_sequence_and_blank_ones_are_none(text, expected):
    assert lines_of(text) == expected


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("pad", [0, 2])
def test_padding_brings_the_lines_to_one_length(side, pad):
    encoded = encode(replace(BATCH, architecture="encoder-decoder", pad=pad, pad_side=side))
    for batch, lengths in ((encoded.sources, (5, 2, 3)), (encoded.targets, (2, 4, 3))):
        longest = max(lengths) + pad
        assert [sequence.is_padding.count(False) for sequence in batch] == list(lengths)
        assert [len(sequence) for sequence in batch] == [longest] * 3
        assert all(
            sequence.is_padding[0] == (side == "left") for sequence in batch if len(set(sequence.is_padding)) > 1
        )
    assert encoded.sources[1].tokens.count("<pad>") == 3 + pad


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_line_of_a_batch_is_what_it_is_alone(architecture, side):
    """With the padding hidden, every number of a line's own tokens is that of a run of this line alone."""
    settings = replace(BATCH, architecture=architecture, pad_side=side, tokens="bytes")
    run = compute_run(settings)
    assert run.n_batch_items == 3
    for item, (line, target) in enumerate(zip(LINES, TARGETS, strict=True)):
        alone = compute_run(replace(settings, text=line, target=target))
        is_text = ~torch.tensor(run.at(item).tokens["target" if "target" in run.tokens else "source"].is_padding)
        found = run.trace["logits"].value[item, is_text]
        torch.testing.assert_close(found, alone.trace["logits"].value[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_sequence_of_a_run_has_the_numbers_masks_and_tokens_of_the_batch(architecture):
    custom = "is_pad(k) or k <= q"
    settings = replace(BATCH, architecture=architecture, mask=("causal", "padding", "custom"), custom=custom)
    run = compute_run(settings)
    for item in range(3):
        one = run.at(item).alone()
        assert (one.n_batch_items, one.text, one.tokens) == (1, LINES[item], run.at(item).tokens)
        for path, stage in one.trace.items():
            whole = run.trace[path].value
            assert torch.equal(stage.value, whole[item : item + 1] if stage.dims[0] == ("B", 1) else whole), path
        for module in run.masks:
            size = run.trace[f"{module}.scores"].value.shape[-2:]
            assert torch.equal(
                one.mask_of(module).blocked_bits(*size), run.mask_of(module).blocked_bits(*size, item)
            )
            assert one.is_cross_attention(module) == run.is_cross_attention(module)
    assert compute_run(BASE).alone().n_batch_items == 1


def test_a_cell_is_blocked_by_what_blocks_it_in_its_own_sequence():
    run = compute_run(BATCH)
    module = "encoder.layers.0.self_attention"
    assert [run.blocked_by(module, 4, 3, item, 0) for item in range(3)] == [(), ("padding",), ("padding",)]
    assert run.at(1).alone().blocked_by(module, 4, 3, 0, 0) == ("padding",)


def test_a_painted_mask_knows_the_tokens_of_each_sequence():
    run = compute_run(replace(BATCH, mask=("custom",), custom="not is_pad(k)"))
    allowed = run.mask_of("encoder.layers.0.self_attention").allowed
    assert allowed is not None
    assert allowed[:, 0, 0].sum(-1).tolist() == [5, 2, 3]


def test_lines_without_partner_say_what_to_do():
    settings = replace(BATCH, architecture="encoder-decoder")
    assert problem_with(settings) is None
    problem = problem_with(replace(settings, target="le chat"))
    assert problem is not None
    assert "The text has 3 lines and the target 1 line: each line of the text needs one line" in problem
    with pytest.raises(ValueError, match="The text has 3 lines and the target 1 line"):
        compute_run(replace(settings, target="le chat"))
    for empty in ("", " ", "\n\n"):
        run = compute_run(replace(settings, target=empty))
        assert [len(sequence) for sequence in run.batches["target"]] == [1, 1, 1]


def test_as_many_lines_as_can_be_computed():
    assert problem_with(replace(BASE, text="a\n" * MAX_SEQUENCES)) is None
    problem = problem_with(replace(BASE, text="a\n" * (MAX_SEQUENCES + 1)))
    assert problem is not None
    assert f"The text has 65 lines, each a sequence of its own; the limit is {MAX_SEQUENCES}" in problem


def test_the_memory_of_a_batch_counts_every_sequence():
    settings = replace(BASE, text="\n".join(["word " * 40, "word " * 30] * 3), n_layers=3)
    run = compute_run(settings)
    tensors = [*run.model.parameters(), *run.model.buffers(), *(stage.value for stage in run.trace.values())]
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    assert prepare(settings).n_bytes == pytest.approx(sum(storages.values()), rel=0.25)


def test_the_padding_mask_is_usual_for_several_lines_and_a_link_says_what_differs():
    settings, _, notices = read_query({"text": ["a b\nc"]})
    assert (settings.mask, notices) == (("causal", "padding"), ())
    for mask in (("causal",), ("causal", "padding"), ()):
        chosen = replace(settings, mask=mask)
        written = write_query(chosen, Selection(batch=1))
        assert read_query({name: [value] for name, value in written.items()})[:2] == (chosen, Selection(batch=1))
    trained, _, _ = read_query({"weights": ["trained"], "text": ["abc\nde"]})
    assert trained.mask == ("causal", "padding")


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_trained_model_answers_each_line_and_its_heads_are_measured_there(side):
    settings = fitted(
        Settings(weights="trained", task="reverse", text="abcd\nzy\n", mask=("causal", "padding"), pad_side=side)
    )
    run = compute_run(settings)
    path = "decoder.layers.0.cross_attention"
    for item, (text, answer) in enumerate((("abcd", "dcba"), ("zy", "yz"))):
        one = run.at(item).alone()
        written = [token for token in one.tokens["target"].tokens if not token.startswith("<")]
        assert "".join(written) == answer
        assert writer_of(one).answer == tuple(run.vocabulary.index(token) for token in answer)
        alone = compute_run(replace(settings, text=text))
        found, expected = (measure_heads(each, [path])[0].values["expected_token"] for each in (one, alone))
        assert found == pytest.approx(expected, abs=1e-4)
        assert expected > 0.5


def test_what_the_masks_promise_is_measured_on_one_sequence():
    run = compute_run(replace(BATCH, architecture="encoder-decoder", text="a b c\nd", target="x y\nz", d_model=8))
    for item in range(2):
        one = run.at(item).alone()
        proof = prove(one, measure(one, "source", lambda done: None), "source", "promised")
        assert proof.passes
        if item == 1:
            assert not proof.allowed["logits"][:, 1:].any()


def test_taking_over_the_masks_of_a_batch_leaves_each_sequence_its_padding():
    run = compute_run(BATCH).at(1).alone()
    module = "encoder.layers.0.self_attention"
    context = mask_context(run.tokens["source"])
    taken = taken_over(BATCH, run.mask_of(module), context)
    assert taken.mask == ("padding", "custom")
    assert taken.custom == "k <= q"
    same = compute_run(taken)
    for path, mask in compute_run(BATCH).masks.items():
        assert torch.equal(same.mask_of(path).allowed, mask.allowed)
    said = put_in_place(BATCH, EVERYWHERE, "k <= q and not is_pad(k)", run.mask_of(module), context)
    assert said.mask == ("custom",)
    assert torch.equal(compute_run(said).mask_of(module).allowed, compute_run(BATCH).mask_of(module).allowed)


@pytest.mark.parametrize("view", ["step", "way", "heads", "compare", "lab", "generate"])
@pytest.mark.parametrize("architecture", ["decoder", "encoder-decoder"])
def test_every_view_shows_the_sequence_that_is_chosen(view, architecture):
    app = open_app(view=view, architecture=architecture, text="the cat sat\na dog", target="x\ny", batch="1")
    assert_healthy(app)
    control = app.segmented_control(key="batch")
    assert (control.value, control.options) == (1, ["0 the cat sat", "1 a dog"])
    assert any(
        "A batch of 2 sequences, one per line, padded to 3 tokens" in caption.value for caption in app.caption
    )
    padding = [] if (view, architecture) == ("generate", "decoder") else ["<pad>"]  # what is continued has none
    assert tokens(app)["source"] == ["a", "dog", *padding]
    control.set_value(0).run()
    assert_healthy(app)
    assert "batch" not in app.query_params
    assert tokens(app)["source"] == ["the", "cat", "sat"]
    app.segmented_control(key="batch").set_value(1).run()
    assert in_link(app, "batch") == "1"


def tokens(app: AppTest) -> dict[str, list[str]]:
    """The tokens of the strip, by the sequence."""
    strip = next(one.proto for one in app.get("bidi_component") if one.proto.id.endswith("-token_strip"))
    drawn = header_of(strip.bytes)["sequences"]
    return {sequence["name"]: [token["label"] for token in sequence["tokens"]] for sequence in drawn}


def test_targets_are_lines_too():
    app = open_app(architecture="encoder-decoder", text="one two\nthree", target="eins zwei")
    assert "The text has 2 lines and the target 1 line" in app.error[0].value
    app.text_area(key="target").set_value("eins zwei\ndrei").run()
    assert_healthy(app)
    app.segmented_control(key="batch").set_value(1).run()
    assert tokens(app) == {"source": ["three", "<pad>"], "target": ["<s>", "drei", "<pad>"]}


def test_shuffled_tokens_go_back_to_their_places():
    app = open_app(text="I love AI", positions="none", mask="none")
    app.button(key="shuffle").click().run()
    assert tokens(app)["source"] == ["AI", "love", "I"]
    assert any("the vectors are the same, reordered" in said.value for said in (*app.caption, *app.markdown))
    app.button(key="as_typed").click().run()
    assert tokens(app)["source"] == ["I", "love", "AI"]
    assert not any("in another order than typed" in said.value for said in (*app.caption, *app.markdown))


def test_a_text_that_becomes_several_lines_is_padded_and_masked_as_in_practice():
    app = open_app(view="compare", mask_b="causal", mask_a="none")
    app.text_area(key="text").set_value("the cat sat on the mat\na dog").run()
    assert_healthy(app)
    assert in_link(app, "mask_a") == "padding"
    assert in_link(app, "mask_b") == "causal,padding"
    app.segmented_control(key="view").set_value("step").run()
    assert app.pills(key="mask").value == ["causal", "padding"]
    app.pills(key="mask").set_value(["causal"]).run()
    assert_healthy(app)
    assert in_link(app, "mask") == "causal"
    assert any("The padding mask is off" in caption.value for caption in app.caption)
    app.run()
    app.text_area(key="text").set_value("the cat sat on the mat\na dog\na bird").run()
    app.run()
    assert app.pills(key="mask").value == ["causal"]


def test_a_batch_that_becomes_smaller_shows_its_last_sequence():
    app = open_app(text="a\nb\nc", batch="2")
    app.text_area(key="text").set_value("a\nb").run()
    assert_healthy(app)
    assert app.segmented_control(key="batch").value == 1
    app.run()
    app.text_area(key="text").set_value("a").run()
    assert_healthy(app)
    assert "batch" not in app.query_params


def test_many_lines_are_offered_in_a_menu():
    app = open_app(text="\n".join("abcdefgh"), batch="7")
    assert_healthy(app)
    (menu,) = [one for one in app.selectbox if one.label == "Sequence"]
    assert menu.value == "7 h"
    menu.set_value("2 c").run()
    assert app.query_params["batch"] == "2"
    app.text_area(key="text").set_value("\n".join("rstuvwxy")).run()
    (menu,) = [one for one in app.selectbox if one.label == "Sequence"]
    assert menu.value == "2 t"
    assert_healthy(app)


def test_one_click_does_what_a_refusal_proposes():
    app = open_app(text=" ".join("w" for _ in range(1_100)), n_heads="1", n_layers="1")
    assert app.error[0].value.startswith("The text has 1\\,100 tokens")
    app.button(key="way_out").click().run()
    assert_healthy(app)
    assert len(lines_of(in_link(app, "text"))[0].split()) == 1_024
    app = open_app(weights="trained", task="reverse", pad="64")
    assert "lower the padding tokens from 64 to 54" in app.error[0].value
    assert app.button(key="way_out").label == "Lower the padding to 54"
    app.button(key="way_out").click().run()
    assert_healthy(app)
    assert in_link(app, "pad") == "54"


def test_a_worked_example_does_not_read_what_is_typed():
    assert_healthy(open_app(weights="one_head", text="a\n" * 70, architecture="encoder-decoder"))


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (
            {"mask": "padding"},
            "The padding mask hides the padding. Take it off to see what goes wrong.",
        ),
        ({"mask": "none"}, "The padding mask is off: words see the padding too"),
        ({"mask": "causal"}, "The padding mask is off, but the other masks hide the padding from all words."),
        (
            {"mask": "causal,padding"},
            "The padding mask hides the padding. The other masks alone would hide it too.",
        ),
        ({"mask": "causal", "pad_side": "left"}, "The padding mask is off: words see the padding too"),
        ({"mask": "causal", "architecture": "encoder-decoder", "target": "x\ny"}, "words see the padding too"),
        ({"text": "a\nb"}, "They are equally long: no padding."),
        ({"view": "compare", "mask_a": "causal", "mask_b": "causal,padding"}, "It is hidden in B."),
        ({"view": "compare", "mask_a": "padding", "mask_b": "padding"}, "It is hidden in A and B."),
        ({"view": "compare", "mask_a": "none", "mask_b": "causal"}, "It is hidden in neither A nor B."),
        ({"view": "generate", "architecture": "decoder"}, "Each is continued without its padding."),
    ],
)
def test_who_hides_the_padding_is_said_of_what_is_shown(link, said):
    app = open_app(**{"text": "the cat sat\na dog"} | link)
    assert_healthy(app)
    assert any(said in caption.value for caption in app.caption)


def test_a_query_that_is_no_longer_chosen_is_off_the_padding_as_it_is_in_its_link():
    app = open_app(view="generate", architecture="encoder", text="a b c", pad="3", query="0")
    app.button(key="write_with_decoder").click().run()
    assert in_link(app, "query") == "2"
    again = open_app(**{name: in_link(app, name) for name in app.query_params})
    assert again.query_params == app.query_params


@pytest.mark.parametrize("query", [None, "8"], ids=["found", "chosen"])
def test_padding_at_the_usual_query_is_left_where_nobody_chose_it(query):
    app = open_app(view="heads", text="the dog saw the cat and the cat", pad="1")
    assert in_link(app, "query") == "7"
    if query is not None:
        tell(app, "attention_heads_encoder_self_attention", "select", layer=0, head=0, query=int(query), key=0)
    assert in_link(app, "query") == (query or "7")
    again = open_app(**{name: in_link(app, name) for name in app.query_params})
    assert again.query_params == app.query_params
