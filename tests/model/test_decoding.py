"""Choosing against plain torch and loops, decoding against full forward passes, beams against all sequences."""

import functools
import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.decoding import (
    GREEDY,
    Reader,
    Sampling,
    beam_search,
    decode,
    distribution,
    rechosen,
    sample,
)
from model.tracing import Stage, Trace
from tests.model.builders import VOCAB_SIZE, random_tensor, small_transformer

SOURCE, PROMPT, END = (3, 1, 4, 1, 5), (1,), 2
WARM = Sampling(temperature=1.5, seed=3)
GENERATING = ("decoder", "encoder-decoder")

logits_of_ten = st.lists(st.floats(-6, 6, width=32), min_size=10, max_size=10).map(torch.tensor)
temperatures = st.floats(0.1, 5)
top_ps = st.floats(0.05, 1)
draws = st.floats(0, 1, exclude_max=True)


def reader(architecture="encoder-decoder", **choices):
    model = small_transformer(architecture, dtype=torch.float64, **choices)
    return Reader(model, SOURCE if architecture == "encoder-decoder" else ())


def plain_logits(model, tokens, source=SOURCE):
    """The next token's logits by one full pass, without anything of decoding: softmax undone by the logarithm."""
    causal = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
    ids = torch.tensor([tokens])
    with torch.no_grad():
        if model.config.architecture == "decoder":
            return model(ids, source_mask=causal)[0, -1].log()
        return model(torch.tensor([source]), ids, target_mask=causal)[0, -1].log()


def trace_of(logits):
    """Return the trace of a reader that answers with fixed logits."""
    value = torch.tensor(logits, dtype=torch.float64)[None, None]
    return Trace({"logits": Stage("logits", value, (("B", 1), ("T", 1), ("V", len(logits))), "", ("", 0))})


def table_reader(table):
    """A language model written down: the tokens after the prompt -> probabilities of the next."""
    return lambda tokens, before: trace_of([math.log(p) if p else -math.inf for p in table[tokens[1:]]])


class CountingReader:
    """Counts how often the model ran."""

    def __init__(self, read):
        self.read, self.n_runs = read, 0

    def __call__(self, tokens, before):
        self.n_runs += 1
        return self.read(tokens, before)


# distribution


@given(logits_of_ten, temperatures)
def test_without_limits_it_is_the_softmax_at_a_temperature(logits, temperature):
    expected = torch.exp(logits.double() / temperature)
    torch.testing.assert_close(distribution(logits, temperature), expected / expected.sum(), atol=1e-12, rtol=0)


@given(logits_of_ten, st.floats(0, 5), st.none() | st.integers(1, 12), top_ps)
def test_it_sums_to_one_and_keeps_the_order_of_the_logits(logits, temperature, top_k, top_p):
    probabilities = distribution(logits, temperature, top_k, top_p)
    assert probabilities.sum().item() == pytest.approx(1, abs=1e-12)
    assert (probabilities >= 0).all()
    higher = logits[:, None] > logits[None, :]
    assert (probabilities[:, None] >= probabilities[None, :])[higher].all()


@given(logits_of_ten, temperatures, st.integers(1, 12))
def test_top_k_leaves_k_tokens_the_smaller_id_first_where_they_tie(logits, temperature, top_k):
    values = logits.tolist()
    kept = set(sorted(range(10), key=lambda token: (-values[token], token))[:top_k])
    probabilities = distribution(logits, temperature, top_k=top_k)
    assert set(probabilities.nonzero().flatten().tolist()) == kept
    whole = distribution(logits, temperature)
    torch.testing.assert_close(probabilities, whole * (probabilities > 0) / whole[list(kept)].sum())


@given(logits_of_ten, temperatures, st.floats(0.05, 0.99))
def test_top_p_leaves_the_fewest_tokens_that_reach_p(logits, temperature, top_p):
    whole, probabilities = distribution(logits, temperature), distribution(logits, temperature, top_p=top_p)
    kept = whole[probabilities > 0]
    assert kept.sum() >= top_p - 1e-12
    assert kept.sum() - kept.min() < top_p + 1e-12
    torch.testing.assert_close(probabilities[probabilities > 0], kept / kept.sum())


@pytest.mark.parametrize("n_tokens", [2, 4, 5, 10, 16])
def test_tokens_that_reach_p_exactly_are_enough(n_tokens):
    for n_kept in range(1, n_tokens):
        probabilities = distribution(torch.zeros(n_tokens), top_p=n_kept / n_tokens)
        assert probabilities.tolist() == pytest.approx([1 / n_kept] * n_kept + [0] * (n_tokens - n_kept))
        more = distribution(torch.zeros(n_tokens), top_p=n_kept / n_tokens + 1e-6)
        assert (more > 0).sum() == n_kept + 1, "a little more than they reach takes one more"


def test_top_p_counts_what_top_k_left():
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    expected = torch.tensor([4 / 7, 3 / 7, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(distribution(logits, top_k=3, top_p=0.7), expected, atol=1e-7, rtol=0)


def test_equal_logits_are_kept_from_the_smallest_id_on():
    for limits in ({"top_k": 40}, {"top_p": 0.4}):
        assert distribution(torch.zeros(100), **limits).nonzero().flatten().tolist() == list(range(40))


@given(logits_of_ten)
def test_temperature_zero_leaves_the_first_of_the_most_probable(logits):
    expected = torch.zeros(10, dtype=torch.float64)
    expected[logits.tolist().index(max(logits.tolist()))] = 1
    assert torch.equal(distribution(logits, 0.0, top_k=5, top_p=0.5), expected)


@given(logits_of_ten, temperatures, temperatures)
def test_the_most_probable_token_loses_as_the_temperature_rises(logits, one, other):
    colder, warmer = (distribution(logits, temperature) for temperature in sorted((one, other)))
    assert colder.max() >= warmer.max() - 1e-12
    assert torch.special.entr(colder).sum() <= torch.special.entr(warmer).sum() + 1e-9


@pytest.mark.parametrize("temperature", [5e-324, 1e-30, 1e300])
def test_extreme_temperatures_stay_finite(temperature):
    probabilities = distribution(torch.tensor([3.0, 1.0, 3.0]), temperature)
    expected = torch.tensor([1 / 3] * 3 if temperature > 1 else [0.5, 0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(probabilities, expected)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"temperature": -1.0}, r"temperature \(-1.0\) must be 0 or a positive number"),
        ({"temperature": math.nan}, r"temperature \(nan\) must be"),
        ({"temperature": math.inf}, r"temperature \(inf\) must be"),
        ({"top_k": 0}, r"top_k \(0\) must be at least 1"),
        ({"top_p": 0.0}, r"top_p \(0.0\) must be above 0 and at most 1"),
        ({"top_p": 1.1}, r"top_p \(1.1\) must be"),
        ({"logits": torch.tensor([0.0, math.nan])}, "the largest logit is nan: the weights of this model"),
        ({"logits": torch.tensor([0.0, math.inf])}, "the largest logit is inf"),
    ],
)
def test_what_makes_no_distribution_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        distribution(**({"logits": torch.zeros(3)} | arguments))


# sample


@given(logits_of_ten, draws)
def test_a_draw_falls_into_one_share_of_a_row(logits, draw):
    probabilities = distribution(logits, top_k=6)
    upper = 0.0
    for token in sorted(range(10), key=lambda token: (-probabilities[token], token)):
        upper += probabilities[token].item()
        if draw < upper * (1 - 1e-12):
            break
    chosen = sample(probabilities, draw)
    assert chosen == token or abs(draw - upper) < 1e-9
    assert probabilities[chosen] > 0


@given(logits_of_ten, temperatures, temperatures, draws)
def test_a_lower_temperature_never_moves_a_draw_to_a_less_probable_token(logits, one, other, draw):
    colder, warmer = (sample(distribution(logits, temperature), draw) for temperature in sorted((one, other)))
    assert logits[colder] >= logits[warmer] or draw > 1 - 1e-9


def test_a_share_holds_its_lower_end_and_not_its_upper():
    probabilities = torch.tensor([0.25, 0.0, 0.5, 0.25], dtype=torch.float64)
    assert [sample(probabilities, draw) for draw in (0.0, 0.5, 0.75, 1 - 2**-53)] == [2, 0, 3, 3]


def test_draws_come_as_often_as_their_probability():
    probabilities = torch.tensor([0.1, 0.6, 0.0, 0.3], dtype=torch.float64)
    chosen = [sample(probabilities, (i + 0.5) / 1000) for i in range(1000)]
    assert [chosen.count(token) for token in range(4)] == [100, 600, 0, 300]


# decoding


@pytest.mark.parametrize("architecture", GENERATING)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_greedy_takes_the_argmax_of_a_full_pass_at_each_step(architecture, norm):
    read = reader(architecture, norm=norm)
    steps = list(decode(read, PROMPT, end=None, limit=6))
    tokens = PROMPT
    for step in steps:
        expected = plain_logits(read.model, tokens).log_softmax(-1)
        assert step.tokens == tokens
        assert step.token == int(expected.argmax())
        assert step.log_probability == pytest.approx(expected.max().item(), abs=1e-12)
        tokens += (step.token,)
    assert len(steps) == 6


@pytest.mark.parametrize("architecture", GENERATING)
def test_a_step_holds_the_pass_that_chose(architecture):
    read = reader(architecture)
    for n_tokens, step in enumerate(decode(read, PROMPT, WARM, end=None, limit=5), start=1):
        assert torch.equal(step.logits, step.trace["logits"].value[0, -1])
        expected = (plain_logits(read.model, step.tokens) / 1.5).softmax(-1)
        torch.testing.assert_close(step.probabilities, expected, atol=1e-12, rtol=0)
        assert step.token == sample(step.probabilities, step.draw)
        mask = step.trace["decoder.layers.1.self_attention.mask"].value
        assert torch.equal(mask[0, 0], torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril())
        if architecture == "encoder-decoder":
            row = step.trace["decoder.layers.1.cross_attention.weights"].value[0, :, -1]
            assert row.shape == (2, len(SOURCE))


def test_it_ends_at_the_end_token_or_the_limit():
    table = {(): [0.1, 0.9, 0.0], (1,): [0.1, 0.9, 0.0], (1, 1): [0.2, 0.0, 0.8]}
    for limit, expected in ((1, [1]), (2, [1, 1]), (3, [1, 1, 2]), (9, [1, 1, 2])):
        assert [step.token for step in decode(table_reader(table), PROMPT, end=2, limit=limit)] == expected


def test_the_model_runs_only_for_the_steps_asked_for():
    read = CountingReader(reader())
    steps = decode(read, PROMPT, end=None, limit=10)
    next(steps), next(steps)
    assert read.n_runs == 2


def test_a_draw_depends_on_the_seed_and_the_place_alone():
    read = reader("decoder")
    steps = list(decode(read, PROMPT, WARM, end=None, limit=8))
    assert len({step.draw for step in steps}) == 8
    middle = (*PROMPT, *(step.token for step in steps[:4]))
    assert [step.token for step in decode(read, middle, WARM, end=None, limit=4)] == [s.token for s in steps[4:]]
    other = next(decode(read, PROMPT, Sampling(temperature=1.5, seed=4), end=None, limit=1))
    assert other.draw != steps[0].draw


@pytest.mark.parametrize("n_taken", [0, 1, 5, 8])
def test_steps_taken_are_not_computed_again(n_taken):
    read = CountingReader(reader("decoder"))
    whole = list(decode(read, PROMPT, WARM, end=None, limit=8))
    read.n_runs = 0
    rest = list(decode(read, PROMPT, WARM, end=None, limit=8, taken=whole[:n_taken]))
    assert read.n_runs == 8 - n_taken
    assert [(step.tokens, step.token) for step in rest] == [(step.tokens, step.token) for step in whole[n_taken:]]


def test_nothing_follows_an_end_already_taken():
    read = table_reader({(): [0.1, 0.2, 0.7]})
    taken = list(decode(read, PROMPT, end=2, limit=5))
    assert [step.token for step in taken] == [2]
    assert not list(decode(read, PROMPT, end=2, limit=5, taken=taken))


@given(st.integers(0, 20), st.floats(0, 3), st.none() | st.integers(1, 6), top_ps)
def test_choosing_anew_and_reading_on_is_decoding_from_the_start(seed, temperature, top_k, top_p):
    read = CountingReader(table_reader(RANDOM_TABLE))
    other = Sampling(temperature, top_k, top_p, seed)
    before = list(decode(read, PROMPT, Sampling(seed=seed), end=0, limit=3))
    expected = list(decode(read, PROMPT, other, end=0, limit=3))
    read.n_runs = 0
    again = rechosen(before, other)
    assert read.n_runs == 0
    steps = [*again.steps, *decode(read, PROMPT, other, end=0, limit=3, taken=again.steps)]
    assert [(step.tokens, step.token) for step in steps] == [(step.tokens, step.token) for step in expected]
    assert read.n_runs == len(steps) - len(again.steps)
    differences = [i for i, pair in enumerate(zip(before, steps, strict=False)) if pair[0].token != pair[1].token]
    assert again.differs_at == (differences[0] if differences else None)


def all_sequences(n_tokens, limit):
    return [tokens for length in range(limit) for tokens in itertools.product(range(n_tokens), repeat=length)]


RANDOM_TABLE = {
    tokens: random_tensor(3, seed=i, dtype=torch.float64).softmax(0).tolist()
    for i, tokens in enumerate(all_sequences(3, 3))
}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"prompt": ()}, "the prompt is empty"),
        ({"limit": 0}, r"limit \(0\) must be at least 1"),
    ],
)
def test_what_cannot_be_decoded_is_refused_at_once(arguments, sentence):
    given_arguments = {"prompt": PROMPT, "limit": 3} | arguments
    with pytest.raises(ValueError, match=sentence):
        decode(reader(), end=END, **given_arguments)
    with pytest.raises(ValueError, match=sentence):
        beam_search(reader(), width=2, end=END, **given_arguments)


# reading


@pytest.mark.parametrize(
    ("architecture", "source", "sentence"),
    [
        ("encoder", (), r"architecture \(encoder\) has no decoder"),
        ("decoder", SOURCE, "decoder takes none"),
        ("encoder-decoder", (), "encoder-decoder needs a source"),
    ],
)
def test_a_reader_that_does_not_fit_its_model_is_refused(architecture, source, sentence):
    with pytest.raises(ValueError, match=sentence):
        Reader(small_transformer(architecture), source)


def test_a_model_in_training_is_refused():
    with pytest.raises(ValueError, match="training mode"):
        Reader(small_transformer("decoder").train())


def test_the_masks_given_are_the_masks_used():
    model = small_transformer("encoder-decoder", dtype=torch.float64)
    open_mask, first_source = torch.ones(4, 4, dtype=torch.bool), torch.arange(5) < 1
    read = Reader(model, SOURCE, target_mask=(open_mask, None), memory_mask=first_source, source_mask=first_source)
    trace = read((1, 6, 3))
    assert trace["decoder.layers.0.self_attention.mask"].value.shape == (1, 2, 3, 3)
    assert trace["decoder.layers.0.self_attention.mask"].value.all()
    assert "decoder.layers.1.self_attention.mask" not in trace
    for attention in ("decoder.layers.1.cross_attention", "encoder.layers.0.self_attention"):
        assert torch.equal(trace[f"{attention}.mask"].value[0, 0, -1], first_source)


def test_a_sequence_beyond_its_mask_or_max_len_is_refused():
    model = small_transformer("decoder", max_len=4)
    small = Reader(model, target_mask=torch.ones(2, 2, dtype=torch.bool))
    assert len(list(itertools.islice(decode(small, PROMPT, end=None, limit=9), 2))) == 2
    with pytest.raises(ValueError, match=r"target_mask \(2, 2\) is too small for 3 tokens"):
        list(decode(small, PROMPT, end=None, limit=9))
    with pytest.raises(ValueError, match=r"the sequence has 5 tokens: max_len \(4\) is the most"):
        list(decode(Reader(model), PROMPT, end=None, limit=9))


# beam search


def brute_force(next_log_probabilities, n_tokens, end, limit):
    """Every sequence that ends at the end token or the limit, with its log-probability."""
    after = functools.cache(next_log_probabilities)
    totals = {}
    for length in range(1, limit + 1):
        for tokens in itertools.product(range(n_tokens), repeat=length):
            if end in tokens[:-1] or (length < limit and tokens[-1] != end):
                continue
            totals[tokens] = sum(after(tokens[:i])[tokens[i]] for i in range(length))
    return totals


@pytest.mark.parametrize("architecture", GENERATING)
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 2.0])
def test_a_beam_wide_enough_finds_every_sequence(architecture, length_penalty):
    read = reader(architecture, vocab_size=6)
    totals = brute_force(
        lambda tokens: plain_logits(read.model, (*PROMPT, *tokens)).log_softmax(-1).tolist(), 6, END, 3
    )
    tree = beam_search(read, PROMPT, 6**3, end=END, limit=3, length_penalty=length_penalty)
    assert len(tree.results) == len(totals) == 1 + 5 + 25 * 6
    scores = {tokens: total / ((5 + len(tokens)) / 6) ** length_penalty for tokens, total in totals.items()}
    for node in tree.results:
        assert node.total == pytest.approx(totals[node.tokens[1:]], abs=1e-12)
        assert node.score == pytest.approx(scores[node.tokens[1:]], abs=1e-12)
        assert node.finished == (node.token == END)
    assert tree.results[0].tokens[1:] == max(scores, key=scores.get)
    assert [node.score for node in tree.results] == sorted((node.score for node in tree.results), reverse=True)


@pytest.mark.parametrize("architecture", GENERATING)
def test_a_beam_of_one_is_greedy(architecture):
    read = reader(architecture)
    steps = list(decode(read, PROMPT, GREEDY, end=END, limit=7))
    (result,) = beam_search(read, PROMPT, 1, end=END, limit=7).results
    assert result.tokens == (*steps[-1].tokens, steps[-1].token)
    assert result.total == pytest.approx(sum(step.log_probability for step in steps))


GARDEN_PATH = {(): [0.6, 0.4, 0.0], (0,): [0.3, 0.3, 0.4], (1,): [0.05, 0.05, 0.9]}
"""Token 0 is the more probable beginning; 1 and then the end (2) the more probable sequence."""


def test_two_beams_find_what_greedy_misses():
    read = table_reader(GARDEN_PATH)
    assert [step.token for step in decode(read, PROMPT, end=2, limit=2)] == [0, 2]
    best = beam_search(read, PROMPT, 2, end=2, limit=2).results[0]
    assert best.tokens == (1, 1, 2)
    assert best.total == pytest.approx(math.log(0.4 * 0.9))


def test_pruning_weighs_whole_hypotheses_not_last_tokens():
    table = {(): [0.9, 0.1], (0,): [0.6, 0.4], (1,): [0.99, 0.01]}
    tree = beam_search(table_reader(table), PROMPT, 2, end=None, limit=2)
    assert [node.tokens[1:] for node in tree.results] == [(0, 0), (0, 1)]


def test_the_tree_says_what_was_kept_pruned_and_finished():
    tree = beam_search(table_reader(GARDEN_PATH), PROMPT, 2, end=2, limit=2)
    shape = [(node.parent, node.token, node.kept, node.finished) for node in tree.nodes]
    assert shape == [
        (None, 1, True, False),
        *((0, 0, True, False), (0, 1, True, False)),
        *((1, 2, True, True), (1, 0, False, False)),
        *((2, 2, True, True), (2, 0, False, False)),
    ]
    for node in tree.nodes[1:]:
        parent = tree.nodes[node.parent]
        assert node.tokens == (*parent.tokens, node.token)
        assert node.total == parent.total + node.log_probability
    assert tree.nodes[3].trace is tree.nodes[4].trace


def test_a_finished_hypothesis_leaves_the_beam_narrower():
    table = {(): [0.1, 0.2, 0.7], (1,): [0.3, 0.4, 0.3], (1, 1): [0.2, 0.5, 0.3]}
    tree = beam_search(table_reader(table), PROMPT, 2, end=2, limit=3)
    kept = [node.tokens[1:] for node in tree.nodes if node.kept]
    assert kept == [(), (2,), (1,), (1, 1), (1, 1, 1)]
    assert [node.tokens[1:] for node in tree.results] == [(2,), (1, 1, 1)]


def test_ties_go_to_the_earlier_parent_and_the_smaller_id():
    even = [0.25] * 4
    table = dict.fromkeys(all_sequences(4, 3), even)
    tree = beam_search(table_reader(table), PROMPT, 3, end=None, limit=3)
    assert [node.tokens[1:] for node in tree.results] == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]


def test_a_length_penalty_favours_the_longer():
    table = {(): [0.0, 0.5, 0.5], (1,): [0.05, 0.05, 0.9]}
    winners = [
        beam_search(table_reader(table), PROMPT, 2, end=2, limit=2, length_penalty=alpha).results[0].tokens[1:]
        for alpha in (0.0, 2.0)
    ]
    assert winners == [(2,), (1, 2)]


def test_a_vocabulary_smaller_than_the_beam_is_searched_whole():
    tree = beam_search(reader(), PROMPT, VOCAB_SIZE + 5, end=END, limit=1)
    assert len(tree.nodes) == 1 + VOCAB_SIZE
    assert len(tree.results) == VOCAB_SIZE


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"width": 0}, r"width \(0\) must be at least 1"),
        ({"length_penalty": -0.5}, r"length_penalty \(-0.5\) must be 0 or a positive number"),
    ],
)
def test_a_beam_that_cannot_be_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        beam_search(reader(), PROMPT, **({"width": 2, "end": END, "limit": 3} | arguments))


@pytest.mark.parametrize("sampling", [GREEDY, WARM, Sampling(top_k=2, seed=1), Sampling(top_p=0.6, seed=2)])
def test_what_is_never_chosen_leaves_its_probability_to_the_others(sampling):
    never = (0, 4)
    choosing = Sampling(sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed, never)
    steps = list(decode(reader("decoder"), PROMPT, choosing, end=None, limit=8))
    for step in steps:
        assert step.token not in never
        assert step.logits.isfinite().all(), "the model's own logits stay"
        without = torch.tensor([id_ for id_ in range(VOCAB_SIZE) if id_ not in never])
        expected = distribution(step.logits[without], sampling.temperature, sampling.top_k, sampling.top_p)
        torch.testing.assert_close(step.probabilities[without], expected, atol=1e-12, rtol=0)
        assert not step.probabilities[list(never)].any()
    assert [step.token for step in rechosen(steps, choosing).steps] == [step.token for step in steps]


def test_a_beam_never_holds_what_is_never_chosen_and_keeps_the_others_probabilities():
    never = (0, 3)
    tree = beam_search(reader("decoder"), PROMPT, 3, end=None, limit=4, never=never)
    assert not {node.token for node in tree.nodes[1:]} & set(never)
    first = next(iter(decode(reader("decoder"), PROMPT, end=None, limit=1))).logits.double().log_softmax(0)
    for node in tree.nodes[1:4]:
        assert node.log_probability == pytest.approx(float(first[node.token]))
