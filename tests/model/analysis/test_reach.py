"""Reach against searches over paths, and against what is known of windows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import record
from model.analysis.reach import allowed_dependence, entry_path, first_layer_reached, of_pairs, reach
from model.masks import causal, padding, sliding_window
from tests.model.builders import (
    N_SOURCE,
    N_TARGET,
    generator,
    keyless,
    random_mask,
    small_inputs,
    small_transformer,
)


def sparse_mask(*shape, seed):
    """True in about one cell of five, so that much is out of reach."""
    return torch.rand(shape, generator=generator(seed)) < 0.2


@st.composite
def mask_stacks(draw):
    """The number of tokens, and a mask per layer in any of the shapes that a mask may have."""
    n_tokens = draw(st.integers(1, 7))
    shapes = [(n_tokens, n_tokens), (3, n_tokens, n_tokens), (1, 2, n_tokens, n_tokens), (1, 1, 1, n_tokens)]
    seeds = draw(st.lists(st.integers(0, 999), max_size=5))
    return n_tokens, [
        None if seed % 7 == 0 else sparse_mask(*draw(st.sampled_from(shapes)), seed=seed) for seed in seeds
    ]


def cell(mask, query, key):
    """True if any head lets a query attend to a key, read cell by cell."""
    if mask is None:
        return True
    rows = mask.shape[-2]
    heads = mask.reshape(-1, rows, mask.shape[-1])
    return any(bool(head[query if rows > 1 else 0, key]) for head in heads)


def tokens_behind(masks, row, n_tokens):
    """The tokens that a row of the last layer depends on, searched backwards."""
    if not masks:
        return {row}
    *earlier, last = masks
    keys = {row} | {key for key in range(n_tokens) if cell(last, row, key)}
    return set().union(*(tokens_behind(earlier, key, n_tokens) for key in keys))


def warshall(allowed):
    """Return the pairs joined by any number of steps, none included, by Warshall's algorithm."""
    closed = [[bool(allowed[i, j]) or i == j for j in range(len(allowed))] for i in range(len(allowed))]
    for via in range(len(closed)):
        for i in range(len(closed)):
            for j in range(len(closed)):
                closed[i][j] = closed[i][j] or (closed[i][via] and closed[via][j])
    return torch.tensor(closed)


@given(mask_stacks())
def test_reach_is_what_a_search_backwards_through_the_layers_finds(stack):
    n_tokens, masks = stack
    reached = reach(masks, n_tokens)
    assert reached.shape == (len(masks), n_tokens, n_tokens)
    for layer in range(len(masks)):
        for row in range(n_tokens):
            behind = tokens_behind(masks[: layer + 1], row, n_tokens)
            assert set(reached[layer, row].nonzero().flatten().tolist()) == behind


@given(st.integers(1, 9), st.integers(0, 999))
def test_as_many_layers_as_tokens_reach_all_that_can_ever_be_reached(n_tokens, seed):
    mask = sparse_mask(n_tokens, n_tokens, seed=seed)
    assert torch.equal(reach([mask] * n_tokens, n_tokens)[-1], warshall(mask))


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 20))
def test_a_stack_of_windows_sees_one_window_further_back_per_layer(width, n_layers, n_tokens):
    window = causal(n_tokens, n_tokens) & sliding_window(n_tokens, n_tokens, width)
    reached = reach([window] * n_layers, n_tokens)[-1]
    for row in range(n_tokens):
        furthest = max(0, row - n_layers * (width - 1))
        assert reached[row].nonzero().flatten().tolist() == list(range(furthest, row + 1))


def test_a_key_that_one_head_lets_through_is_let_through():
    mask = torch.zeros(1, 2, 3, 3, dtype=torch.bool)
    mask[0, 0, 0, 1] = mask[0, 1, 1, 2] = True
    assert reach([mask, mask], 3).int().tolist() == [
        [[1, 1, 0], [0, 1, 1], [0, 0, 1]],
        [[1, 1, 1], [0, 1, 1], [0, 0, 1]],
    ]


def test_a_query_without_any_key_keeps_itself():
    nothing = torch.zeros(4, 4, dtype=torch.bool)
    assert torch.equal(reach([nothing, nothing], 4), torch.eye(4, dtype=torch.bool).expand(2, 4, 4))


@given(mask_stacks())
def test_the_first_layer_that_reaches_is_the_first(stack):
    n_tokens, masks = stack
    first = first_layer_reached(reach(masks, n_tokens))
    for row in range(n_tokens):
        behind = [tokens_behind(masks[:layer], row, n_tokens) for layer in range(len(masks) + 1)]
        expected = [next((n for n, found in enumerate(behind) if j in found), -1) for j in range(n_tokens)]
        assert first[row].tolist() == expected


@pytest.mark.parametrize(
    ("mask", "complaint"),
    [
        (torch.ones(3, 3), r"a mask must be boolean, not torch\.float32"),
        (torch.ones(2, 1, 3, 3, dtype=torch.bool), "a mask is for 2 sequences"),
        (torch.ones(4, 4, dtype=torch.bool), r"a mask has cells \(4, 4\): they must fit \(3, 3\)"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask, complaint):
    with pytest.raises(ValueError, match=complaint):
        reach([None, mask], 3)


# Dependence stage by stage.


def traced(architecture, **choices):
    model = small_transformer(architecture, **choices)
    with record(model) as trace:
        model(*small_inputs(architecture, n_batch=1))
    return trace


def attentions(trace):
    return [stage.module_path for stage in trace.values() if stage.name == "weights"]


def tokens_of(allowed):
    return [set(row.nonzero().flatten().tolist()) for row in allowed]


@pytest.mark.parametrize("architecture", ["encoder", "decoder"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_within_a_layer_it_changes_at_the_weights(architecture, norm):
    trace = traced(architecture, norm=norm, n_layers=3)
    masks = [sparse_mask(N_SOURCE, N_SOURCE, seed=layer) for layer in range(3)]
    allowed = allowed_dependence(trace, dict(zip(attentions(trace), masks, strict=True)))
    left_out = [path for path in trace if path not in allowed]
    assert {trace[path].name for path in left_out} <= {"scores", "scaled_scores", "mask", "masked_scores"}
    assert left_out == [path for path in trace if of_pairs(trace[path])] != []
    reached = [torch.eye(N_SOURCE, dtype=torch.bool), *reach(masks, N_SOURCE)]
    for layer in range(3):
        of_layer = {
            path.removeprefix(f"{architecture}.layers.{layer}."): cells
            for path, cells in allowed.items()
            if path.startswith(f"{architecture}.layers.{layer}.")
        }
        names = list(of_layer)
        change = names.index("self_attention.weights")
        assert {"self_attention.q", "self_attention.k", "self_attention.v"} <= set(names[:change])
        assert {"self_attention.context", "residual1", "residual2"} <= set(names[change:])
        assert all(torch.equal(of_layer[name], reached[layer]) for name in names[:change])
        assert all(torch.equal(of_layer[name], reached[layer + 1]) for name in names[change:])
    assert torch.equal(allowed[f"{architecture}.inputs.embedded"], reached[0])
    assert torch.equal(allowed["logits"], reached[-1])


def test_a_target_row_depends_on_the_source_through_cross_attention_alone():
    trace = traced("encoder-decoder")
    paths = attentions(trace)
    masks = dict.fromkeys(paths)
    own, crossing = causal(N_TARGET, N_TARGET), random_mask(N_TARGET, N_SOURCE, seed=4)
    reading = sparse_mask(N_SOURCE, N_SOURCE, seed=5)
    for path in paths:
        stack = path.partition(".")[0]
        masks[path] = crossing if path.endswith("cross_attention") else own if stack == "decoder" else reading
    allowed = allowed_dependence(trace, masks, "source")
    memory = tokens_of(reach([reading, reading], N_SOURCE)[-1])
    seen = [set().union(*(memory[key] for key in range(N_SOURCE) if crossing[row, key])) for row in range(N_TARGET)]
    seen_so_far = [set().union(*seen[: row + 1]) for row in range(N_TARGET)]
    of_keys = reach([reading] * 2, N_SOURCE)[-1]
    across = reach([own] * 2, N_TARGET, cross=[crossing] * 2, of_keys=of_keys)
    assert torch.equal(across, torch.stack([allowed[f"decoder.layers.{layer}.norm3"] for layer in (0, 1)]))
    assert not allowed["decoder.layers.0.norm1"].any()
    assert tokens_of(allowed["decoder.layers.0.cross_attention.k"]) == memory
    assert tokens_of(allowed["decoder.layers.0.norm3"]) == seen
    assert tokens_of(allowed["decoder.layers.1.norm1"]) == seen_so_far
    assert tokens_of(allowed["logits"]) == seen_so_far


def test_the_encoder_does_not_depend_on_the_target():
    trace = traced("encoder-decoder")
    masks = dict.fromkeys(attentions(trace)) | {
        f"decoder.layers.{layer}.self_attention": keyless(causal(N_TARGET, N_TARGET), 2) for layer in range(2)
    }
    allowed = allowed_dependence(trace, masks, "target")
    assert all(cells.shape[-1] == N_TARGET for cells in allowed.values())
    assert not any(cells.any() for path, cells in allowed.items() if path.startswith("encoder."))
    assert not allowed["decoder.layers.1.cross_attention.v"].any()
    assert tokens_of(allowed["logits"]) == [{0}, {0, 1}, {2}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}]


def test_padding_is_kept_out_by_every_layer():
    trace = traced("encoder")
    is_padding = torch.tensor([[False] * 4 + [True] * 2])
    allowed = allowed_dependence(trace, dict.fromkeys(attentions(trace), padding(is_padding)))
    assert tokens_of(allowed["logits"]) == [{0, 1, 2, 3}] * 4 + [{0, 1, 2, 3, 4}, {0, 1, 2, 3, 5}]


def test_an_attention_without_an_entry_is_refused():
    with pytest.raises(ValueError, match=r"no entry for encoder\.layers\.1\.self_attention: give None"):
        allowed_dependence(traced("encoder"), {"encoder.layers.0.self_attention": None})


def test_what_enters_is_found_by_the_sequence():
    both = traced("encoder-decoder")
    assert entry_path(both, "source") == "encoder.inputs.embedded"
    assert entry_path(both, "target") == "decoder.inputs.embedded"
    assert entry_path(traced("decoder"), "source") == "decoder.inputs.embedded"
    with pytest.raises(ValueError, match=r"sequence \('target'\) must be 'source'"):
        entry_path(traced("decoder"), "target")
