"""The tokens that a run's model starts from, what it sees while it writes, and who cannot write."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from model.decoding import Reader, decode
from model.learning.tasks import EOS, SOS, TASKS
from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.runs.compute import compute_run
from visualizer.runs.writer import LIMIT_OF_LARGE, MOST_TOKENS, USUAL_LIMIT, prompt_tokens, writer_of
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Settings
from visualizer.views.generate.others import offers

TRAINED = {
    name: fitted(Settings(weights="trained", task=name, text=text, mask=("causal",)))
    for name, text in {"reverse": "headlight", "repeat_block": "qzfkx"}.items()
}
OWN_TARGET = "The target beside the text is left out here: the model writes its own."


def test_beside_an_encoder_it_starts_from_the_start_token():
    run = run_of("encoder-decoder")
    writer = writer_of(run)
    assert writer.prompt == (1,)
    assert writer.source == run.tokens["source"].ids
    assert writer.end is None
    assert writer.answer is None
    assert (writer.usual_limit, writer.longest) == (USUAL_LIMIT, MOST_TOKENS)


def test_a_decoder_goes_on_from_the_text_without_its_padding():
    run = run_of("decoder")
    assert sum(run.tokens["source"].is_padding) == 2
    assert writer_of(run).prompt == run.tokens["source"].ids[:-2]
    assert writer_of(run).source == ()


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_the_source_stays_hidden_on_either_side(side):
    settings = replace(VARIANTS["encoder-decoder"], pad_side=side)
    run = compute_run(settings)
    writer = writer_of(run)
    shown = writer.memory_masks[0]
    assert shown is not None
    assert shown.shape[-2] == 1
    assert shown.flatten().tolist() == [not pads for pads in run.tokens["source"].is_padding]


def test_what_is_painted_over_the_source_stays_while_the_model_writes():
    painted = {"custom_encoder": "k <= q", "custom_cross": "k <= q"}
    settings = replace(VARIANTS["encoder-decoder"], mask=("causal", "padding", "custom"), **painted)
    run = compute_run(settings)
    writer = writer_of(run)
    reader = writer.reader(cached=False)
    assert isinstance(reader, Reader)
    assert torch.equal(reader.source_mask[0], run.masks["encoder.layers.0.self_attention"].allowed)
    assert writer.memory_masks[0].flatten().tolist() == [not pads for pads in run.tokens["source"].is_padding]
    assert any("The painted mask of the decoder is left out here" in remark for remark in writer.remarks)
    alone = writer_of(compute_run(replace(settings, custom_cross="")))
    assert not any("painted mask" in remark for remark in alone.remarks)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_the_source_changes_nothing_that_is_written(side, cached):
    alone = replace(VARIANTS["encoder-decoder"], pad=0)
    (_, expected), (_, found) = (
        written_logits(settings, cached=cached) for settings in (alone, replace(alone, pad=3, pad_side=side))
    )
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def written_logits(settings, *, cached):
    """The tokens that the model of some settings writes, and the logits that chose them."""
    writer = writer_of(compute_run(settings))
    steps = list(decode(writer.reader(cached=cached), writer.prompt, end=None, limit=3))
    return [step.token for step in steps], torch.stack([step.logits for step in steps])


def test_a_mask_bug_that_counts_the_padding_is_one_of_the_source():
    alone = replace(VARIANTS["encoder-decoder"], pad=0)
    broken = replace(alone, pad=3, pad_side="left", fault="padding_counted")
    (_, expected), (_, found) = (written_logits(settings, cached=False) for settings in (alone, broken))
    assert (found - expected).abs().max() > 0.01
    assert writer_of(compute_run(broken)).remarks == (OWN_TARGET,)
    remarks = writer_of(compute_run(replace(broken, architecture="decoder"))).remarks
    assert remarks == ("The padding is left out here, so there is none to count.",)


def test_a_trained_model_has_an_end_and_a_right_answer():
    writer = writer_of(compute_run(TRAINED["reverse"]))
    task = TASKS["reverse"]
    assert writer.prompt == (SOS,)
    assert writer.source == (*task.encode("headlight"), EOS)
    assert writer.end == EOS
    assert writer.answer == task.encode("thgildaeh")
    decoder = writer_of(compute_run(TRAINED["repeat_block"]))
    assert decoder.prompt == (SOS, *TASKS["repeat_block"].encode("qzfkx"), EOS)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(), "An encoder only reads"),
        (Settings(weights="one_head"), "worked example"),
        (
            fitted(Settings(weights="trained", task="mark_repeats", text="headlamp", mask=())),
            "An encoder only reads",
        ),
    ],
)
def test_what_cannot_write_says_so_and_every_model_offered_beside_it_can(settings, said):
    run = compute_run(settings)
    with pytest.raises(ValueError, match=said):
        writer_of(run)
    assert prompt_tokens(run) == run.tokens
    offered = offers(settings)
    assert [offer.name for offer in offered].count("decoder") == 1
    assert {"reverse", "repeat_block"} < {offer.name for offer in offered}
    for offer in offered:
        assert fitted(offer.settings) == offer.settings
        assert writer_of(compute_run(offer.settings)).longest > 0


def test_the_text_is_continued_where_there_is_one_of_ones_own():
    (decoder,) = (each for each in offers(Settings(text="one two", mask=("padding",))) if each.name == "decoder")
    assert (decoder.settings.text, decoder.settings.mask) == ("one two", ("causal", "padding"))


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        (TRAINED["reverse"], {"source": (*"headlight", "<eos>")}),
        (TRAINED["repeat_block"], {"source": ("<sos>", *"qzfkx", "<eos>")}),
        (replace(TRAINED["repeat_block"], pad=2, pad_side="left"), {"source": ("<sos>", *"qzfkx", "<eos>")}),
        (replace(VARIANTS["decoder"], text="a b"), {"source": ("a", "b")}),
        (replace(VARIANTS["encoder-decoder"], text="a b", pad=0), {"source": ("a", "b")}),
    ],
    ids=["trained encoder-decoder", "trained decoder", "padding", "decoder", "encoder-decoder"],
)
def test_what_is_given_holds_nothing_of_what_is_written(settings, given):
    assert {name: tokens.tokens for name, tokens in prompt_tokens(compute_run(settings)).items()} == given


def test_the_chosen_masks_hold_for_tokens_to_come():
    settings = replace(VARIANTS["decoder"], mask=("causal", "sliding_window"), window=2, pad=0)
    writer = writer_of(compute_run(settings))
    allowed = writer.masks.allowed
    assert allowed is not None
    size = len(writer.prompt) + writer.longest
    expected = [[0 <= query - key < 2 for key in range(size)] for query in range(size)]
    assert allowed[0, 0].tolist() == expected


def test_without_masks_every_token_so_far_is_seen():
    run = compute_run(replace(VARIANTS["decoder"], mask=(), pad=0))
    writer = writer_of(run)
    trace = writer.reader(cached=False)(writer.prompt, None)
    path = "decoder.layers.0.self_attention.weights"
    assert torch.equal(trace[path].value, run.trace[path].value)
    with pytest.raises(ValueError, match="causal"):
        writer.reader(cached=True)(writer.prompt, None)


def test_it_writes_no_more_than_the_positions_reach():
    writer = writer_of(compute_run(replace(VARIANTS["decoder"], text="a " * 505, pad=0)))
    assert writer.longest == 512 - 505 + 1


def test_a_large_model_writes_fewer_tokens_unless_told():
    large = replace(VARIANTS["decoder"], n_layers=12, d_model=512, d_ff=2048, text="a b c " * 30)
    assert writer_of(compute_run(large)).usual_limit == LIMIT_OF_LARGE


def test_what_does_not_hold_here_is_said():
    settings = replace(VARIANTS["decoder"], dropout=0.3, fault="after_softmax", mask=("causal", "custom"))
    run = compute_run(settings)
    writer = writer_of(run)
    reader = writer.reader(cached=False)
    assert isinstance(reader, Reader)
    assert not reader.model.training
    assert run.model.training
    assert len(writer.remarks) == 3
    assert writer.masks.names == ("causal",)
    assert writer_of(run_of("encoder-decoder")).remarks == (OWN_TARGET,)
    assert writer_of(compute_run(TRAINED["reverse"])).remarks == ()
