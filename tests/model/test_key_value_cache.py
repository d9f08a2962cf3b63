"""With a cache: the same numbers as without, from fewer rows."""

import itertools

import pytest
import torch
from torch import nn

from headlight.masks.language import parse_score
from model import MultiHeadAttention, positions_from_first_token, record, seed_dropout
from model.decoding import Reader, Sampling, beam_search, decode
from model.key_value_cache import CachedReader, computed_rows, reading_on
from tests.model.builders import small_transformer

SOURCE, PROMPT, LIMIT = (3, 1, 4, 1, 5), (1, 7, 2), 6
WARM = Sampling(temperature=2.0, seed=1)
OF_NEW_KEYS = ("key_input", "value_input", "kv", "k_proj", "v_proj")
DETAILS = {
    "fused_qkv": True,
    "qkv_bias": False,
    "output_bias": False,
    "final_norm": True,
    "unembedding_bias": True,
    "layer_norm_eps": 0.1,
}

every_architecture = pytest.mark.parametrize("architecture", ["decoder", "encoder-decoder"])
every_norm = pytest.mark.parametrize("norm", ["post", "pre"])


def readers(architecture, masks=None, **choices):
    """One that reads everything anew, and one with a cache."""
    model = small_transformer(architecture, **choices)
    source = SOURCE if architecture == "encoder-decoder" else ()
    return [kind(model, source, **(masks or {})) for kind in (Reader, CachedReader)]


def decoded(read, limit=LIMIT):
    return list(decode(read, PROMPT, WARM, end=None, limit=limit))


def assert_same_stages(whole, cached, tolerance):
    """Every stage of a pass with a cache is the last rows of the same stage without."""
    assert {path for path in whole if not path.startswith("encoder.")} == set(cached)
    for path, stage in cached.items():
        expected = whole[path].value
        if path.endswith(OF_NEW_KEYS) and "cross" in path:
            assert stage.value.shape[1] == 0
        else:
            axis = next(i for i, (symbol, _) in enumerate(stage.dims) if symbol in ("T", "Tn", "Tq", "Tk"))
            rows = expected.narrow(axis, expected.shape[axis] - stage.value.shape[axis], stage.value.shape[axis])
            torch.testing.assert_close(stage.value, rows, atol=tolerance, rtol=tolerance, msg=path)


@every_architecture
@every_norm
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_every_stage_is_that_without_a_cache(architecture, norm, positions, dtype, tolerance):
    anew, cached = readers(architecture, norm=norm, positions=positions, dtype=dtype)
    pairs = list(zip(decoded(anew), decoded(cached), strict=True))
    for whole, part in pairs[1:]:
        assert (part.tokens, part.token) == (whole.tokens, whole.token)
        assert_same_stages(whole.trace, part.trace, tolerance)


@every_architecture
@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (1, 8), (3, 4)])
@pytest.mark.parametrize("tied_embeddings", [True, False])
def test_any_number_of_layers_and_heads(architecture, n_layers, n_heads, tied_embeddings):
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "scale_scores": False, "tied_embeddings": tied_embeddings}
    anew, cached = readers(architecture, dtype=torch.float64, **sizes)
    for whole, part in zip(decoded(anew), decoded(cached), strict=True):
        torch.testing.assert_close(part.logits, whole.logits, atol=1e-12, rtol=1e-12)


@every_architecture
def test_details_of_the_architecture(architecture):
    depth = {"n_decoder_layers": 3, "target_vocab_size": 9} if architecture == "encoder-decoder" else {}
    anew, cached = readers(architecture, dtype=torch.float64, **DETAILS, **depth)
    for whole, part in list(zip(decoded(anew), decoded(cached), strict=True))[1:]:
        assert_same_stages(whole.trace, part.trace, 1e-12)


def test_any_causal_mask_and_padding_of_the_source():
    window = torch.ones(9, 9, dtype=torch.bool).tril().triu(-1)
    per_head = torch.stack([window, torch.ones(9, 9, dtype=torch.bool).tril()])[None]
    padding = torch.tensor([True, True, True, False, False])
    masks = {"source_mask": padding, "target_mask": (window, per_head), "memory_mask": padding}
    anew, cached = readers("encoder-decoder", masks, dtype=torch.float64)
    for whole, part in zip(decoded(anew), decoded(cached), strict=True):
        torch.testing.assert_close(part.logits, whole.logits, atol=1e-12, rtol=1e-12)
        mask = part.trace["decoder.layers.1.self_attention.mask"].value
        assert torch.equal(mask[0, :, -1], per_head[0, :, len(part.tokens) - 1, : len(part.tokens)])


def rows_through(model, read):
    """Count the rows that went through every linear layer of a decoding, by the layer's name."""
    counts = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            counts[name] = []
            module.register_forward_hook(
                lambda module, inputs, output, seen=counts[name]: seen.append(inputs[0].shape[1])
            )
    decoded(read, limit=4)
    return counts


@every_architecture
def test_only_the_rows_of_new_tokens_are_computed(architecture):
    _, cached = readers(architecture)
    for name, rows in rows_through(cached.model, cached).items():
        if name.startswith("encoder."):
            assert rows == [5], name
        elif name.endswith(("cross_attention.w_k", "cross_attention.w_v")):
            assert rows == [5, 0, 0, 0], name
        else:
            assert rows == [3, 1, 1, 1], name


@every_architecture
def test_it_is_known_which_rows_of_k_and_v_are_cached(architecture):
    anew, cached = readers(architecture)
    for name, computed in (("self_attention", [(0, 3), (3, 4), (4, 5)]), ("cross_attention", [(0, 5), (5, 5)])):
        attention = f"decoder.layers.1.{name}"
        if name == "self_attention" or architecture == "encoder-decoder":
            traces = [step.trace for step in decoded(cached)]
            for before, trace, rows in zip([None, *traces], traces, computed, strict=False):
                assert computed_rows(trace, attention) == range(*rows)
                for stage in ("k", "v"):
                    if before is not None:
                        kept = before[f"{attention}.{stage}"].value
                        assert torch.equal(trace[f"{attention}.{stage}"].value[:, :, : rows[0]], kept)
    assert computed_rows(decoded(anew)[2].trace, "decoder.layers.1.self_attention") == range(5)


def test_the_symbols_say_which_rows_are_new():
    _, cached = readers("decoder")
    trace = decoded(cached)[-1].trace
    shapes = {
        name: trace[f"decoder.layers.0.self_attention.{name}"].shape_text for name in ("k_proj", "k", "scores")
    }
    assert shapes == {
        "k_proj": "(B Tn D) = (1, 1, 8)",
        "k": "(B H Tk Dh) = (1, 2, 8, 4)",
        "scores": "(B H Tq Tk) = (1, 2, 1, 8)",
    }


def test_a_pass_may_read_several_new_tokens():
    anew, cached = readers("encoder-decoder", dtype=torch.float64)
    tokens = (1, 7, 2, 9, 9, 4)
    part, whole = cached(tokens, cached(tokens[:2])), anew(tokens)
    assert computed_rows(part, "decoder.layers.0.self_attention") == range(2, 6)
    torch.testing.assert_close(part["logits"].value, whole["logits"].value[:, 2:], atol=1e-12, rtol=1e-12)


def test_a_trace_without_a_cache_serves_as_one():
    anew, cached = readers("decoder", dtype=torch.float64)
    steps = decoded(anew)
    rest = list(decode(cached, PROMPT, WARM, end=None, limit=LIMIT, taken=steps[:2]))
    assert [step.token for step in rest] == [step.token for step in steps[2:]]
    assert computed_rows(rest[0].trace, "decoder.layers.0.self_attention") == range(4, 5)


def test_beams_that_share_a_beginning_share_its_cache():
    anew, cached = readers("encoder-decoder", dtype=torch.float64)
    trees = [beam_search(read, PROMPT, 3, end=2, limit=5) for read in (anew, cached)]
    for whole, part in zip(*(tree.nodes for tree in trees), strict=True):
        assert (part.tokens, part.kept, part.finished) == (whole.tokens, whole.kept, whole.finished)
        assert part.score == pytest.approx(whole.score, abs=1e-12)


@every_architecture
def test_the_model_stays_as_it_was(architecture):
    _, cached = readers(architecture, dtype=torch.float64)
    seed_dropout(cached.model, 0)
    modules, parameters = list(cached.model.modules()), list(cached.model.parameters())
    first = cached(PROMPT)
    twin = reading_on(cached.model, first)
    assert list(cached.model.modules()) == modules
    assert {id(parameter) for parameter in twin.parameters()} <= {id(parameter) for parameter in parameters}
    cached((*PROMPT, 4), first)
    again = cached(PROMPT)
    assert all(torch.equal(again[path].value, first[path].value) for path in first)
    with torch.no_grad(), record(cached.model) as trace:
        cached.model(*[torch.tensor([tokens]) for tokens in (cached.source, PROMPT) if tokens])
    assert trace["logits"].value.shape == (1, 3, 13)


@pytest.mark.parametrize("n_layers_open", [1, 2])
def test_a_mask_that_lets_a_token_see_a_later_one_is_refused(n_layers_open):
    causal, everything = torch.ones(9, 9, dtype=torch.bool).tril(), torch.ones(9, 9, dtype=torch.bool)
    for mask in (everything, None, everything.tril(1), causal.triu(-2).mT):
        masks = {"target_mask": [mask] * n_layers_open + [causal] * (2 - n_layers_open)}
        anew, cached = readers("decoder", masks)
        assert len(decoded(anew)) == LIMIT
        with pytest.raises(ValueError, match="a key/value cache needs a causal mask"):
            decoded(cached)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_a_sequence_beyond_max_len_is_refused(positions):
    _, cached = readers("decoder", max_len=4, positions=positions)
    steps = decode(cached, PROMPT, end=None, limit=9)
    assert len(list(itertools.islice(steps, 2))) == 2
    with pytest.raises(ValueError, match=r"the sequence has 5 tokens: max_len \(4\) is the most"):
        next(steps)


@every_architecture
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_prompt_padded_on_the_left_is_continued_like_the_prompt_alone(architecture, positions):
    n_pads, pad = 3, (0, 0, 0)
    source = (*pad, *SOURCE) if architecture == "encoder-decoder" else ()
    length = n_pads + len(PROMPT) + LIMIT
    is_padding = torch.arange(length) < n_pads
    seen = ~is_padding & torch.ones(length, length, dtype=torch.bool).tril()
    padding = {
        "source_mask": ~is_padding[: len(source)] if source else None,
        "memory_mask": ~is_padding[: len(source)] if source else None,
        "source_positions": positions_from_first_token(is_padding[: len(source)]) if source else None,
        "target_mask": seen,
        "target_positions": positions_from_first_token(is_padding),
    }
    choices = {"positions": positions, "dtype": torch.float64}
    alone, _ = readers(architecture, **choices)
    for read in [kind(alone.model, source, **padding) for kind in (Reader, CachedReader)]:
        steps = decode(read, (*pad, *PROMPT), end=None, limit=LIMIT)
        for step, expected in zip(steps, decode(alone, PROMPT, end=None, limit=LIMIT), strict=True):
            assert step.token == expected.token
            torch.testing.assert_close(step.logits, expected.logits, atol=1e-12, rtol=0)


def test_positions_for_fewer_tokens_than_are_read_are_refused():
    _, cached = readers("decoder", {"target_positions": torch.arange(2)})
    with pytest.raises(ValueError, match="target_positions has 2: too few for 3 tokens"):
        cached(PROMPT)


@every_architecture
def test_changed_scores_count_the_cached_keys(architecture):
    anew, cached = readers(architecture)
    for path, module in anew.model.get_submodule("decoder").named_modules():
        if isinstance(module, MultiHeadAttention) and path.endswith("self_attention"):
            module.score_mod = parse_score("score - slope(h) * (q - k) + bias(h, bucket(k - q))")
    for whole, part in list(zip(decoded(anew), decoded(cached), strict=True))[1:]:
        assert_same_stages(whole.trace, part.trace, 1e-5)
