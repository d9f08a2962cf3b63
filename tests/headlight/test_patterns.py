"""Operations that are one known step get its name, and what only looks like it does not."""

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import headlight
from headlight.patterns import PATTERNS
from tests.headlight.small_models import WIDTH, causal, seeded, split, vectors
from tests.headlight.test_transformers_models import IDS, built

N_LAYERS = 2


def patterns_of(model, *args):
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(*args)
    return trace


def names(trace):
    """Count the occurrences of each pattern."""
    return Counter(folded.pattern.name for folded in trace.patterns.values())


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("gpt2", {"gelu_tanh": 2, "masked_softmax": 2}),
        ("gptj", {"gelu_tanh": 2, "masked_softmax": 2, "rotary_neighbours": 4}),
        ("bloom", {"gelu_tanh": 2, "masked_softmax": 2}),
        ("bert", {"scaled_softmax": 2}),
        ("t5", {"rms_norm": 12, "masked_softmax": 2, "scaled_softmax": 4}),
        ("gemma2", {"rms_norm": 9, "rotary_halves": 4, "repeated_heads": 4, "masked_softmax": 2}),
        *(
            (
                family,
                {
                    **{"rms_norm": n_norms, "rotary_halves": 4, "repeated_heads": 4},
                    **{"masked_softmax": 2, "gated_feed_forward": 2},
                },
            )
            for family, n_norms in (("llama", 5), ("qwen3", 9))
        ),
    ],
)
def test_the_families_of_transformers_are_folded(family, expected):
    inputs = (IDS, None, IDS) if family == "t5" else (IDS,)
    trace = patterns_of(built(family, attn_implementation="eager"), *inputs)
    assert names(trace) == expected
    folded_once = Counter(path for folded in trace.patterns.values() for path in folded.stages)
    assert set(folded_once.values()) == {1}
    assert not trace.patterns.keys() & trace.stages.keys()


class Function(nn.Module):
    """A module without parameters."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def names_of(function, *args):
    """The patterns in a function of vectors, each with the number of its operations."""
    trace = patterns_of(Function(function), *(args or (vectors(),)))
    return {folded.pattern.name: len(folded.stages) for folded in trace.patterns.values()}


def rms(x, epsilon=1e-5):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon)


def layer_norm(x, divisor=WIDTH, epsilon=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.pow(2).sum(-1, keepdim=True) / divisor + epsilon)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), {"gelu_tanh": 8}),
        (lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))), {"gelu": 5}),
        (lambda x: x * torch.sigmoid(1.702 * x), {"gelu_sigmoid": 3}),
        (lambda x: x / (1 + torch.exp(-x)), {"silu": 4}),
        (rms, {"rms_norm": 5}),
        (layer_norm, {"layer_norm": 8}),
        # What looks like one of them, and is none:
        (lambda x: x * torch.sigmoid(1.6 * x), {}),
        (lambda x: 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.044 * x**3))), {}),
        (lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**2))), {}),
        (lambda x: x * torch.tanh(F.softplus(x)), {}),
        (lambda x: 30.0 * torch.tanh(x / 30.0), {}),
        (lambda x: layer_norm(x, divisor=WIDTH - 1), {}),
        (lambda x: x / (x.square().mean(-1, keepdim=True).sqrt() + 1e-1), {}),
        (lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-5), {}),
        (lambda x: x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-5), {}),
    ],
)
def test_a_function_is_named_by_what_it_computes(function, expected):
    assert names_of(function) == expected


def test_a_norm_of_what_is_centred_already_is_told_by_its_operations():
    centred = vectors() - vectors().mean(-1, keepdim=True)
    assert names_of(rms, centred) == {"rms_norm": 5}  # both norms give the same numbers here
    assert names_of(layer_norm, centred) == {"layer_norm": 8}


def tables(n_tokens=6, width=WIDTH, *, first=0, pairs=False):
    """The cosine and the sine of the angles of rotary positions, (T, D)."""
    frequencies = 100.0 ** (-torch.arange(width // 2) / (width // 2))
    angles = (first + torch.arange(n_tokens))[:, None] * frequencies
    angles = angles.repeat_interleave(2, -1) if pairs else torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def halves(x, sign=1):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first) if sign == 1 else (second, -first), -1)


def neighbours(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


@pytest.mark.parametrize(
    ("turned", "given", "expected"),
    [
        (halves, tables(), {"rotary_halves": 5}),
        (neighbours, tables(pairs=True), {"rotary_neighbours": 5}),
        (lambda x: halves(x, sign=-1), tables(), {}),  # it turns the other way
        (lambda x: halves(x, sign=-1), tables(n_tokens=1), {}),  # at position 0 the numbers are the same
        (halves, tables(pairs=True), {}),  # pairs of one kind, angles of the other
        (halves, tuple(2 * table for table in tables()), {"rotary_halves": 5}),  # longer by one factor
        (halves, (torch.ones(6, WIDTH), torch.ones(6, WIDTH)), {}),  # the same angle everywhere
        (halves, (tables()[0], tables(first=1)[1]), {}),  # not the sine of the same angle
    ],
)
def test_rotary_positions_are_a_rotation_of_pairs(turned, given, expected):
    cos, sin = given
    x = vectors(n_tokens=len(cos))
    assert names_of(lambda x, cos, sin: x * cos + turned(x) * sin, x, cos, sin) == expected


def in_halves(x, cos, sin):
    first, second = x[..., : WIDTH // 2], x[..., WIDTH // 2 :]
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


def in_neighbours(x, cos, sin):
    first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((first * cos - second * sin, second * cos + first * sin), -1).flatten(-2).relu()


def backwards(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos + second * sin, second * cos - first * sin), -1)


@pytest.mark.parametrize(
    ("turn", "expected"),
    [(in_halves, {"rotary_halves": 7}), (in_neighbours, {"rotary_neighbours": 7}), (backwards, {})],
)
def test_rotary_positions_may_be_written_in_pieces(turn, expected):
    cos, sin = (table[:, : WIDTH // 2] for table in tables())
    assert names_of(turn, vectors(), cos, sin) == expected


def test_repeated_heads_are_those_that_neighbouring_queries_share():
    x = vectors()
    assert names_of(lambda x: split(x).repeat_interleave(2, 1) @ split(x).repeat_interleave(2, 1).mT, x) == {
        "repeated_heads": 1
    }
    assert names_of(lambda x: split(x).repeat(1, 2, 1, 1) @ split(x).repeat(1, 2, 1, 1).mT, x) == {}
    assert names_of(lambda x: split(x).repeat_interleave(2, 1).relu(), x) == {}  # nobody attends with it


def softmax_of(change, axis=-1):
    return lambda x: torch.softmax(change(split(x) @ split(x).mT), axis)


@pytest.mark.parametrize(
    ("change", "axis", "expected", "formula"),
    [
        (lambda s: s / 2 + torch.zeros(6, 6).masked_fill(~causal(6), -math.inf), -1, "masked_softmax", r"c\,S + M"),
        (lambda s: (s * 0.5).masked_fill(~causal(6), -1e9), -1, "masked_softmax", r"c\,S,\ \text{filled by } F"),
        (lambda s: torch.where(causal(6), s, -1e9), 3, "masked_softmax", r"S,\ \text{filled by } F"),
        (lambda s: s + torch.arange(6.0), -1, "scaled_softmax", "S + B"),
        (lambda s: s / 2, -1, "scaled_softmax", r"c\,S"),
        (lambda s: s / 2, -2, None, ""),  # over the queries
        (lambda s: s, -1, None, ""),  # a softmax alone has its name already
    ],
)
def test_a_softmax_is_folded_with_what_was_done_to_its_scores(change, axis, expected, formula):
    trace = patterns_of(Function(softmax_of(change, axis)), vectors())
    assert names(trace) == ({expected: 1} if expected else {})
    for folded in trace.patterns.values():
        assert folded.formula == rf"\operatorname{{softmax}}({formula})"


def test_what_others_read_too_is_not_folded_away():
    def twice(x):
        squares = (x * x).mean(-1, keepdim=True)
        return x * torch.rsqrt(squares + 1e-5) + squares

    assert names_of(twice) == {}


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(WIDTH))

    def forward(self, x):
        return rms(x) * self.gain


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_saved_recording_has_the_same_patterns_as_far_as_its_parameters_go(dtype, tmp_path):
    trace = patterns_of(seeded(Norm).to(dtype), vectors().to(dtype))
    (folded,) = trace.patterns.values()
    assert (folded.path, folded.module, folded.stages[-1]) == ("rms_norm", "", "mul_3")
    assert list(folded.inputs) == ["x", "g"]
    assert folded.numbers == {"epsilon": 1e-5}
    assert "6 operations were kept; 6 of them are 1 known step: RMSNorm × 1." in trace._repr_html_()
    for is_whole in (True, False):
        trace.save(tmp_path / "run.headlight", parameters=is_whole)
        (again,) = headlight.load(tmp_path / "run.headlight").patterns.values()
        assert list(again.inputs) == (["x", "g"] if is_whole else ["x"])
        assert again.stages == (folded.stages if is_whole else folded.stages[:-1])
        assert again.formula.startswith(r"g \odot") is is_whole


@pytest.mark.parametrize(
    ("function", "changed"), [(rms, "rsqrt"), (rms, "mul_2"), (softmax_of(lambda s: s / 2), "softmax")]
)
def test_what_was_changed_on_purpose_has_no_name(function, changed):
    model, x = Function(function), vectors()
    with headlight.watch(model, keep="all", edits={changed: lambda value: 2 * value}) as trace:
        model(x)
    assert trace.patterns == {}


def test_what_is_left_of_a_layer_norm_is_no_rms_norm():
    def beside_itself(x):
        centred = x - x.mean(-1, keepdim=True)
        return rms(centred) + centred

    assert names_of(beside_itself) == {}


def test_a_finder_that_is_wrong_is_not_taken_for_one_that_finds_nothing(monkeypatch):
    def wrong(graph, stage):
        yield stage.no_such_name

    monkeypatch.setattr("headlight.patterns.PATTERNS", [replace(PATTERNS[0], find=wrong)])
    model = Function(lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))))
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(vectors())
    with pytest.raises(AttributeError, match="no_such_name"):
        assert not trace.patterns
