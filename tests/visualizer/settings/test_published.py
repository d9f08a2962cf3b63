import json
from dataclasses import replace

import pytest

from tests.visualizer.sample_runs import run_of
from visualizer.settings.published import PUBLISHED, examples_in
from visualizer.views.citation import summary, verdicts


def test_a_new_file_is_a_new_example(tmp_path):
    for name, source in (("b", "A book, part 10"), ("a", "A book, part 9"), ("c", "An article")):
        content = {"title": name.upper(), "source": source, "recipe": "seed(1)", "expected": {}}
        (tmp_path / f"{name}.json").write_text(json.dumps(content | ({"mask": []} if name == "c" else {})))
    found = examples_in(tmp_path)
    assert list(found) == ["a", "b", "c"]
    assert [example.title for example in found.values()] == ["A", "B", "C"]
    assert [example.has_mask for example in found.values()] == [False, False, True]


def test_a_stage_that_does_not_come_out_is_crossed():
    run = run_of("encoder_layer")
    wrong = {path: numbers + 1e-8 * path.endswith("norm1") for path, numbers in run.published.items()}
    broken = replace(run, published=wrong)
    found = summary(broken)
    assert found.holds is False
    assert found.text.startswith("Not all of the 840 published numbers, in 5 stages, are reproduced to 1e-9")
    assert found.text.endswith("other numbers in norm1")
    assert [path for path, comes_out in verdicts(broken).items() if not comes_out] == ["encoder_layer.norm1"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_stage_is_ticked(name):
    run = run_of(name)
    found = summary(run)
    assert found.holds
    assert verdicts(run) == dict.fromkeys(run.example.expected, True)
    assert (run.example.mask is not None) == PUBLISHED[name].has_mask


@pytest.mark.parametrize("name", ["cross_attention", "encoder_layer", "attention_function_masked"])
def test_one_sequence_of_an_example_is_held_against_its_own_numbers(name):
    alone = run_of(name).at(1).alone()
    assert all(verdicts(alone).values())
    for path, numbers in alone.published.items():
        assert numbers.shape == alone.trace[path].value.shape


def test_a_model_has_no_published_numbers_to_tick():
    assert verdicts(run_of("encoder")) == {}
