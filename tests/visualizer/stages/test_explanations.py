import ast

import pytest
import torch

from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.runs.compute import compute_run
from visualizer.runs.head_notes import head_note, noted_name
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.settings import Settings
from visualizer.stages.registry import entry_of, explanation
from visualizer.stages.source_lines import code_line


@pytest.mark.parametrize("name", [*VARIANTS, *WORKED_EXAMPLES])
def test_every_stage_has_a_title_and_its_line_of_code(name):
    run = run_of(name)
    for path, stage in run.trace.items():
        assert entry_of(run, path).title
        code = code_line(stage).code
        ast.parse(code)
        assert code.startswith(f"{stage.name} = ")


def test_the_code_is_the_line_that_ran():
    trace = run_of("pre-norm").trace
    assert code_line(trace["encoder.layers.0.self_attention.scores"]).code == "scores = q @ k.mT"
    residual = code_line(trace["encoder.layers.0.residual1"])
    assert residual.code == "residual1 = x + drop(self_attention(y, y, y, mask), 'dropped_output1')"
    assert residual.place.startswith("model/layers.py, line ")
    dropped = code_line(run_of("dropout").trace["encoder.layers.1.dropped_output2"])
    assert dropped.code == "dropped_output2 = layer.dropout(output)"
    context = code_line(run_of("dropout").trace["encoder.layers.0.self_attention.context"])
    assert context.code == "context = dropped_weights @ v"


def test_a_last_norm_is_explained_by_what_stands_before_it():
    after_post, after_pre = run_of("final norm"), run_of("pre-norm")
    assert entry_of(after_post, "encoder.norm").title == entry_of(after_pre, "encoder.norm").title
    assert "has just normalised its sum" in explanation(after_post, "encoder.norm", "exact")
    assert "never normalised themselves" in explanation(after_pre, "encoder.norm", "exact")


def test_inputs_are_explained_by_where_they_come_from():
    run = run_of("encoder-decoder")
    assert "target" in explanation(run, "decoder.layers.0.cross_attention.query_input", "exact")
    assert "self-attention" in explanation(run, "decoder.layers.0.self_attention.query_input", "exact")
    assert "source" in explanation(run_of("cross_attention"), "attention.key_input", "exact")
    assert "given" in explanation(run_of("attention_function"), "attention.q", "exact")


@pytest.mark.parametrize(
    ("name", "masks", "is_cross", "says"),
    [
        ("next token", ("causal",), False, "causal mask blocks"),
        ("two ahead", (), False, "nothing that far ahead"),
        ("previous token", ("causal",), False, "nothing that far back"),
        ("same token", (), True, "no equal token"),
        ("same token", (), False, ""),
        ("itself", ("causal",), False, ""),
        ("itself", (), True, "the source has no token at that place"),
        ("13 ahead", ("prefix", "causal"), False, "causal mask blocks"),
        ("three back", ("strided",), False, "nothing that far back or a mask blocks"),
        ("first token", ("causal", "padding", "prefix"), False, ""),
        ("first token", ("sliding_window",), False, "a mask blocks"),
        ("uniform", ("causal", "custom"), False, ""),
        ("next token (no positions)", ("causal",), False, "lacks what this head needs"),
        ("", ("causal",), False, ""),
    ],
)
def test_a_head_that_cannot_do_its_work_everywhere_says_so(name, masks, is_cross, says):
    note = head_note(name, masks, is_cross=is_cross)
    assert says in note
    assert bool(note) == bool(says)


@pytest.mark.parametrize("masks", [(), ("causal",), ("causal", "prefix"), ("causal", "sliding_window")])
def test_a_head_of_the_next_token_says_where_it_reads_itself(masks):
    run = compute_run(Settings(architecture="decoder", mask=masks))
    weights = run.trace["decoder.layers.0.self_attention.weights"].value[0, 1]
    reads_itself = bool((weights.argmax(-1) == torch.arange(len(weights))).all())
    named = noted_name("next token", masks, is_cross=False)
    assert named == ("next token (causal: mostly itself)" if reads_itself else "next token")
    assert ("reads mostly its own token" in head_note("next token", masks, is_cross=False)) == reads_itself


@pytest.mark.parametrize(
    ("changes", "is_noted"),
    [
        ({}, True),
        ({"score": "score / 2"}, True),
        ({"score": "-score"}, False),
        ({"fault": "before_softmax"}, False),
        ({"edits": "decoder.layers.0.self_attention.q-h1-zero"}, False),
    ],
    ids=str,
)
def test_what_masks_make_of_a_head_is_said_where_nothing_else_is_made_of_it(changes, is_noted):
    run = compute_run(Settings(architecture="decoder", mask=("causal",), **changes))
    path = "decoder.layers.0.self_attention"
    weights = run.trace[f"{path}.weights"].value[0, 1]
    assert bool((weights.argmax(-1) == torch.arange(len(weights))).all()) == is_noted
    assert (run.head_label(1, path) == "head 1 · next token (causal: mostly itself)") == is_noted


def test_with_two_vocabularies_the_same_token_head_says_that_there_is_none():
    note = head_note("same token", (), is_cross=True, two_vocabularies=True)
    assert "vocabularies of their own" in note
    assert not head_note("same token", (), is_cross=False, two_vocabularies=True)
