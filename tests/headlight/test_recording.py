"""A trace comes back from a file as it was, and a file that is anything else is refused with one sentence."""

import json
import math
import sys
from dataclasses import fields, replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

import headlight
from headlight.attentions import Attention
from headlight.recording import Texts
from headlight.stages import may_write, value_of
from tests.headlight.small_models import causal, stacked, vectors, written_out
from tests.headlight.test_transformers_models import IDS, built
from visualizer.runs.watched import WatchedRun


@pytest.fixture(scope="module")
def trace():
    bias = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(0))
    model = stacked(partial(F.scaled_dot_product_attention, attn_mask=bias.masked_fill(~causal(6), -1e30)))
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(vectors())
    return trace


@pytest.fixture
def saved(trace, tmp_path):
    trace.save(tmp_path / "run.headlight", tokens=["a", "<b>", "ü", "", "\n", "f"])
    return tmp_path / "run.headlight"


def test_a_trace_comes_back_as_it_was(trace, saved):
    loaded = headlight.load(saved)
    assert loaded.paths == trace.paths
    assert loaded.tokens == ("a", "<b>", "ü", "", "\n", "f")
    for one, other in zip(loaded, trace, strict=True):
        for each in fields(Attention):
            was, came_back = getattr(other, each.name), getattr(one, each.name)
            same = torch.equal(was, came_back) if isinstance(was, torch.Tensor) else was == came_back
            assert same, each.name
    assert loaded.stages.keys() == trace.stages.keys()
    for path, stage in loaded.stages.items():
        assert torch.equal(stage.value, trace.stages[path].value)
        assert (stage.inputs, stage.folded) == (trace.stages[path].inputs, trace.stages[path].folded)
        is_known = stage.operation not in ("linear", "randn")  # no parameters were written, and no chance is
        assert (stage.node is not None) == is_known
        if is_known:
            assert torch.equal(value_of(stage.node, loaded.stages, loaded.parameters), stage.value)


@pytest.mark.parametrize("ids", [[5, 6, 7], torch.tensor([[5, 6, 7]])])
def test_ids_are_written_as_the_texts_of_their_tokens(trace, ids):
    assert headlight.load(trace.to_bytes(tokens=ids)).tokens == ("5", "6", "7")
    assert headlight.load(trace.to_bytes(tokens=["a"], target=ids)).texts == Texts((("a",),), (("5", "6", "7"),))


def test_a_mask_that_layers_share_is_written_once(trace, saved):
    assert trace[0].allowed is trace[1].allowed
    shape = trace[0].allowed.shape
    masks = [array for array in load_file(saved).values() if array.dtype is torch.bool and array.shape == shape]
    assert len(masks) == 1


def test_numbers_that_are_not_finite_come_back(tmp_path):
    model = stacked(written_out(lambda scores: scores.masked_fill(~causal(6).tril(-1), -float("inf"))), n_layers=1)
    with torch.no_grad(), headlight.watch(model) as trace:
        model(vectors())
    trace.save(tmp_path / "nan")
    assert headlight.load(tmp_path / "nan")[0].weights[0, 0, 0].isnan().all()


def changed(saved, change):
    """The same file with something else in its header."""
    content = saved.read_bytes()
    length = int.from_bytes(content[:8], "little")
    about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["headlight"])
    change(about)
    save_file(load_file(saved), saved, {"headlight": json.dumps(about)})


def expression(about):
    """The expression of the first attention."""
    found = [stage for stage in about["stages"] if stage["operation"] == "scaled_dot_product_attention"]
    return found[0]["expression"]


CHANGES = {
    "is of version 2: this Headlight reads up to 1": lambda about: about.update(version=2),
    "version \\('1'\\) in the file must be of the type int": lambda about: about.update(version="1"),
    "attentions in the file must be a list": lambda about: about.pop("attentions"),
    "an attention in the file must give each of: allowed": lambda about: about["attentions"][0].pop("scale"),
    "weights \\('999'\\) in the file is none of its arrays": lambda about: about["attentions"][0].update(
        weights="999"
    ),
    "in a recording: it must fit \\(2, 4, 5, 6\\)": lambda about: about["attentions"][0].update(shape=[2, 4, 5, 6]),
    "must be \\(B, H, Tq, Tk\\)": lambda about: about["attentions"][0].update(shape=[4, 6, 6]),
    "must hold sizes": lambda about: about["attentions"][0].update(query_shape=[-1]),
    "is none that is known": lambda about: about["attentions"][0].update(dtype="int8"),
    "scale \\('much'\\) in the file must be a number": lambda about: about["attentions"][0].update(scale="much"),
    "remarks .* must be among": lambda about: about["attentions"][0].update(remarks=["<script>"]),
    "role \\('both'\\) in the file must be one of": lambda about: about["attentions"][0].update(role="both"),
    "it must be boolean": lambda about: about["attentions"][0].update(allowed=about["attentions"][0]["weights"]),
    "two stages in the file have one path": lambda about: about["stages"].append(about["stages"][0]),
    "two attentions in the file have one path": lambda about: about["attentions"].append(about["attentions"][0]),
    "the function 'os.system' in the file is none that is read": lambda about: expression(about).update(
        function="os.system"
    ),
    "must not write into another tensor": lambda about: expression(about)["keywords"].update(out={"slot": 0}),
    "an argument in the file is not in the form": lambda about: expression(about)["keywords"].update(
        scale={"slot": 9}
    ),
    "an expression in the file is not in the form": lambda about: expression(about).update(inputs=["stage"]),
    "tokens in the file must be a list of the type str": lambda about: about.update(tokens=[1]),
}


@pytest.mark.parametrize(("sentence", "change"), CHANGES.items(), ids=CHANGES)
def test_a_file_that_does_not_hold_what_it_says_is_refused(saved, sentence, change):
    changed(saved, change)
    with pytest.raises(ValueError, match=sentence):
        headlight.load(saved)


def test_an_earlier_file_has_the_roles_that_its_modules_are_named_by(tmp_path):
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
    with torch.no_grad(), headlight.watch(model) as trace:
        model(torch.randn(1, 4, 8), torch.randn(1, 3, 8))
    trace.save(tmp_path / "earlier")
    changed(tmp_path / "earlier", lambda about: [attention.pop("role") for attention in about["attentions"]])
    roles = [attention.role for attention in headlight.load(tmp_path / "earlier")]
    assert roles == [attention.role for attention in trace] == ["encoder", "decoder", "cross"]


def test_what_is_no_recording_is_refused(saved, tmp_path):
    with pytest.raises(ValueError, match="are read unless most_bytes says more"):
        headlight.load(saved, most_bytes=100)
    saved.write_bytes(saved.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is damaged or no recording"):
        headlight.load(saved)
    for content in (
        b"",
        b"PK\x03\x04" * 10,
        (10**9).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
    ):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(ValueError, match="no recording"):
            headlight.load(tmp_path / "other")
    save_file({"a": torch.zeros(1)}, tmp_path / "weights")
    with pytest.raises(ValueError, match="the file is not a recording"):
        headlight.load(tmp_path / "weights")


def test_a_file_of_too_many_arrays_is_refused_before_they_are_read(tmp_path):
    save_file({f"t{i}": torch.zeros(0) for i in range(10_001)}, tmp_path / "many", {"of": "a person"})
    for file in (tmp_path / "many", (tmp_path / "many").read_bytes()):
        with pytest.raises(ValueError, match="holds more than 10,000 arrays"):
            headlight.load(file)


def test_every_stage_of_real_models_is_computed_again_from_a_file_that_holds_the_parameters(tmp_path):
    for family, n_without in (("gpt2", 0), ("llama", 0)):
        model = built(family)
        with torch.no_grad(), headlight.watch(model, keep="all") as trace:
            model(IDS)
        trace.save(tmp_path / "whole", parameters=True)
        loaded = headlight.load((tmp_path / "whole").read_bytes())
        assert loaded.parameters.keys() == trace.parameters.keys()
        run = WatchedRun(loaded, "")
        without = [path for path, stage in loaded.stages.items() if stage.node is None and stage.inputs]
        assert len(without) == n_without, without
        for stage in loaded.stages.values():
            if stage.node is not None:
                assert torch.equal(run.values(stage.node), stage.value), stage.path


class WritesOver(nn.Module):
    """A layer that writes over what it goes on with, as much teaching code does, with einsum beside."""

    def forward(self, x):
        y = torch.einsum("td,ed->te", x, x)
        y += x
        y -= 1
        y *= 2
        y /= 3
        y = y.add_(x).masked_fill_(x > 0, 1.5)
        return y.index_select(0, torch.tensor([2, 0]))


def test_what_writes_over_its_input_is_saved_as_what_computes_the_same(tmp_path):
    x = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    model = WritesOver()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        expected = model(x)
    trace.save(tmp_path / "run.headlight")
    loaded = headlight.load(tmp_path / "run.headlight")
    run = WatchedRun(loaded, "")
    nodes = [stage.node for stage in loaded.stages.values() if stage.node is not None]
    assert len(nodes) == 9
    assert not any(map(may_write, nodes))
    for stage in loaded.stages.values():
        if stage.node is not None:
            assert torch.equal(run.values(stage.node), stage.value), stage.path
    assert torch.equal(loaded.stages["index_select"].value, expected)


def test_what_writes_into_another_tensor_is_saved_without_its_expression(tmp_path):
    class Writing(nn.Module):
        def forward(self, x):
            return torch.mul(x + 1, 2, out=torch.empty(2, 3)) - 1

    with torch.no_grad(), headlight.watch(model := Writing(), keep="all") as trace:
        model(torch.ones(2, 3))
    trace.save(tmp_path / "run.headlight")
    stages = headlight.load(tmp_path / "run.headlight").stages
    assert stages["mul"].node is None
    assert torch.equal(stages["mul"].value, torch.full((2, 3), 4.0))


def test_an_expression_that_asks_for_too_much_is_left_out(saved):
    def grow(about):
        written = expression(about)
        size = {"list": [10**6, 10**6, 10**3]}
        inner = written["inputs"][0]
        huge = {"function": "torch.Tensor.expand", "part": None, "inputs": [inner], "arguments": {"list": []}}
        huge["arguments"]["list"] = [{"slot": 0}, size]
        written["inputs"][0] = {**huge, "keywords": {}}

    n_known = sum(stage.node is not None for stage in headlight.load(saved).stages.values())
    changed(saved, grow)
    assert sum(stage.node is not None for stage in headlight.load(saved).stages.values()) == n_known - 1


@st.composite
def attentions(draw):
    """The shapes of queries and of a mask that broadcasts to their scores, and whether it is boolean."""
    n_axes = draw(st.integers(2, 5))
    sizes = [draw(st.integers(1, 3)) for _ in range(n_axes - 2)]
    n_queries, n_keys = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    scores = (*sizes, n_queries, n_keys)
    kept = scores[draw(st.integers(0, n_axes - 2)) :]
    return scores, tuple(draw(st.sampled_from([1, size])) for size in kept), draw(st.booleans())


@given(attentions(), st.booleans())
def test_a_mask_of_any_shape_that_broadcasts_is_read_saved_and_loaded(drawn, is_written):
    shape, of_mask, is_boolean = drawn
    generator = torch.Generator().manual_seed(math.prod(shape) + len(of_mask))
    q, k, v = (torch.randn(*shape[:-2], n, 4, generator=generator) for n in (shape[-2], shape[-1], shape[-1]))
    mask = torch.randn(of_mask, generator=generator)
    mask = (mask > 0) | (torch.arange(of_mask[-1]) == 0) if is_boolean else mask

    class Model(nn.Module):
        def forward(self, q, k, v):
            if not is_written:
                return F.scaled_dot_product_attention(q, k, v, mask)
            scores = q @ k.mT / 2
            scores = scores.masked_fill(~mask, -math.inf) if is_boolean else scores + mask
            return scores.softmax(-1) @ v

    with headlight.watch(model := Model()) as trace:
        model(q, k, v)
    (seen,) = headlight.load(trace.to_bytes())
    scores = (q @ k.mT / 2).masked_fill(~mask, -math.inf) if is_boolean else q @ k.mT / 2 + mask
    torch.testing.assert_close(seen.weights.reshape(shape), scores.softmax(-1))
    read = seen.allowed if is_boolean else seen.bias
    meant = mask.expand(shape)
    if read is None:
        assert bool(meant.all()) if is_boolean else shape[-1] == 1 or of_mask[-1] == 1 or not bool(meant.any())
    else:
        torch.testing.assert_close(read.expand(seen.shape).reshape(shape), meant)


def test_nothing_is_written_that_could_not_be_read(trace):
    wrong = replace(trace[0], bias=torch.zeros(4, 1, 1, 6))
    with pytest.raises(ValueError, match=r"bias of 0 is \(4, 1, 1, 6\) in a recording: it must fit \(2, 4, 6, 6\)"):
        headlight.Trace([wrong]).to_bytes()


def test_a_file_has_the_usual_mode(trace, tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    trace.save(tmp_path / "run.headlight")
    assert (tmp_path / "run.headlight").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_without_safetensors_the_sentence_says_what_to_install(trace, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    for act in (lambda: trace.save(tmp_path / "run"), lambda: headlight.load(b"")):
        with pytest.raises(ImportError, match=r'recordings need one package more: pip install "headlight\[app\]"'):
            act()
    assert not (tmp_path / "run").exists()


def test_what_a_model_was_called_with_is_kept(tmp_path):
    model = built("llama")
    given = {
        "input_ids": IDS,
        "attention_mask": torch.ones_like(IDS),
        "position_ids": torch.tensor([[0, 1, 2, 0, 1, 2, 3]]),
    }
    with torch.no_grad(), headlight.watch(model) as trace:
        model(**given)
    trace.save(tmp_path / "run")
    inputs = headlight.load(tmp_path / "run").inputs
    assert inputs.model == "LlamaForCausalLM"
    assert inputs.named.keys() == given.keys()
    assert all(torch.equal(inputs.named[name], given[name]) for name in given)
