"""Every number of every published example, to 1e-9 in double precision."""

from __future__ import annotations

import json

import pytest
import torch

from model import MASKS, MultiHeadAttention, TracedModule
from model.masks import causal
from model.sources.worked_examples import PUBLISHED, WORKED_EXAMPLES, load_worked_example

FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(PUBLISHED.glob("*.json"))}
ARRAYS = [(name, key) for name, content in FILES.items() for key in content["expected"]]
MINIMAL = {
    "title": "One",
    "source": "a book",
    "recipe": "by hand",
    "q": [[1.0]],
    "k": [[1.0]],
    "v": [[2.0]],
    "expected": {"context": [[2.0]]},
}


def published(value):
    """The numbers of a file, read apart from the code under test."""
    text = json.dumps(value).replace('"-inf"', "-Infinity")
    return torch.tensor(json.loads(text), dtype=torch.float64)


def example_from(tmp_path, content):
    path = tmp_path / "example.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return load_worked_example(path)


def test_every_file_is_an_example():
    assert list(WORKED_EXAMPLES) == list(FILES)
    assert len(FILES) >= 11


@pytest.mark.parametrize(("name", "key"), ARRAYS)
def test_every_published_number_is_computed(name, key):
    example = WORKED_EXAMPLES[name]()
    path = list(example.expected)[list(FILES[name]["expected"]).index(key)]
    computed, numbers = example.run()[path].value, published(FILES[name]["expected"][key])
    assert computed.dtype == torch.float64
    assert torch.equal(example.expected[path].flatten(), numbers.flatten())
    assert computed.shape == example.expected[path].shape
    assert [size for size in computed.shape if size > 1] == [size for size in numbers.shape if size > 1]
    assert torch.allclose(computed.reshape(numbers.shape), numbers, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", FILES)
def test_an_example_describes_itself(name):
    example = WORKED_EXAMPLES[name]()
    assert example.name == name
    assert (example.title, example.source, example.recipe) == tuple(
        FILES[name][key] for key in ("title", "source", "recipe")
    )
    assert example.description.endswith(".")
    assert isinstance(example.module, TracedModule)
    assert not example.module.training
    assert (example.mask is None) == ("mask" not in FILES[name]) == (example.mask_name == "")
    assert example.mask_name in ("", *MASKS)


@pytest.mark.parametrize("name", FILES)
def test_its_sequences_are_as_long_as_its_axes(name):
    example = WORKED_EXAMPLES[name]()
    target = example.sequences.get("target", example.sequences["source"])
    lengths = {"T": target, "Tq": target, "Tk": example.sequences["source"], "B": example.batch_size}
    for path, stage in example.run().items():
        for symbol, size in stage.dims:
            assert size == lengths.get(symbol, size), path


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("attention_function", "attention."),
        ("one_head", "attention."),
        ("cross_attention", "attention."),
        ("feed_forward", "feed_forward."),
        ("encoder_layer", "encoder_layer."),
        ("positional_encoding", "positional_encoding"),
    ],
)
def test_paths_start_with_the_part(name, prefix):
    assert all(path.startswith(prefix) for path in WORKED_EXAMPLES[name]().run())


def test_the_masks_of_the_examples_have_names():
    names = {name: WORKED_EXAMPLES[name]().mask_name for name in FILES}
    assert names["two_causal_heads"] == names["saturated_causal"] == "causal"
    assert names["cross_attention"] == names["encoder_layer"] == "padding"


@pytest.mark.parametrize("name", ["two_causal_heads", "cross_attention", "one_head", "encoder_layer"])
def test_another_mask_can_be_set(name):
    example = WORKED_EXAMPLES[name]()
    path = next(path for path in example.run() if path.endswith(".weights"))
    assert path.replace(".weights", ".mask") not in example.run(mask=None)
    n_queries, n_keys = example.run()[path].value.shape[-2:]
    weights = example.run(mask=causal(n_queries, n_keys))[path].value
    assert (weights[..., 0, 1:] == 0).all()
    assert torch.allclose(weights.sum(-1), torch.ones((), dtype=torch.float64))


def test_running_leaves_no_gradient_and_changes_nothing():
    example = WORKED_EXAMPLES["encoder_layer"]()
    first, second = example.run(), example.run()
    for path, stage in first.items():
        assert not stage.value.requires_grad
        assert torch.equal(stage.value, second[path].value)


def test_an_example_without_attention_takes_no_mask():
    example = WORKED_EXAMPLES["feed_forward"]()
    assert not example.attends
    example.run(mask=None)
    with pytest.raises(ValueError, match="feed_forward has no attention"):
        example.run(mask=torch.ones(3, 3, dtype=torch.bool))


def test_attention_of_an_example_is_the_one_of_the_model():
    example = WORKED_EXAMPLES["two_causal_heads"]()
    attention = example.module.get_submodule("attention")
    assert isinstance(attention, MultiHeadAttention)
    assert attention.w_o is None


def test_biases_are_those_of_the_file():
    attention = WORKED_EXAMPLES["causal_with_bias"]().module.get_submodule("attention")
    assert attention.w_q.bias is None
    assert attention.w_o.bias.flatten().tolist() == FILES["causal_with_bias"]["weights"]["b_o"]


def test_a_new_file_needs_no_code(tmp_path):
    example = example_from(tmp_path, MINIMAL)
    assert example.run()["attention.context"].value.item() == 2.0


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "example.json is not a worked example"),
        ("[]", "example.json is not a worked example"),
        (MINIMAL | {"q": [["-inf"]]}, "'-inf' is not a finite number"),
        (MINIMAL | {"q": [["1.0"]]}, "'1.0' is not a finite number"),
        (MINIMAL | {"q": [[True]]}, "True is not a finite number"),
        (MINIMAL | {"q": [[None]]}, "None is not a finite number"),
        (json.dumps(MINIMAL).replace("2.0", "NaN"), "NaN is not a finite number"),
        (json.dumps(MINIMAL).replace("2.0", "1e999"), "inf is not a finite number"),
        (MINIMAL | {"k": [[1.0], [1.0, 2.0]]}, "is not a worked example"),
        (MINIMAL | {"mask": [[1]]}, "must be boolean"),
        ({"title": "Nothing", "expected": {}}, "is not a worked example"),
        ({key: value for key, value in MINIMAL.items() if key != "title"}, "is not a worked example"),
    ],
    ids=str,
)
def test_what_is_no_example_is_refused(tmp_path, content, complaint):
    with pytest.raises(ValueError, match=complaint):
        example_from(tmp_path, content)
