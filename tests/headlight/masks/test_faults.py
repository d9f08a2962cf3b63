"""A faulty attention computes what its fault says, shows it stage by stage, and leaks; nothing outlives a pass."""

import gc
import math
import threading
import weakref

import pytest
import torch

from headlight.masks.application import APPLICATIONS
from headlight.masks.faults import FAULTS
from model import MultiHeadAttention, record
from tests.model.builders import (
    keyless,
    random_mask,
    random_tensor,
    randomized,
    small_inputs,
    small_masks,
    small_transformer,
)

D_MODEL, N_HEADS, N_TOKENS = 8, 2, 6
CAUSAL = torch.ones(N_TOKENS, N_TOKENS, dtype=torch.bool).tril()
ATTENTIONS = ("encoder.layers.0.self_attention", "encoder.layers.1.self_attention")


def plain_attention(attention, x, mask, weigh):
    """One multi-head attention head by head; ``weigh`` turns scores and a mask (Tq, Tk) into weights."""
    heads = []
    for head in range(attention.n_heads):
        columns = slice(head * attention.head_dim, (head + 1) * attention.head_dim)
        q, k, v = (
            x @ linear.weight[columns].T + linear.bias[columns]
            for linear in (attention.w_q, attention.w_k, attention.w_v)
        )
        heads.append(weigh(q @ k.mT / math.sqrt(attention.head_dim), mask) @ v)
    return torch.cat(heads, -1) @ attention.w_o.weight.T + attention.w_o.bias


def weigh_before(scores, mask):
    exponentials = torch.where(mask, scores, 0.0).exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


def weigh_after(scores, mask):
    return scores.exp() / scores.exp().sum(-1, keepdim=True) * mask


WEIGH = {"before_softmax": weigh_before, "after_softmax": weigh_after}


@pytest.fixture
def attention():
    return randomized(MultiHeadAttention(D_MODEL, N_HEADS)).double().requires_grad_(False)


def run(model, *inputs, edits=None, **masks):
    with record(model, edits) as trace:
        output = model(*inputs, **masks)
    return output, trace


def faulty(name, attention, x, mask):
    return run(attention, x, x, x, edits=FAULTS[name].edits([""]), mask=mask)


def test_every_fault_is_told_apart():
    assert list(FAULTS) == list(WEIGH)
    assert len({fault.title for fault in FAULTS.values()}) == len(FAULTS)


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("mask", [CAUSAL, random_mask(2, 1, N_TOKENS, N_TOKENS), keyless(CAUSAL, 2)])
def test_a_faulty_attention_is_the_plain_computation(name, mask, attention):
    x = random_tensor(2, N_TOKENS, D_MODEL, dtype=torch.float64)
    output, _ = faulty(name, attention, x, mask)
    plain_mask = mask if mask.dim() == 2 else mask[:, 0]
    torch.testing.assert_close(output, plain_attention(attention, x, plain_mask, WEIGH[name]))
    correct = attention(x, x, x, mask)
    assert (output - correct).abs().max() > 1e-3


@pytest.mark.parametrize("name", FAULTS)
def test_the_stages_show_what_was_computed(name, attention):
    x = random_tensor(1, N_TOKENS, D_MODEL, dtype=torch.float64)
    _, trace = faulty(name, attention, x, keyless(CAUSAL, 2))
    _, correct = run(attention, x, x, x, mask=keyless(CAUSAL, 2))
    scaled, mask = trace["scaled_scores"].value, trace["mask"].value
    assert torch.equal(scaled, correct["scaled_scores"].value)
    assert torch.equal(mask, correct["mask"].value)
    assert torch.equal(trace["weights"].value, APPLICATIONS[name].apply(scaled, mask))
    given_to_softmax = scaled if name == "after_softmax" else scaled * mask
    assert torch.equal(trace["masked_scores"].value, given_to_softmax)
    torch.testing.assert_close(trace["context"].value, trace["weights"].value @ trace["v"].value)


@pytest.mark.parametrize("name", FAULTS)
def test_where_nothing_is_blocked_a_fault_changes_nothing(name):
    model, inputs = small_transformer(), small_inputs()
    everything = torch.ones(N_TOKENS, N_TOKENS, dtype=torch.bool)
    output, _ = run(model, *inputs, edits=FAULTS[name].edits(ATTENTIONS), source_mask=everything)
    assert torch.equal(output, model(*inputs, source_mask=everything))


@pytest.mark.parametrize("name", FAULTS)
def test_only_the_attentions_named_are_faulty(name):
    model, inputs = small_transformer("encoder-decoder"), small_inputs("encoder-decoder")
    masks = small_masks("encoder-decoder")
    path = "decoder.layers.1.cross_attention"
    _, correct = run(model, *inputs, **masks)
    _, trace = run(model, *inputs, edits=FAULTS[name].edits([path]), **masks)
    paths = list(correct)
    first = paths.index(f"{path}.masked_scores")
    assert all(torch.equal(correct[one].value, trace[one].value) for one in paths[:first])
    assert not torch.equal(correct[f"{path}.masked_scores"].value, trace[f"{path}.masked_scores"].value)
    assert not torch.equal(correct["logits"].value, trace["logits"].value)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_lets_later_tokens_reach_earlier_outputs(name):
    """A change of the last token reaches no row before it in a causal model, and all of them in a faulty one."""
    model = small_transformer().double()
    (ids,) = small_inputs(n_batch=1)
    changed = ids.clone()
    changed[0, -1] = (ids[0, -1] + 1) % 13
    edits = FAULTS[name].edits(ATTENTIONS)
    correct = [model(tokens, source_mask=CAUSAL)[:, :-1] for tokens in (ids, changed)]
    leaking = [run(model, tokens, edits=edits, source_mask=CAUSAL)[0][:, :-1] for tokens in (ids, changed)]
    assert torch.equal(*correct)
    assert ((leaking[0] - leaking[1]).abs().amax(-1) > 1e-6).all()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # torch's own first jvp
@pytest.mark.parametrize("name", FAULTS)
def test_derivatives_in_both_modes_and_under_vmap_are_those_of_the_plain_computation(name, attention):
    x = random_tensor(N_TOKENS, D_MODEL, dtype=torch.float64)
    directions = random_tensor(3, N_TOKENS, D_MODEL, seed=1, dtype=torch.float64)

    def recorded(x):
        return faulty(name, attention, x[None], CAUSAL)[0][0]

    def plain(x):
        return plain_attention(attention, x, CAUSAL, WEIGH[name])

    def pushed(function):
        return torch.func.vmap(lambda direction: torch.func.jvp(function, (x,), (direction,))[1])(directions)

    torch.testing.assert_close(pushed(recorded), pushed(plain))
    torch.testing.assert_close(torch.func.jacrev(recorded)(x), torch.func.jacrev(plain)(x))
    torch.testing.assert_close(torch.func.vmap(recorded)(directions), torch.func.vmap(plain)(directions))


@pytest.mark.parametrize("name", FAULTS)
def test_the_same_edits_serve_one_pass_after_another(name, attention):
    edits = FAULTS[name].edits([""])
    for seed, length in enumerate((N_TOKENS, 4, N_TOKENS)):
        x = random_tensor(1, length, D_MODEL, seed=seed, dtype=torch.float64)
        mask = CAUSAL[:length, :length]
        output, _ = run(attention, x, x, x, edits=edits, mask=mask)
        torch.testing.assert_close(output, plain_attention(attention, x, mask, WEIGH[name]))


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("stage", ["scaled_scores", "mask", "masked_scores"])
def test_passes_of_two_threads_do_not_mix(name, stage, attention):
    """While one thread stands at a stage, another runs a whole pass with the same edits."""
    edits = FAULTS[name].edits([""])
    first, second = (random_tensor(1, N_TOKENS, D_MODEL, seed=seed, dtype=torch.float64) for seed in (1, 2))
    outputs = {}

    def interrupted(value):
        result = edits[stage](value)
        thread = threading.Thread(
            target=lambda: outputs.update(second=run(attention, *[second] * 3, edits=edits, mask=CAUSAL.T)[0])
        )
        thread.start()
        thread.join()
        return result

    outputs["first"], _ = run(attention, *[first] * 3, edits={**edits, stage: interrupted}, mask=CAUSAL)
    torch.testing.assert_close(outputs["first"], plain_attention(attention, first, CAUSAL, WEIGH[name]))
    torch.testing.assert_close(outputs["second"], plain_attention(attention, second, CAUSAL.T, WEIGH[name]))


@pytest.mark.parametrize("name", FAULTS)
def test_no_tensor_outlives_its_pass(name, attention):
    edits = FAULTS[name].edits([""])
    x = random_tensor(1, N_TOKENS, D_MODEL, dtype=torch.float64)
    _, trace = run(attention, x, x, x, edits=edits, mask=CAUSAL)
    watched = [weakref.ref(trace[stage].value) for stage in ("scaled_scores", "mask", "masked_scores", "weights")]
    del trace
    gc.collect()
    assert [one() for one in watched] == [None] * 4


@pytest.mark.parametrize("name", FAULTS)
def test_an_attention_without_a_mask_is_refused(name):
    model, inputs = small_transformer(), small_inputs()
    with (
        pytest.raises(ValueError, match=r"'encoder\.layers\.1\.self_attention' has no mask"),
        record(model, FAULTS[name].edits(ATTENTIONS)),
    ):
        model(*inputs, source_mask=(CAUSAL, None))


@pytest.mark.parametrize("name", FAULTS)
def test_nothing_of_a_pass_that_broke_off_is_used(name, attention):
    edits = FAULTS[name].edits([""])
    x = random_tensor(1, N_TOKENS, D_MODEL, dtype=torch.float64)

    def broken(value):
        edits["mask"](value)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(attention, x, x, x, edits={**edits, "mask": broken}, mask=CAUSAL)
    with pytest.raises(ValueError, match="has no mask"):
        run(attention, x, x, x, edits=edits)
