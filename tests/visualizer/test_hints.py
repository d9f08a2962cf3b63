"""Settings without the effect that their name promises: said, and one click that gives them one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from model import sinusoidal_encoding
from tests.test_app import assert_healthy, in_link, open_app
from tests.visualizer.sample_runs import BASE
from visualizer.page.hints import sentences
from visualizer.runs.compute import compute_run
from visualizer.stages.registry import operands_of


@pytest.mark.parametrize(
    "link",
    [{"mask": "causal,padding"}, {"view": "compare", "mask_b": "padding", "mask": "none"}, {"text": "a b\nc d"}],
)
def test_a_padding_mask_without_padding_says_so_and_one_click_pads(link):
    app = open_app(**link)
    assert_healthy(app)
    assert any("there is no padding." in caption.value for caption in app.caption)
    app.button(key="more_padding").click().run()
    assert_healthy(app)
    assert in_link(app, "pad") == "3"
    assert not any("there is no padding" in caption.value for caption in app.caption)


@pytest.mark.parametrize(
    "link", [{"mask": "causal"}, {"mask": "padding", "pad": "1"}, {"text": "a b\nc"}, {"weights": "one_head"}]
)
def test_nothing_is_said_where_there_is_padding_or_no_such_mask(link):
    assert "more_padding" not in {button.key for button in open_app(**link).button}


def test_learned_positions_of_hand_built_weights_are_the_sinusoids():
    run = compute_run(replace(BASE, weights="hand_built", positions="learned", d_model=32))
    table = run.model.get_parameter("encoder.inputs.positions.table")
    assert torch.equal(table, sinusoidal_encoding(*table.shape).float())
    (said,) = sentences(run)
    assert "Nothing was learned here" in said
    assert "positions has the sinusoids" in said
    (said,) = sentences(compute_run(replace(BASE, positions="learned")))
    assert "random numbers" in said


def test_a_hand_built_head_loses_what_it_reads_to_dropout():
    settings = replace(BASE, weights="hand_built", d_model=64, mask=(), pad=0, text="a b c d e f g h")
    path = "encoder.layers.1.self_attention.weights"
    kept, lost = (compute_run(replace(settings, dropout=dropout)) for dropout in (0.0, 0.5))
    previous, dropped = (run.trace[path].value[0, 0].diagonal(-1) for run in (kept, lost))
    assert previous.min() > 0.9
    assert dropped.min() < 0.5
    assert sentences(kept) == ()
    assert "Dropout sets 50% of the numbers to zero" in sentences(lost)[0]
    assert sentences(lost, "generate") == ()
    assert sentences(compute_run(replace(settings, weights="random", dropout=0.5))) == ()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("architecture", ["encoder", "encoder-decoder"])
def test_the_inputs_drawn_of_a_residual_sum_add_up_with_dropout_too(architecture, norm):
    run = compute_run(replace(BASE, architecture=architecture, norm=norm, dropout=0.4))
    sums = [path for path in run.trace if run.trace[path].name.startswith("residual")]
    assert len(sums) == (4 if architecture == "encoder" else 10)
    for path in sums:
        stream, dropped = (run.trace[operand.source] for operand in operands_of(run, path))
        assert torch.equal(run.trace[path].value, stream.value + dropped.value), path
        (output,) = operands_of(run, dropped.path)
        assert dropped.name == f"dropped_output{path[-1]}"
        assert output.source.endswith(".output")
        assert (dropped.value == 0).double().mean() == pytest.approx(0.4, abs=0.2)


def test_a_model_that_reads_capitals_as_small_letters_says_so():
    app = open_app(weights="trained", task="reverse", text="ABC")
    assert_healthy(app)
    assert any("capitals are read as small letters" in caption.value for caption in app.caption)
    app = open_app(weights="trained", task="reverse", text="abc")
    assert not any("capitals" in caption.value for caption in app.caption)
