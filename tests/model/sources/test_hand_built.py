"""The promises of each hand-built head, on any text and in every layer."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model import TransformerConfig, record
from model.sources.hand_built import choose_pairs, spread_directions
from model.sources.weights import build_model, head_names

LEAST = 0.9
OFFSETS = {
    "previous token": -1,
    "next token": 1,
    "itself": 0,
    "two back": -2,
    "two ahead": 2,
    "three back": -3,
    "three ahead": 3,
    "four back": -4,
    "four ahead": 4,
}
VOCAB_SIZE, N_WORDS = 512, 32


def config_of(**choices):
    sizes = {"vocab_size": VOCAB_SIZE, "d_model": 128, "n_heads": 8, "d_ff": 64, "n_layers": 3}
    return TransformerConfig(**(sizes | choices))


def texts(n_tokens, *, n_batch=4, vocab_size=VOCAB_SIZE, seed=0):
    """Random texts, each of at most ``N_WORDS`` words, so that words are repeated."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.stack([torch.randperm(vocab_size, generator=generator)[:N_WORDS] for _ in range(n_batch)])
    return words.gather(1, torch.randint(words.shape[1], (n_batch, n_tokens), generator=generator))


def run(config, *ids, seed=0, **masks):
    model = build_model(config, "hand_built", seed)
    with torch.inference_mode(), record(model) as trace:
        model(*ids, **masks)
    return trace


def test_two_vocabularies_leave_every_head_but_one_as_it_is():
    """In cross-attention no token is the same as one of another vocabulary; all else is found."""
    config = config_of(architecture="encoder-decoder", target_vocab_size=40, n_layers=2)
    ids = texts(20), texts(14, vocab_size=40)
    names = head_names(config, "hand_built")
    for path, weights, queries, keys in attentions(run(config, *ids), ids):
        for head, name in enumerate(names):
            if name != "uniform" and not (name == "same token" and "cross" in path):
                assert least_kept(name, weights[:, head], queries, keys) >= LEAST, (path, name)


def attentions(trace, ids):
    """The weights of every attention, with the tokens that ask and those that are asked."""
    for path, stage in trace.items():
        if path.endswith(".weights"):
            module = path.rpartition(".")[0]
            queries = ids[-1] if module.startswith("decoder") else ids[0]
            keys = ids[0] if module.endswith("cross_attention") else queries
            yield path, stage.value, queries, keys


def least_kept(name, weights, queries, keys):
    """The least weight that a head gives to what its name says, over all queries for which that exists."""
    n_queries, n_keys = weights.shape[-2:]
    if name == "first token":
        return weights[..., 0].min()
    if name == "same token":
        equal = queries[:, :, None] == keys[:, None, :]
        kept = (weights * equal).sum(-1)[equal.any(-1)]
    else:
        kept = torch.stack(
            [
                weights[:, query, query + OFFSETS[name]]
                for query in range(n_queries)
                if 0 <= query + OFFSETS[name] < n_keys
            ]
            or [torch.ones(len(weights))]
        )
    return kept.min() if kept.numel() else 1.0


def check_promises(config, *ids, least=LEAST, seed=0):
    found = 0
    for path, weights, queries, keys in attentions(run(config, *ids, seed=seed), ids):
        for head, name in enumerate(head_names(config, "hand_built")):
            found += 1
            if name == "uniform":
                assert torch.equal(weights[:, head], torch.full_like(weights[:, head], 1 / keys.shape[1])), path
            else:
                assert least_kept(name, weights[:, head], queries, keys) >= least, (path, name)
    assert found > 0


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("n_heads", [1, 2, 4, 8])
def test_every_head_does_what_its_name_says(norm, n_heads):
    for n_tokens in (2, 3, 8, 17, 32):
        check_promises(config_of(norm=norm, n_heads=n_heads), texts(n_tokens, seed=n_tokens))


@pytest.mark.parametrize(("n_heads", "d_model"), [(3, 129), (5, 120), (5, 125), (6, 126), (6, 132), (7, 126)])
def test_it_does_so_for_every_number_of_heads(n_heads, d_model):
    check_promises(config_of(n_heads=n_heads, d_model=d_model), texts(32))


@settings(derandomize=True, max_examples=25, deadline=None)
@given(words=st.lists(st.integers(0, N_WORDS - 1), min_size=2, max_size=32), norm=st.sampled_from(["post", "pre"]))
def test_it_does_so_on_any_text(words, norm):
    check_promises(config_of(norm=norm, n_layers=2, vocab_size=N_WORDS), torch.tensor([words]))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("architecture", ["decoder", "encoder-decoder"])
def test_it_does_so_in_every_attention(architecture, norm):
    source, target = texts(20), texts(14, seed=0)
    ids = (source, target) if architecture == "encoder-decoder" else (source,)
    check_promises(config_of(architecture=architecture, norm=norm), *ids)
    if architecture == "encoder-decoder":
        check_promises(config_of(architecture=architecture, norm=norm, n_layers=1, n_decoder_layers=4), *ids)


@pytest.mark.parametrize(
    "choices",
    [
        {"positions": "learned"},
        {"scale_scores": False},
        {"scale_scores": False, "norm": "pre"},
        {"activation": "gelu"},
        {"final_norm": True},
        {"head_dim": 24, "d_model": 100},
        {"head_dim": 8, "norm": "pre"},
        {"qkv_bias": False, "output_bias": False},
        {"qkv_bias": False, "norm": "pre"},
        {"qkv_bias": False, "scale_scores": False},
        {"layer_norm_eps": 1e-12},
        {"n_layers": 12},
        {"n_layers": 12, "norm": "pre"},
        {"n_heads": 12, "d_model": 96},
        {"n_heads": 12, "d_model": 768, "n_layers": 1},
        {"n_heads": 4, "d_model": 64},
        {"n_heads": 4, "d_model": 32},
        {"d_ff": 1},
    ],
    ids=str,
)
def test_it_does_so_whatever_else_is_chosen(choices):
    check_promises(config_of(**choices), texts(24))


@pytest.mark.parametrize(("d_model", "n_heads"), [(64, 4), (64, 8), (128, 8)])
def test_it_does_so_in_long_texts(d_model, n_heads):
    check_promises(config_of(d_model=d_model, n_heads=n_heads, n_layers=2), texts(512, n_batch=1))


def test_it_does_so_in_longer_texts_where_the_model_is_made_for_them():
    check_promises(config_of(d_model=64, n_heads=4, n_layers=1, max_len=1024), texts(1024, n_batch=1), least=0.85)


def test_it_does_so_for_bytes():
    check_promises(config_of(vocab_size=258), texts(32, vocab_size=258))


@pytest.mark.parametrize(("d_model", "n_heads"), [(12, 3), (16, 4), (24, 12), (32, 8)])
def test_narrow_heads_do_so_in_short_texts_of_few_words(d_model, n_heads):
    config = config_of(d_model=d_model, n_heads=n_heads, vocab_size=14)
    check_promises(config, texts(8, vocab_size=14))


def test_equal_tokens_share_alike():
    config = config_of(n_heads=4, d_model=64, vocab_size=4)
    trace = run(config, torch.tensor([[2, 3, 2, 1, 2, 3]]))
    for layer in range(3):
        weights = trace[f"encoder.layers.{layer}.self_attention.weights"].value[0, 2]
        assert weights[0].tolist() == pytest.approx([1 / 3, 0, 1 / 3, 0, 1 / 3, 0], abs=0.01)


def test_scores_stay_readable():
    for config in (config_of(), config_of(n_heads=4, d_model=64)):
        trace = run(config, texts(32))
        scores = [stage.value.abs().max() for path, stage in trace.items() if path.endswith("scaled_scores")]
        assert max(scores) < 120


def test_the_most_likely_tokens_are_those_that_the_heads_looked_at():
    ids = texts(12, vocab_size=40, n_batch=1)
    trace = run(config_of(n_heads=1, d_model=64, vocab_size=40), ids)
    assert torch.equal(trace["logits"].value[0, 1:].argmax(-1), ids[0, :-1])


def test_what_a_mask_takes_away_is_missing_in_the_logits():
    config, ids = config_of(n_heads=4, d_model=64, vocab_size=40), torch.arange(2, 14)[None]
    free = run(config, ids)
    causal = run(config, ids, source_mask=torch.ones(12, 12, dtype=torch.bool).tril())
    for stage in ("encoder.layers.0.self_attention.output", "encoder.layers.2.norm2", "logits"):
        difference = (free[stage].value - causal[stage].value).norm(dim=-1)[0]
        assert (difference[:-1] > 0.1).all(), stage
    following = ids[0, 1:, None]
    drop = (free["logits"].value - causal["logits"].value)[0, :-1].gather(-1, following)
    assert drop.mean() > 1.0


def test_the_feed_forward_network_adds_a_little():
    trace = run(config_of(), texts(12))
    for layer in range(3):
        added = trace[f"encoder.layers.{layer}.feed_forward.output"].value.norm(dim=-1)
        stream = trace[f"encoder.layers.{layer}.norm2"].value.norm(dim=-1)
        assert (added > 0).all()
        assert (added < 0.05 * stream).all()


def test_without_positions_heads_that_look_for_a_place_are_uniform_and_say_so():
    config = config_of(positions="none", n_heads=8)
    names = head_names(config, "hand_built")
    assert names[:4] == (
        "previous token (no positions)",
        "next token (no positions)",
        "same token",
        "first token (no positions)",
    )
    ids = texts(12)
    for _, weights, queries, keys in attentions(run(config, ids), (ids,)):
        for head, name in enumerate(names):
            if name == "same token":
                assert least_kept(name, weights[:, head], queries, keys) >= LEAST
            else:
                assert torch.equal(weights[:, head], torch.full_like(weights[:, head], 1 / 12))


def test_heads_without_room_are_uniform_and_say_so():
    config = config_of(d_model=8, n_heads=8, vocab_size=10)
    names = head_names(config, "hand_built")
    assert names[:4] == (
        "previous token (too narrow)",
        "next token (too narrow)",
        "same token (too narrow)",
        "first token",
    )
    weights = run(config, texts(6, vocab_size=10))["encoder.layers.0.self_attention.weights"].value
    assert torch.equal(weights[:, :3], torch.full_like(weights[:, :3], 1 / 6))


def test_names_follow_the_heads():
    assert head_names(config_of(n_heads=12, d_model=96), "hand_built") == (
        "previous token",
        "next token",
        "same token",
        "first token",
        "itself",
        "uniform",
        "two back",
        "two ahead",
        "three back",
        "three ahead",
        "four back",
        "four ahead",
    )
    many = head_names(config_of(n_heads=64, d_model=512), "hand_built")
    assert many[-2:] == ("30 back", "30 ahead")
    assert len(set(many)) == 64


def test_the_seed_changes_the_codes_and_not_what_the_heads_do():
    config, ids = config_of(n_heads=4, d_model=64, vocab_size=40), texts(12, vocab_size=40)
    first, second = run(config, ids, seed=1), run(config, ids, seed=2)
    assert not torch.equal(first["encoder.inputs.embedding"].value, second["encoder.inputs.embedding"].value)
    check_promises(config, ids, seed=2)


@pytest.mark.parametrize("d_model", [6, 7, 9, 10, 11])
def test_very_narrow_models_can_be_filled(d_model):
    trace = run(config_of(d_model=d_model, n_heads=1, vocab_size=10), texts(6, vocab_size=10))
    assert all(stage.value.isfinite().all() for stage in trace.values())


def test_a_model_too_narrow_is_refused():
    with pytest.raises(ValueError, match="d_model \\(4\\) must be at least 6"):
        build_model(config_of(d_model=4, n_heads=1), "hand_built", 0)


def test_pairs_tell_every_position_from_the_first():
    rates = 10000.0 ** (-torch.arange(0, 94, 2, dtype=torch.float64) / 128)
    chosen = choose_pairs(rates, 7)
    assert len(set(chosen)) == len(chosen) <= 7
    likeness = torch.cos(rates[chosen, None] * torch.arange(1, 512)).mean(0)
    assert likeness.max() < 0.85


def test_directions_are_spread_and_stay_when_more_are_drawn():
    few = spread_directions(50, 15, torch.Generator().manual_seed(0))
    more = spread_directions(300, 15, torch.Generator().manual_seed(0))
    assert torch.equal(more[:50], few)
    assert torch.allclose(more.norm(dim=-1), torch.ones(300, dtype=torch.float64))
    assert (more @ more.T).fill_diagonal_(-1).max() < 0.65
