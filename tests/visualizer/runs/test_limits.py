from dataclasses import replace

import pytest

from tests.visualizer.sample_runs import problem_with
from visualizer.runs import limits
from visualizer.runs.compute import compute_run
from visualizer.runs.limits import MAX_BYTES, way_out
from visualizer.runs.prepare import prepare
from visualizer.runs.refusals import RefusedError
from visualizer.runs.tokens import tokenize
from visualizer.settings.fields import MAX_TEXT, MAX_TOKENS, WORKED_EXAMPLES
from visualizer.settings.settings import Settings

LARGE = Settings(text="a " * 512, n_layers=12, n_heads=12, d_model=96)


def test_the_defaults_can_be_run():
    assert problem_with(Settings()) is None


@pytest.mark.parametrize("text", ["", "   ", "\n\t\u3000"])
def test_a_text_without_tokens_says_what_to_do(text):
    assert problem_with(Settings(text=text, pad=3)) == (
        "There is nothing to run yet: type at least one word into the text."
    )


def test_an_empty_target_is_fine():
    assert problem_with(Settings(architecture="encoder-decoder", target="")) is None


def test_the_most_tokens_are_drawn_and_one_more_is_not():
    assert problem_with(Settings(text="a " * MAX_TOKENS)) is None
    assert problem_with(Settings(text="a " * 1_025)) == (
        "The text has 1,025 tokens; at most 1,024 are drawn: shorten it."
    )


def test_coarser_tokens_are_proposed():
    assert problem_with(Settings(text="word " * 2_000, tokens="characters")) == (
        "The text has 10,000 tokens; at most 1,024 are drawn: shorten it or choose words instead of characters."
    )
    assert "choose words or characters instead of bytes" in problem_with(Settings(text="é" * 600, tokens="bytes"))


def test_padding_counts():
    assert "1,027 tokens with its padding" in problem_with(Settings(text="a " * 1_024, pad=3))


def test_the_target_counts_with_its_start_where_there_is_one():
    long = Settings(architecture="encoder-decoder", target="b " * 1_024)
    assert problem_with(long).startswith("The target has 1,025 tokens")
    assert problem_with(replace(long, architecture="encoder")) is None


@pytest.mark.parametrize("name", WORKED_EXAMPLES)
def test_a_worked_example_needs_no_text(name):
    assert problem_with(Settings(weights=name, text="")) is None


def test_twelve_layers_of_twelve_heads_fit_for_an_encoder():
    assert problem_with(LARGE) is None
    assert problem_with(replace(LARGE, mask=(), dropout=0.1, norm="pre")) is None


def test_of_a_text_that_is_too_long_for_a_large_model_what_fits_is_offered():
    long = replace(LARGE, text="a " * 1_100)
    assert problem_with(long).startswith("The text has 1,100 tokens")
    longest = replace(LARGE, text="a " * MAX_TOKENS)
    assert problem_with(longest) == (
        "This run would take about 2,372 MiB of memory; the limit is 1,024 MiB: "
        "lower n_layers from 12 to 5, or choose fewer heads, a smaller d_ff or a shorter text."
    )
    offered = [way_out(settings) for settings in (long, longest)]
    assert offered[0] == offered[1]
    fitting = replace(LARGE, **offered[0].changes)
    assert problem_with(fitting) is None
    assert problem_with(replace(fitting, text=f"{fitting.text} a")) is not None


def test_twelve_layers_of_twelve_heads_are_refused_for_both_halves():
    both = replace(LARGE, architecture="encoder-decoder", target="b " * 511)
    assert problem_with(both) == (
        "This run would take about 1,529 MiB of memory; the limit is 1,024 MiB: "
        "lower n_layers from 12 to 8, or choose fewer heads, a smaller d_ff or a shorter text."
    )
    assert problem_with(replace(both, n_layers=8)) is None
    assert problem_with(replace(both, n_layers=9)) is not None


def test_a_deep_decoder_beside_a_deep_encoder_says_how_far_to_lower_each():
    both = replace(LARGE, architecture="encoder-decoder", target="b " * 511, n_layers=10, n_decoder_layers=12)
    assert "lower n_layers from 10 to 8 and n_decoder_layers from 12 to 8, or choose fewer" in problem_with(both)
    assert problem_with(replace(both, n_layers=8, n_decoder_layers=8)) is None
    one_alone = replace(both, n_layers=1)
    assert problem_with(one_alone) is None or "lower n_decoder_layers from 12" in problem_with(one_alone)


def test_one_layer_always_fits():
    widest = replace(LARGE, architecture="encoder-decoder", target="b " * 511, n_heads=16, d_model=768, d_ff=4096)
    widest = replace(widest, head_dim=256)
    trained = replace(widest, n_layers=1, mask=("causal", "padding"), dropout=0.1)
    assert prepare(trained).n_bytes < MAX_BYTES


SOME = Settings(text="a b c " * 50, n_heads=4, n_layers=2, d_model=32, d_ff=64, mask=())
BOTH = {"architecture": "encoder-decoder", "target": "b " * 100}


def measured_bytes(settings):
    """The memory of all that a finished run holds, shared memory once."""
    run = compute_run(settings).alone()
    tensors = [stage.value for stage in run.trace.values()]
    tensors += [*run.model.parameters(), *run.model.buffers()]
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in tensors}
    return sum(storage.nbytes() for storage in storages.values())


@pytest.mark.parametrize(
    "change",
    [
        {"mask": ("causal",)},
        {"dropout": 0.1},
        {"norm": "pre"},
        {"final_norm": True},
        {"unembedding_bias": True},
        {"qkv_bias": False},
        {"fused_qkv": True},
        {"positions": "learned"},
        {"score": "score / 2 - abs(q - k)"},
        {"output_bias": False},
        {"head_dim": 64},
        {"n_heads": 1},
        {"n_layers": 4},
        {"d_model": 64},
        {"d_ff": 512},
        {"architecture": "decoder", "mask": ("causal",)},
        {"architecture": "attention"},
        {"architecture": "attention", "d_out": 200},
        BOTH,
        BOTH | {"mask": ("causal",)},
        BOTH | {"mask": ("padding",)},
    ],
    ids=str,
)
def test_a_run_takes_the_memory_that_was_expected(change):
    settings = replace(SOME, **change)
    expected, measured = prepare(settings).n_bytes, measured_bytes(settings)
    assert measured == pytest.approx(expected, rel=0.01)
    more = expected - prepare(SOME).n_bytes
    assert measured - measured_bytes(SOME) == pytest.approx(more, rel=0.03)


def test_a_text_of_1100_words_offers_the_first_1024():
    long = Settings(text=" ".join(f"w{i}" for i in range(1_100)))
    found = way_out(long)
    assert found is not None
    assert found.label == "Use the first 1,024 tokens"
    shorter = replace(long, **found.changes)
    assert tokenize(shorter.text, "words") == [f"w{i}" for i in range(1_024)]
    assert problem_with(shorter) is None
    assert way_out(shorter) is None


@pytest.mark.parametrize(
    "change",
    [
        {"text": "wörd, " * 900, "tokens": "characters", "pad": 7},
        {"text": "é" * 900, "tokens": "bytes"},
        {"text": "a b\n\n" + "c " * 1_100 + "\nd", "mask": ("causal", "padding")},
        {"text": "a\n" * 90},
        {"text": "word " * MAX_TEXT},
        {"text": "a", "target": "b " * 1_100, "architecture": "encoder-decoder"},
        {"text": "a\n" * 80, "target": "b " * 700 + "\nb" * 79, "architecture": "encoder-decoder"},
        {"text": "a " * 500 + "\nb" * 60, "n_heads": 8},
    ],
)
def test_what_is_too_long_is_mended_by_what_is_offered(change):
    settings = Settings(**change)
    found = way_out(settings)
    assert problem_with(settings) is not None
    assert found is not None
    assert problem_with(replace(settings, **found.changes)) is None


def test_lines_that_do_not_fit_into_memory_together_are_counted():
    settings = Settings(text="a " * 500 + "\nb" * 60, n_heads=8)
    assert "keep 15 of the 61 lines, or choose fewer heads" in problem_with(settings)
    found = way_out(settings)
    assert found is not None
    assert found.label == "Use the first 15 lines"
    assert problem_with(replace(settings, text="a " * 500 + "\nb" * 14)) is None
    assert problem_with(replace(settings, text="a " * 500 + "\nb" * 15)) is not None


def short_alone(line, kind):
    assert len(line) <= MAX_TEXT
    return tokenize(line, kind)


def test_a_text_that_is_too_long_is_refused_unread(monkeypatch):
    """Cutting megabytes into tokens takes seconds."""
    monkeypatch.setattr(limits, "tokenize", short_alone)
    settings = Settings(text="word " * 1_000_000)
    assert problem_with(settings) == (
        "The text has 5,000,000 characters; at most 20,000 are read, and at most 1,024 tokens of a line are "
        "drawn: shorten it."
    )
    monkeypatch.undo()
    with pytest.raises(RefusedError, match="5,000,000 characters") as refused:
        prepare(settings)
    assert refused.value.way_out is not None
    assert refused.value.way_out.changes == {"text": "word " * 1_024}
    with pytest.raises(RefusedError):
        compute_run(settings)
    with pytest.raises(RefusedError, match="1,600 tokens"):
        prepare(Settings(text="w " * 1_600))
