import json
from dataclasses import replace

import pytest

from tests.visualizer.runs import run_of
from visualizer.citation import summary
from visualizer.published import PUBLISHED, examples_in


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
    found = summary(replace(run, published=wrong))
    assert found.holds is False
    assert found.text.startswith("Not all published numbers come out")
    assert "norm1 ✗" in found.text
    assert found.text.count("✓") == 4


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_stage_is_ticked(name):
    run = run_of(name)
    found = summary(run)
    assert found.holds
    assert found.text.count("✓") == len(run.published) == len(run.example.expected)
    assert (run.example.mask is not None) == PUBLISHED[name].has_mask
