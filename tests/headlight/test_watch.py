"""Watching sees the weights that a model computes, whatever way it computes them, and changes nothing."""

import math
import re
import subprocess
import sys
import threading
import warnings
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.modules.module import _has_any_global_hook
from torch.utils.checkpoint import checkpoint

import headlight
from headlight.stages import value_of
from model.dataflow import name_of
from tests.headlight.small_models import N_HEADS, WIDTH, Attention, causal, seeded, stacked, vectors, written_out

LATER_BLOCKED = ~causal(6)
FLOAT_MASK = torch.zeros(6, 6).masked_fill(LATER_BLOCKED, -math.inf)
LOWEST = torch.finfo(torch.float32).min
PADDED = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])


def encoder(**options):
    layer = partial(nn.TransformerEncoderLayer, WIDTH, N_HEADS, 32, batch_first=True, **options)
    return seeded(lambda: nn.TransformerEncoder(layer(), 2))


def alibi(score, b, h, q, k):
    return score - 0.5**h * (q - k)


def with_baddbmm(q, k, v):
    batch, heads, n, width = q.shape
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    scores = torch.baddbmm(FLOAT_MASK.expand(batch * heads, n, n), q, k.mT, alpha=1 / math.sqrt(width))
    return torch.bmm(scores.view(batch, heads, n, n).softmax(-1).flatten(0, 1), v).view(batch, heads, n, width)


def with_einsum(q, k, v):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    scores[..., LATER_BLOCKED] = -math.inf
    return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), v)


CAUSAL = {
    "sdpa flag": partial(F.scaled_dot_product_attention, is_causal=True),
    "sdpa boolean": partial(F.scaled_dot_product_attention, attn_mask=~LATER_BLOCKED),
    "sdpa float": partial(F.scaled_dot_product_attention, attn_mask=FLOAT_MASK),
    "sdpa lowest number": partial(F.scaled_dot_product_attention, attn_mask=FLOAT_MASK.clamp(min=LOWEST)),
    "sdpa causal bias": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, causal_lower_right(6, 6)),
    "masked_fill": written_out(),
    "masked_fill -1e9": written_out(lambda scores: scores.masked_fill(LATER_BLOCKED, -1e9)),
    "where": written_out(lambda scores: torch.where(LATER_BLOCKED, -math.inf, scores)),
    "tensor where": written_out(lambda scores: scores.where(~LATER_BLOCKED, torch.tensor(-math.inf))),
    "added": written_out(lambda scores: scores + FLOAT_MASK),
    "subtracted": written_out(lambda scores: scores - 1e10 * LATER_BLOCKED),
    "in place": written_out(lambda scores: scores.masked_fill_(LATER_BLOCKED, -math.inf)),
    "baddbmm": with_baddbmm,
    "einsum": with_einsum,
}


def test_an_einsum_that_sums_over_the_heads_too_is_seen_without_a_context():
    def attend(q, k, v):
        weights = torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)
        return torch.einsum("bhqk,bkd->bqd", weights, v[:, 0])[:, None].expand_as(q)

    model, x = stacked(attend, n_layers=1), vectors()
    with headlight.watch(model, keep="attentions") as trace:
        model(x)
    assert not trace.notes
    q, k, _ = model[0].heads(x)
    torch.testing.assert_close(trace[0].weights, (q @ k.mT).softmax(-1))
    assert trace[0].context is None


@pytest.mark.parametrize("attend", CAUSAL.values(), ids=CAUSAL)
def test_each_way_to_attend_causally_gives_the_same_weights_and_mask(attend):
    model, x = stacked(attend), vectors()
    with headlight.watch(model) as trace:
        model(x)
    assert trace.paths == ("0", "1")
    q, k, _ = model[0].heads(x)
    expected = (q @ k.mT / 2).masked_fill(LATER_BLOCKED, -math.inf).softmax(-1)
    seen = trace["0"]
    torch.testing.assert_close(seen.weights, expected)
    assert torch.equal(seen.allowed.expand(2, N_HEADS, 6, 6), causal(6).expand(2, N_HEADS, 6, 6))
    assert (seen.bias, seen.shape, seen.key_heads, seen.remarks) == (None, (2, 4, 6, 6), 4, ())
    assert seen.scale == pytest.approx(0.5)
    assert seen.difference is None or seen.difference < 1e-6


def test_flex_attention_is_seen_with_its_score_and_block_masks():
    block_mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 6, 6, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = stacked(
            partial(flex_attention, score_mod=alibi, block_mask=block_mask, enable_gqa=True), key_heads=2
        )
        with torch.no_grad():
            plain = model(vectors())
            with headlight.watch(model) as trace:
                assert torch.equal(model(vectors()), plain)
            with headlight.watch(model, item=1, heads=[3]) as part:
                model(vectors())
    seen = trace[0]
    distance = torch.arange(6)[:, None] - torch.arange(6)
    slopes = 0.5 ** torch.arange(4)[:, None, None]
    torch.testing.assert_close(seen.bias[0], -slopes * distance, check_dtype=False)
    assert torch.equal(seen.allowed[1, 3], causal(6))
    assert (seen.key_shape, seen.key_heads) == ((2, 2, 6, 4), 2)
    assert seen.difference < 1e-6
    torch.testing.assert_close(part[0].weights[0, 0], seen.weights[1, 3])


@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 16}]
)
@pytest.mark.parametrize("need_weights", [True, False])
def test_multi_head_attention_gives_its_own_weights(options, need_weights):
    model, x = seeded(lambda: nn.MultiheadAttention(WIDTH, N_HEADS, batch_first=True, **options)), vectors()
    masks = {"key_padding_mask": PADDED, "attn_mask": LATER_BLOCKED}
    expected = model(x, x, x, **masks, average_attn_weights=False)[1]
    with headlight.watch(model) as trace:
        model(x, x, x, **masks, need_weights=need_weights)
    torch.testing.assert_close(trace["model"].weights, expected)
    assert trace["model"].difference < 1e-6


def test_a_bias_is_apart_from_the_mask():
    bias = torch.randn(N_HEADS, 6, 6, generator=torch.Generator().manual_seed(0))
    model = stacked(partial(F.scaled_dot_product_attention, attn_mask=bias + FLOAT_MASK.clamp(min=LOWEST)))
    with headlight.watch(model) as trace:
        model(vectors())
    torch.testing.assert_close(trace[0].bias[0], bias.masked_fill(LATER_BLOCKED, 0.0))
    assert torch.equal(trace[0].allowed[0, 0], causal(6))
    assert trace[0].fill == LOWEST


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_what_is_done_to_a_part_of_the_scores_is_done_to_that_part(scale):
    bias = torch.randn(N_HEADS, 5, 5, generator=torch.Generator().manual_seed(0))

    def attend(q, k, v):
        scores = q @ k.mT
        scores[:, :, 1:, 1:] += bias
        scores[..., 3:] *= scale
        scores[..., 0, 1:] = torch.full((5,), -math.inf)
        return scores.softmax(-1) @ v

    model = stacked(attend)
    with torch.no_grad(), headlight.watch(model) as trace:
        model(vectors())
    first = trace[0]
    assert not trace.notes
    assert ("scores_changed" in first.remarks) == (scale != 1.0)
    if scale == 1.0:
        torch.testing.assert_close(first.bias[0, :, 1:, 1:], bias)
        assert not first.bias[..., 0].any()
        assert first.allowed[0, 0].logical_not().nonzero().tolist() == [[0, key] for key in range(1, 6)]


def test_shared_key_heads_are_seen_however_they_are_repeated():
    def repeated(q, k, v):
        return F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1))

    for attend in (repeated, partial(F.scaled_dot_product_attention, enable_gqa=True)):
        model = stacked(attend, key_heads=2)
        with headlight.watch(model) as trace:
            model(vectors())
        assert trace[0].key_heads == 2
        assert trace[0].weights.shape == (2, 4, 6, 6)


def test_a_sum_of_products_that_keeps_no_axis_apart_is_no_product_with_values():
    def attend(q, k, v):
        weights = (q @ k.mT).softmax(-1)
        importance = torch.einsum("bhn,bhn->bn", weights[:, :, 0], v.norm(dim=-1))
        return weights @ v * importance.mean()

    model = stacked(attend)
    with torch.no_grad(), headlight.watch(model) as trace:
        model(vectors())
    assert [(one.shape, one.remarks) for one in trace] == [((2, N_HEADS, 6, 6), ())] * 2


def test_what_is_masked_after_the_softmax_or_along_another_axis_is_remarked():
    def after(q, k, v):
        return (q @ k.mT).softmax(-1).masked_fill(LATER_BLOCKED, 0.0) @ v

    def over_queries(q, k, v):
        return F.softmax(q @ k.mT, dim=2) @ v

    def multiplied(q, k, v):
        return (q @ k.mT * ~LATER_BLOCKED).softmax(-1) @ v

    remarks = ("changed_after_softmax", "softmax_over_queries", "multiplied_by_zero")
    for attend, remark in zip((after, over_queries, multiplied), remarks, strict=True):
        model = stacked(attend, n_layers=1)
        with headlight.watch(model) as trace:
            model(vectors())
        assert trace[0].remarks == (remark,)


@torch.no_grad()
def test_weights_that_something_is_added_to_are_those_that_met_the_values_or_remarked():
    met = []

    def hard(q, k, v):  # the gradient would be that of the softmax
        soft = (q @ k.mT).softmax(-1)
        met.append(F.one_hot(soft.argmax(-1), soft.shape[-1]) + soft - soft.detach())
        return met[-1] @ v

    def with_itself(q, k, v):
        return ((q @ k.mT).softmax(-1) + torch.eye(q.shape[-2])) @ v

    with headlight.watch(model := stacked(hard, n_layers=1)) as trace:
        model(vectors())
    torch.testing.assert_close(trace[0].weights, met[0])
    assert set(trace[0].weights.round(decimals=5).unique().tolist()) == {0.0, 1.0}
    with headlight.watch(model := stacked(with_itself, n_layers=1)) as trace:
        model(vectors())
    assert trace[0].remarks == ("weighted_after_softmax",)


@torch.no_grad()
def test_what_is_masked_before_the_softmax_stays_so_where_more_is_after_it():
    def padded_after(q, k, v):
        weights = (q @ k.mT).masked_fill(LATER_BLOCKED, -math.inf).softmax(-1) * (torch.arange(6) < 5)
        return weights / weights.sum(-1, keepdim=True) @ v

    model = stacked(padded_after, n_layers=1)
    with headlight.watch(model) as trace:
        model(vectors())
    expected = ~LATER_BLOCKED & (torch.arange(6) < 5)
    assert torch.equal(trace[0].allowed.expand(*trace[0].shape), expected.expand(*trace[0].shape))


def test_a_softmax_that_is_no_attention_is_not_taken_for_one():
    class Router(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(WIDTH, 4)
            self.out = nn.Linear(4, WIDTH, bias=False)

        def forward(self, x):
            return self.out(self.gate(x).softmax(-1)) + (x @ self.gate.weight.T).softmax(-1) @ self.gate.weight

    model = seeded(Router)
    with headlight.watch(model) as trace:
        model(vectors())
    assert len(trace) == 0


@pytest.mark.parametrize("attend", [F.scaled_dot_product_attention, lambda q, k, v: (q @ k.mT).softmax(-1) @ v])
def test_half_of_one_sequence_is_no_attention(attend):
    def by_halves(q, k, v):  # to save memory: of one sequence the first half is empty
        half = len(q) // 2
        return torch.cat([attend(q[part], k[part], v[part]) for part in (slice(0, half), slice(half, None))])

    model = stacked(by_halves, n_layers=1)
    with headlight.watch(model, keep="attentions") as trace:
        model(vectors()[:1])
    assert [len(attention.weights) for attention in trace] == [1]
    assert not trace[0].remarks


def test_a_softmax_over_features_is_no_attention():
    def efficient(q, k, v):
        return q.softmax(-1) @ (k.softmax(-2).mT @ v)

    model = stacked(efficient, n_layers=1)
    with headlight.watch(model) as trace:
        model(vectors())
    assert len(trace) == 0
    assert "no attention was seen" in trace.notes[0]


def test_additive_attention_is_seen_by_what_it_does_with_values():
    class Additive(nn.Module):
        def __init__(self):
            super().__init__()
            self.score = nn.Linear(WIDTH, 1)

        def forward(self, x):
            return self.score(torch.tanh(x[:, :, None] + x[:, None])).squeeze(-1).softmax(-1) @ x

    model = seeded(Additive)
    with headlight.watch(model) as trace:
        model(vectors())
    assert trace["model"].shape == (2, 1, 6, 6)


UNCHANGED = {
    "training with dropout": (lambda: encoder(dropout=0.3).train(), {}),
    "gradients in evaluation": (encoder, {}),
    "padding": (encoder, {"src_key_padding_mask": PADDED}),
    "causal": (encoder, {"mask": LATER_BLOCKED}),
    "bfloat16": (lambda: encoder().bfloat16(), {}),
    "sdpa with dropout": (lambda: stacked(partial(F.scaled_dot_product_attention, dropout_p=0.3)), {}),
    "written out, in place": (lambda: stacked(CAUSAL["in place"]), {}),
    "multi-head attention": (lambda: seeded(lambda: SelfAttention()), {}),
}


class SelfAttention(nn.MultiheadAttention):
    def __init__(self):
        super().__init__(WIDTH, N_HEADS, batch_first=True)

    def forward(self, x):
        return super().forward(x, x, x)[0]


def one_pass(model, x, options, *, trains, watched):
    """The output, the gradients and the random state after it."""
    torch.manual_seed(3)
    model.zero_grad()
    x = x.clone().requires_grad_(trains)
    with torch.set_grad_enabled(trains):
        if watched:
            with headlight.watch(model, keep="all"):
                output = model(x, **options)
        else:
            output = model(x, **options)
    if trains:
        output.float().square().sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()] + [x.grad]
    return [output, *gradients, torch.get_rng_state()]


@pytest.mark.parametrize("trains", [True, False])
@pytest.mark.parametrize(("make", "options"), UNCHANGED.values(), ids=UNCHANGED)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_output_gradients_and_random_state_are_bitwise_as_without_watching(make, options, trains):
    model = make()
    x = vectors().to(next(model.parameters()).dtype)
    plain, watched = (one_pass(model, x, options, trains=trains, watched=watched) for watched in (False, True))
    for one, other in zip(plain, watched, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_no_hook_and_no_mode_is_left_even_after_an_error():
    def broken(q, k, v):
        F.scaled_dot_product_attention(q, k, v)
        raise RuntimeError("broken")

    model = stacked(broken)
    with headlight.watch(model) as trace, pytest.raises(RuntimeError, match="broken"):
        model(vectors())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert trace.paths == ("0",)
    assert not nn.modules.module._global_forward_hooks
    assert not nn.modules.module._global_forward_pre_hooks
    assert torch.overrides._get_current_function_mode() is None


def test_hooks_of_the_model_run_once():
    model, calls = encoder(), []
    model.layers[0].norm1.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad(), headlight.watch(model):
        model(vectors())
    assert calls == [1]


class _Around(nn.Module):
    """A layer inside, whose output it writes over, and one of its own; or an error before all that."""

    def __init__(self, attend):
        super().__init__()
        self.inner, self.outer = Attention(attend), Attention(attend)

    def forward(self, x, *, fails=False):
        if fails:
            raise ArithmeticError
        return self.outer(self.inner(x).mul_(2))


@pytest.mark.parametrize("attend", [F.scaled_dot_product_attention, written_out()])
def test_a_part_of_a_model_is_seen_alone_where_the_whole_runs(attend):
    whole = seeded(lambda: _Around(attend))
    traces = []
    for model in (whole.inner, whole):
        with headlight.watch(whole.inner, keep="all") as trace:
            model(vectors())
        traces.append(({path: stage.value.tolist() for path, stage in trace.stages.items()}, trace.notes))
        assert trace.paths == ("model",)
    assert traces[0] == traces[1]


def test_a_part_is_still_seen_after_an_error_of_the_whole():
    whole = seeded(lambda: _Around(F.scaled_dot_product_attention))
    with headlight.watch(whole.inner) as trace:
        with pytest.raises(ArithmeticError):
            whole(vectors(), fails=True)
        F.scaled_dot_product_attention(*whole.inner.heads(vectors()))
    assert trace.paths == ("model",)


def test_another_thread_is_not_seen():
    model = stacked(F.scaled_dot_product_attention, n_layers=1)
    with headlight.watch(model) as trace:
        other = threading.Thread(target=lambda: model(vectors()))
        other.start()
        other.join()
    assert len(trace) == 0
    assert trace.notes == ("Sequential ran in another thread: what runs there is not seen.",)


def test_only_what_is_asked_for_is_kept():
    model, x = stacked(CAUSAL["sdpa flag"], n_layers=3), vectors()
    with headlight.watch(model) as everything:
        model(x)
    with headlight.watch(model, layers=[1], item=1, heads=[2, 0], to="cpu") as some:
        model(x)
    assert some.paths == ("1",)
    assert torch.equal(some["1"].weights, everything["1"].weights[1:, [2, 0]])
    with headlight.watch(model, layers=["0", "2*"], keep="all") as named:
        model(x)
    assert named.paths == ("0", "2")
    torch.testing.assert_close(named["0"].context, named["0"].weights @ named["0"].value)
    written = stacked(written_out(), n_layers=1)
    with headlight.watch(written, item=0, heads=[3], keep="all") as one:
        written(x)
    assert one[0].weights.shape == (1, 1, 6, 6)
    with pytest.raises(IndexError, match=r"head \(4\) must be from 0 to 3"), headlight.watch(model, heads=[4]):
        model(x)
    with pytest.raises(RuntimeError, match="device type"), headlight.watch(model, to="gpu"):
        model(x)
    with (
        pytest.raises(ValueError, match="weights, attentions, all"),
        headlight.watch(model, keep="everything"),
    ):
        model(x)
    for layers, said in ((["0.qery"], "is called '0.qery': did you mean '0.query'"), ([0, 7], "has the number 7")):
        with (
            pytest.raises(ValueError, match=f"^no module {re.escape(said)}"),
            headlight.watch(model, layers=layers),
        ):
            model(x)
    with pytest.raises(TypeError, match=r"a model is a torch\.nn\.Module, and this is a function"):
        headlight.check(written_out(), x)


def test_the_memory_is_known_before():
    model, x = stacked(CAUSAL["sdpa float"]), vectors()
    with headlight.watch(model) as trace:
        model(x)
    assert headlight.memory(model, x) == sum(seen.weights.nbytes for seen in trace) == 2 * 2 * 4 * 36 * 4
    with headlight.watch(model, keep="all") as trace:
        model(x)
    kept = [tensor for seen in trace for tensor in (seen.weights, seen.query, seen.key, seen.value, seen.context)]
    kept += [stage.value for stage in trace.stages.values()]
    assert headlight.memory(model, x, keep="all") == sum(tensor.nbytes for tensor in kept)
    with headlight.watch(model, keep="shapes") as shapes:
        model(x)
    assert shapes.nbytes == 0


def masked_on_its_device(scores):
    return scores.masked_fill(torch.ones(6, 6, dtype=torch.bool, device=scores.device).triu(1), -math.inf)


@pytest.mark.parametrize("keep", ["weights", "all"])
@pytest.mark.parametrize("attend", [CAUSAL["sdpa flag"], written_out(masked_on_its_device)])
def test_the_memory_is_known_without_a_number_of_the_model(attend, keep):
    model = stacked(attend).to("meta")
    expected = headlight.memory(stacked(attend), vectors(), keep=keep)
    assert headlight.memory(model, vectors().to("meta"), keep=keep) == expected > 0
    with torch.no_grad(), headlight.watch(model) as trace:
        model(vectors().to("meta"))
    assert [each.weights for each in trace] == [None, None]
    assert not trace.notes


def test_a_module_may_still_be_without_parameters():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.query = nn.LazyLinear(WIDTH)

        def forward(self, x):
            return torch.softmax(self.query(x) @ x.mT, -1) @ x

    model = Lazy()
    with torch.no_grad(), headlight.watch(model, keep="all") as trace:
        model(vectors())
    assert len(trace) == 1
    assert not trace.notes


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_what_a_backward_pass_computes_again_is_no_second_call(use_reentrant):
    inner = stacked(CAUSAL["masked_fill"])

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=use_reentrant)

    model, x = Checkpointed(), vectors().requires_grad_()
    with headlight.watch(model, keep="all") as trace:
        model(x).sum().backward()
    assert trace.paths == ("inner.0", "inner.1")
    assert not trace.notes


def test_a_module_that_runs_twice_has_two_names():
    shared = seeded(lambda: Attention(F.scaled_dot_product_attention))
    model = nn.Sequential(shared, nn.ReLU(), shared)
    with headlight.watch(model) as trace:
        model(vectors())
    assert trace.paths == ("0", "0:2")
    assert repr(trace) == "<Trace of 2 attentions: 0 and 0:2>"
    with pytest.raises(KeyError, match="did you mean '0:2'"):
        trace["0:3"]


def test_a_kernel_that_hides_its_attention_is_named():
    @torch.library.custom_op("headlight_tests::flash_attention", mutates_args=())
    def kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    model = stacked(kernel, n_layers=1)
    with torch.no_grad(), headlight.watch(model) as trace:
        model(vectors())
    assert len(trace) == 0
    assert trace.notes == (
        "0 (Attention) ran, but no attention was seen in it: it is computed in "
        "headlight_tests.flash_attention.default, a kernel that shows no weights.",
    )


def test_a_compiled_model_runs_as_it_was_written_and_is_named():
    model = stacked(CAUSAL["sdpa flag"])
    model[1] = torch.compile(model[1], backend="eager")
    with headlight.watch(model) as trace:
        model(vectors())
    assert trace.paths == ("0", "1")
    assert trace.notes[0].startswith("1 is compiled by torch.compile: it ran as the Python")


def test_half_precision_is_computed_again_in_single():
    for attend in (CAUSAL["sdpa flag"], written_out()):
        model = stacked(attend).bfloat16()
        with headlight.watch(model) as trace:
            model(vectors().bfloat16())
        assert trace[0].weights.dtype is torch.float32
        assert trace[0].dtype is torch.bfloat16
        assert 0 < trace[0].difference < 0.02


def test_under_autocast_the_weights_are_exact():
    model = encoder()
    with torch.autocast("cpu", dtype=torch.bfloat16), headlight.watch(model) as trace:
        model(vectors())
    assert trace[0].weights.dtype is torch.float32
    torch.testing.assert_close(trace[0].weights.sum(-1), torch.ones(2, 4, 6))


def test_no_hook_for_all_modules_is_left_behind():
    model = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    with headlight.watch(model):
        assert _has_any_global_hook()
        model(torch.zeros(1, 3, 8))
    assert not _has_any_global_hook()


def small():
    return stacked(CAUSAL["sdpa flag"]), vectors()


def test_an_error_of_the_watcher_becomes_a_note_and_the_model_goes_on(monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    model, x = small()
    plain = model(x)
    for module in ("recorder", "eager_drafts"):
        monkeypatch.setattr(f"headlight.{module}.different_heads", broken)
    for watched in (model, stacked(written_out())):
        with headlight.watch(watched, keep="all") as trace:
            output = watched(x)
        assert "0 ran, but not all of it could be read (RuntimeError): something of it is not shown." in trace.notes
    assert torch.equal(model(x), plain)
    assert torch.equal(output, watched(x))


def test_an_error_in_a_hook_of_the_watcher_becomes_a_note(monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    model, x = small()
    plain = model(x)
    monkeypatch.setattr("headlight.watching.inputs_of", broken)
    with headlight.watch(model) as trace:
        assert torch.equal(model(x), plain)
    assert len(trace) == 2
    assert trace.notes == (
        "The model ran, but not all of it could be read (RuntimeError): something of it is not shown.",
    )


VMAPPED = {
    "the function": CAUSAL["sdpa flag"],
    "with a mask": CAUSAL["sdpa float"],
    "written out": written_out(),
    "written out, filled": CAUSAL["where"],
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("keep", ["weights", "all"])
@pytest.mark.parametrize("attend", VMAPPED.values(), ids=VMAPPED)
def test_under_vmap_the_model_goes_on_and_a_note_says_what_is_not_shown(attend, keep):
    model = stacked(attend, n_layers=1)
    x = torch.stack([vectors(seed=1), vectors(seed=2)])

    def loss(parameters, each):
        return torch.func.functional_call(model, parameters, (each,)).square().sum()

    gradients = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))
    parameters = dict(model.named_parameters())
    for run in (lambda: torch.vmap(model)(x), lambda: gradients(parameters, x)["0.query.weight"]):
        plain = run()
        with headlight.watch(model, keep=keep) as trace:
            assert torch.equal(run(), plain)
        assert "0 ran under torch.vmap, where numbers cannot be read: its attention is not shown." in trace.notes


@pytest.mark.parametrize("attend", VMAPPED.values(), ids=VMAPPED)
def test_under_a_transform_of_torch_func_nothing_is_kept_that_could_not_be_saved(attend):
    model = stacked(lambda q, k, v: torch.func.vjp(lambda query: attend(query, k, v), q)[0], n_layers=1)
    with torch.no_grad():
        plain = model(vectors())
        with headlight.watch(model, keep="all") as trace:
            assert torch.equal(model(vectors()), plain)
    assert any("0 ran under a transform of torch.func, where numbers" in note for note in trace.notes)
    assert headlight.load(trace.to_bytes()).notes == trace.notes


def test_a_model_is_traced_by_torch_jit_while_it_is_watched():
    model, x = small()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        expected = torch.jit.trace(model, (x,)).code
        with headlight.watch(model) as trace:
            traced = torch.jit.trace(model, (x,))
    assert traced.code == expected
    assert trace.notes[0] == (
        "0 ran under torch.jit.trace, where numbers cannot be read: its attention is not shown."
    )


FRESH = """
import sys, warnings
import torch
import headlight
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from tests.headlight.small_models import stacked, vectors

def attend(q, k, v):
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, q.shape[-2], k.shape[-2], device="cpu")
    return flex_attention(q, k, v, block_mask=mask)

warnings.simplefilter("ignore")
model = stacked(attend)
assert "torch._dynamo" not in sys.modules
if {which!r} == "check":
    print(headlight.check(model, vectors()))
else:
    print(headlight.assert_causal(model, vectors()))
"""
SAID = {
    "check": "2 attentions seen: no errors, no warnings.",
    "assert_causal": "measured by changing tokens, at all places, as the output has no derivative by them.",
}


@pytest.mark.parametrize("which", SAID)
def test_flex_attention_whose_mask_is_made_in_forward_is_seen_in_a_fresh_process(which):
    done = subprocess.run(
        [sys.executable, "-c", FRESH.format(which=which)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert SAID[which] in done.stdout


class Block(nn.Module):
    """Whatever goes from queries, keys and values to an output, under a name that says nothing."""

    def __init__(self, attend):
        super().__init__()
        self.inner = Attention(attend)

    def forward(self, x):
        return x + self.inner.attend(*self.inner.heads(x)).transpose(1, 2).flatten(2)


def linear(q, k, v):
    return F.elu(q) @ (F.elu(k).mT @ v)


def nested(q, k, v):
    ends = torch.arange(0, len(q) * q.shape[2] + 1, q.shape[2])
    rows = (each.transpose(1, 2).flatten(0, 1) for each in (q, k, v))
    parts = (torch.nested.nested_tensor_from_jagged(each, ends).transpose(1, 2) for each in rows)
    output = F.scaled_dot_product_attention(*parts).transpose(1, 2).values()
    return output.unflatten(0, (len(q), -1)).transpose(1, 2)


SILENT = {
    "sigmoid": (
        lambda q, k, v: (q @ k.mT / 2).sigmoid() @ v,
        "products of two tensors meet a third one through sigmoid and without a softmax of the products.",
    ),
    "exponentials times one over their sum": (
        lambda q, k, v: (lambda raised: raised * raised.sum(-1, keepdim=True).reciprocal())((q @ k.mT).exp()) @ v,
        "products of two tensors meet a third one through exp and without a softmax that was followed.",
    ),
    "softmax of features": (
        lambda q, k, v: q.softmax(-1) @ (k.softmax(-2).mT @ v),
        "products of two tensors meet a third one without a softmax of the products.",
    ),
    "linear": (linear, "products of two tensors meet a third one without a softmax of the products."),
    "nested": (nested, "its sequences are nested tensors, each of a length of its own."),
    "nothing": (lambda q, k, v: v, "no softmax was followed from products of queries and keys to values."),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("way", SILENT)
def test_where_no_weights_are_seen_one_true_sentence_says_why(way):
    attend, why = SILENT[way]
    for model, who in (
        (seeded(lambda: Block(attend)), "In Block "),
        (stacked(attend, 1), "0 (Attention) ran, but no attention was seen in it: "),
    ):
        with torch.no_grad(), headlight.watch(model) as trace:
            model(vectors())
        assert trace.notes == (f"{who}{why}",)


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return torch.softmax(self.query(x) @ x.transpose(-2, -1), -1) @ x


@pytest.mark.parametrize("compiled", [torch.jit.script, lambda part: torch.jit.trace(part, (vectors(),))])
def test_what_torchscript_compiled_is_named(compiled):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(compiled(seeded(Scripted)))
        with torch.no_grad():
            plain = model(vectors())
            with headlight.watch(model) as trace:
                assert torch.equal(model(vectors()), plain)
    assert "TorchScript compiled 0: what runs in it is not seen." in trace.notes
    assert not any("nothing can look into" in note for note in trace.notes)


def capped(scores: torch.Tensor) -> torch.Tensor:
    return (scores / 5.0).tanh() * 5.0


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_function_that_torchscript_compiled_is_seen_as_the_python_that_it_was_compiled_from():
    call, script = torch.jit.ScriptFunction.__call__, torch.jit.script(capped)
    x = vectors()
    traces = []
    for cap in (capped, script):
        model = stacked(written_out(lambda scores, cap=cap: cap(scores).masked_fill(LATER_BLOCKED, -math.inf)))
        with torch.no_grad(), headlight.watch(model, keep="all") as trace:
            output = model(x)
        with torch.no_grad():
            torch.testing.assert_close(output, model(x))
        traces.append(trace)
    python, compiled = traces
    assert [each.scale for each in compiled] == [each.scale for each in python]
    assert compiled[0].query is not None
    assert list(compiled.stages) == list(python.stages)
    assert not python.notes
    assert compiled.notes == (
        "capped, compiled by TorchScript, ran as Python: numbers can differ in the last digits.",
    )
    assert torch.jit.ScriptFunction.__call__ is call


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_a_function_that_was_traced_stays_compiled():
    x, factors = vectors(), [2.0]
    traced = torch.jit.trace(lambda x: x * factors[0], (x,))
    factors[0] = 3.0
    with headlight.watch(stacked(CAUSAL["sdpa flag"], 1)) as trace:
        assert torch.equal(traced(x), 2.0 * x)
    assert trace.notes == ("Sequential did not run while it was watched.",)


@pytest.mark.parametrize("attend", [CAUSAL["sdpa flag"], CAUSAL["masked_fill"]])
def test_an_exported_program_is_seen_as_the_model_that_it_was_exported_from(attend):
    model, x = stacked(attend, n_layers=1), vectors()
    exported = torch.export.export(model, (x,)).module()
    with torch.no_grad(), headlight.watch(model) as trace:
        model(x)
    with torch.no_grad(), headlight.watch(exported, keep="all") as same:
        output = exported(x)
    torch.testing.assert_close(same[0].weights, trace[0].weights)
    assert not headlight.check(exported, x, causal=True).findings
    loaded = headlight.load(same.to_bytes(parameters=True))
    for path, stage in loaded.stages.items():
        assert path == "ones" or torch.equal(value_of(stage.node, loaded.stages, loaded.parameters), stage.value)
        assert path == "ones" or stage.node.name == same.stages[path].node.name
    assert torch.equal(list(loaded.stages.values())[-1].value, output)
    assert "every derivative is exactly zero" in str(headlight.assert_causal(exported, x))


def test_a_function_of_another_library_is_not_pytorchs_of_that_name():
    @torch.library.custom_op("headlight_tests::softmax", mutates_args=())
    def softmax(scores: torch.Tensor, axis: int) -> torch.Tensor:
        return scores.sigmoid()

    model = stacked(lambda q, k, v: torch.ops.headlight_tests.softmax.default(q @ k.mT, -1) @ v, n_layers=1)
    with torch.no_grad(), headlight.watch(model) as trace:
        model(vectors())
    assert len(trace) == 0
    assert name_of(torch.ops.headlight_tests.softmax.default) != "softmax"
    assert name_of(torch.ops.aten.softmax.int) == "softmax"


@pytest.mark.parametrize("form", ["packet", "default"])
def test_the_operator_behind_the_function_is_seen_too(form):
    operator = torch.ops.aten.scaled_dot_product_attention
    attend = partial(operator if form == "packet" else operator.default, is_causal=True)
    model, x = stacked(attend), vectors()
    with headlight.watch(model) as trace:
        model(x)
    assert [seen.is_causal for seen in trace] == [True, True]
