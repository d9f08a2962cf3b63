"""Measured influence against other ways to differentiate, against reach, and on models whose leak is known."""

import math
import threading
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model import record
from model.analysis import influence
from model.analysis.influence import first_leak, judge, measure_dependence, measure_influence
from model.analysis.reach import allowed_dependence, entry_path, reach
from model.edits import replace
from model.masks import causal, padding, sliding_window
from model.sources.weights import build_model
from tests.model.builders import (
    ARCHITECTURES,
    N_SOURCE,
    N_TARGET,
    generator,
    keyless,
    random_mask,
    random_tensor,
    small_inputs,
    small_masks,
    small_transformer,
)

CAUSAL = causal(N_SOURCE, N_SOURCE)
PAIRS = [("encoder", "source"), ("decoder", "source"), ("encoder-decoder", "source"), ("encoder-decoder", "target")]


def forward(model, **masks):
    """A call of the model with the small inputs, one sequence or one pair."""
    inputs = small_inputs(model.config.architecture, n_batch=1)
    return partial(model, *inputs, **masks)


def traced(model, run, edits=None):
    with torch.no_grad(), record(model, edits) as trace:
        run()
    return trace


def outputs_as_function(model, run, sequence, paths):
    """The outputs as a function of the embeddings, and the embeddings."""
    trace = traced(model, run)
    entry = entry_path(trace, sequence)

    def outputs(embedded):
        with record(model, {entry: replace(embedded)}) as trace:
            run()
        return tuple(trace[path].value for path in paths)

    return outputs, trace[entry].value


def block_norms(jacobian):
    """(1, rows, width, 1, tokens, D) -> (rows, tokens)."""
    return jacobian[0, :, :, 0].square().sum((1, 3)).sqrt()


def by_attention(trace, masks):
    """The masks by the path of each attention, for ``allowed_dependence``."""
    both = "encoder.inputs.embedded" in trace and "decoder.inputs.embedded" in trace
    names = {"encoder.self": "source_mask", "decoder.self": "target_mask" if both else "source_mask"}
    found = {}
    for path in (stage.module_path for stage in trace.values() if stage.name == "weights"):
        name = "memory_mask" if "cross" in path else names[path.partition(".")[0] + ".self"]
        given = masks.get(name)
        found[path] = given if given is None or isinstance(given, torch.Tensor) else given[int(path.split(".")[2])]
    return found


def allowed_under(model, run, masks, sequence="source"):
    trace = traced(model, run)
    return allowed_dependence(trace, by_attention(trace, masks), sequence)


# The numbers.


@pytest.mark.parametrize(("architecture", "sequence"), PAIRS)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_norms_are_those_of_reverse_mode(architecture, sequence, norm):
    model = small_transformer(architecture, norm=norm, activation="gelu", dtype=torch.float64)
    run = forward(model, **small_masks(architecture, n_batch=1))
    measured = measure_influence(model, run, sequence)
    outputs, embedded = outputs_as_function(model, run, sequence, measured.paths)
    jacobians = torch.autograd.functional.jacobian(outputs, embedded)
    expected = torch.stack([block_norms(jacobian) for jacobian in jacobians])
    torch.testing.assert_close(measured.norms, expected)
    last, stack = (2 if architecture != "encoder-decoder" else 3), architecture.removeprefix("encoder-")
    stage = f"norm{last}" if norm == "post" else f"residual{last}"
    assert measured.paths == (f"{stack}.layers.0.{stage}", f"{stack}.layers.1.{stage}", "logits")


@pytest.mark.parametrize(("architecture", "sequence"), PAIRS)
def test_the_norms_are_those_of_central_differences(architecture, sequence):
    model = small_transformer(architecture, activation="gelu", dtype=torch.float64)
    run = forward(model, **small_masks(architecture, n_batch=1))
    measured = measure_influence(model, run, sequence)
    outputs, embedded = outputs_as_function(model, run, sequence, measured.paths)
    step = 1e-5
    squares = torch.zeros_like(measured.norms)
    with torch.no_grad():
        for token in range(embedded.shape[1]):
            for column in range(embedded.shape[2]):
                shift = torch.zeros_like(embedded)
                shift[0, token, column] = step
                sides = zip(outputs(embedded + shift), outputs(embedded - shift), strict=True)
                slopes = [(above - below)[0] / (2 * step) for above, below in sides]
                squares[:, :, token] += torch.stack([slope.square().sum(-1) for slope in slopes])
    torch.testing.assert_close(measured.norms, squares.sqrt(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("chunk_bytes", [1, 7_000, 50_000])
def test_the_size_of_the_chunks_changes_nothing(chunk_bytes, monkeypatch):
    model = small_transformer("decoder", dtype=torch.float64)
    run = forward(model, source_mask=CAUSAL)
    whole = measure_influence(model, run).norms
    dependence = measure_dependence(model, run, generator(0))
    monkeypatch.setattr(influence, "_CHUNK_BYTES", chunk_bytes)
    torch.testing.assert_close(measure_influence(model, run).norms, whole)
    again = measure_dependence(model, run, generator(0))
    assert all(torch.equal(again[path], cells) for path, cells in dependence.items())


def test_it_is_repeatable_to_the_last_bit(monkeypatch):
    monkeypatch.setattr(influence, "_CHUNK_BYTES", 3_000)
    model = small_transformer("encoder")
    run = forward(model, source_mask=random_mask(N_SOURCE, N_SOURCE))
    first, second = (measure_influence(model, run).norms for _ in range(2))
    assert torch.equal(first, second)


def test_the_model_is_left_as_it_was():
    model = small_transformer("encoder").requires_grad_(True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    run = forward(model, source_mask=CAUSAL)
    free = measure_influence(model, run)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    model.requires_grad_(False)
    frozen = measure_influence(model, run)
    torch.testing.assert_close(free.norms, frozen.norms)
    with torch.inference_mode():
        inferring = measure_influence(model, run)
    torch.testing.assert_close(inferring.norms, frozen.norms)


# Exact zeros.


def masks_of(kind, n_tokens):
    """Masks that stress one thing each."""
    return {
        "causal": causal(n_tokens, n_tokens),
        "window": causal(n_tokens, n_tokens) & sliding_window(n_tokens, n_tokens, 2),
        "padding": padding(torch.tensor([[False] * (n_tokens - 2) + [True] * 2])),
        "per_head": random_mask(1, 2, n_tokens, n_tokens, seed=3) & causal(n_tokens, n_tokens),
        "keyless": keyless(causal(n_tokens, n_tokens), 1),
        "all_keyless": torch.zeros(n_tokens, n_tokens, dtype=torch.bool),
    }[kind]


KINDS = ("causal", "window", "padding", "per_head", "keyless", "all_keyless")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("architecture", ["encoder", "decoder"])
def test_what_is_out_of_reach_is_exactly_zero_and_nothing_else_is(kind, norm, activation, architecture):
    model = small_transformer(architecture, norm=norm, activation=activation)
    masks = {"source_mask": masks_of(kind, N_SOURCE)}
    run = forward(model, **masks)
    measured = measure_influence(model, run)
    allowed = allowed_under(model, run, masks)
    for path, norms in zip(measured.paths, measured.norms, strict=True):
        assert torch.equal(norms != 0, allowed[path]), path
    assert not measured.norms.isnan().any()
    assert all(verdict.passes for verdict in judge(measured, allowed))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("sequence", ["source", "target"])
def test_so_it_is_across_an_encoder_and_a_decoder(kind, norm, sequence):
    model = small_transformer("encoder-decoder", norm=norm)
    masks = {
        "source_mask": masks_of(kind, N_SOURCE),
        "target_mask": masks_of(kind, N_TARGET),
        "memory_mask": random_mask(1, 2, N_TARGET, N_SOURCE, seed=8),
    }
    run = forward(model, **masks)
    measured = measure_influence(model, run, sequence)
    allowed = allowed_under(model, run, masks, sequence)
    for path, norms in zip(measured.paths, measured.norms, strict=True):
        assert torch.equal(norms != 0, allowed[path]), path


@settings(max_examples=25)
@given(st.data())
def test_measured_support_is_reach(data):
    """With weights of no special kind, every way that the masks leave open is taken."""
    n_layers = data.draw(st.integers(1, 3))
    seeds = data.draw(st.lists(st.integers(0, 10**6), min_size=n_layers, max_size=n_layers))
    masks = [torch.rand(1, 2, N_SOURCE, N_SOURCE, generator=generator(seed)) < 0.2 for seed in seeds]
    model = small_transformer("encoder", n_layers=n_layers, norm=data.draw(st.sampled_from(["post", "pre"])))
    run = forward(model, source_mask=masks)
    reached = reach(masks, N_SOURCE)
    measured = measure_influence(model, run)
    assert torch.equal(measured.norms[:-1] != 0, reached)
    assert torch.equal(measured.norms[-1] != 0, reached[-1])
    dependence = measure_dependence(model, run, generator(seeds[0]))
    assert all(torch.equal(dependence[path], norms != 0) for path, norms in zip(*_rows(measured), strict=True))


def _rows(measured):
    return measured.paths, measured.norms


@pytest.mark.parametrize(("architecture", "sequence"), PAIRS)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_stage_depends_on_what_it_may_depend_on(architecture, sequence, norm):
    """Every query has two keys: of a single one, the weight is 1 whatever the scores."""
    model = small_transformer(architecture, norm=norm)
    window = causal(8, 8)[1:7, :6]
    masks = {"source_mask": window} | (
        {"target_mask": causal(8, 8)[1:6, :5], "memory_mask": random_mask(N_TARGET, N_SOURCE, seed=1)}
        if architecture == "encoder-decoder"
        else {}
    )
    run = forward(model, **masks)
    dependence = measure_dependence(model, run, generator(0), sequence)
    allowed = allowed_under(model, run, masks, sequence)
    assert next(iter(dependence)) == entry_path(traced(model, run), sequence)
    assert list(dependence)[-2:] == ["logits", "probabilities"]
    for path, depends in dependence.items():
        own_inputs = path.startswith("decoder.inputs.")
        assert own_inputs or torch.equal(depends, allowed[path]), path
    assert first_leak(dependence, allowed) is None


def test_a_stage_that_does_not_depend_on_the_sequence_is_all_zero():
    model = small_transformer("encoder-decoder").requires_grad_(True)
    dependence = measure_dependence(model, forward(model), generator(0), "source")
    for name in ("embedding", "positional_encoding", "embedded"):
        assert not dependence[f"decoder.inputs.{name}"].any()
    assert not dependence["decoder.layers.0.self_attention.output"].any()


def test_a_leak_of_any_size_is_one():
    """Its square would vanish in float32."""
    model = small_transformer("decoder")
    run = forward(model, source_mask=CAUSAL)
    mixed = {"decoder.layers.1.residual1": lambda value: value + 1e-30 * value.flip(1)}
    *_, first, second, logits = judge(
        measure_influence(model, run, edits=mixed), allowed_under(model, run, {"source_mask": CAUSAL})
    )
    assert first.passes
    assert 0 < second.largest < 1e-27
    assert not logits.passes


# Models with a known fault.


def after_softmax(attention, mask):
    """Scores that are not masked, and weights times the mask."""
    return {f"{attention}.mask": torch.ones_like, f"{attention}.weights": lambda weights: weights * mask}


def verdicts_and_leak(model, run, promised, sequence="source", edits=None):
    allowed = allowed_under(model, run, promised, sequence)
    verdicts = judge(measure_influence(model, run, sequence, edits=edits), allowed)
    dependence = measure_dependence(model, run, generator(1), sequence, edits=edits)
    return verdicts, first_leak(dependence, allowed)


def test_a_correct_model_passes():
    model = small_transformer("decoder", n_layers=3)
    promised = {"source_mask": CAUSAL}
    verdicts, leak = verdicts_and_leak(model, forward(model, **promised), promised)
    assert leak is None
    assert [verdict.passes for verdict in verdicts] == [True] * 4
    assert {(verdict.n_forbidden, verdict.largest, verdict.where) for verdict in verdicts} == {(15, 0.0, None)}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_mask_left_out_in_one_layer_is_found_there(norm):
    model = small_transformer("decoder", n_layers=3, norm=norm)
    run = forward(model, source_mask=(CAUSAL, None, CAUSAL))
    verdicts, leak = verdicts_and_leak(model, run, {"source_mask": CAUSAL})
    assert [verdict.passes for verdict in verdicts] == [True, False, False, False]
    assert leak.path == "decoder.layers.1.self_attention.weights"
    assert (leak.row, leak.token) == (0, 1)


@pytest.mark.parametrize("layer", [0, 1])
def test_a_mask_after_the_softmax_is_found_there(layer):
    model = small_transformer("decoder")
    attention = f"decoder.layers.{layer}.self_attention"
    promised = {"source_mask": CAUSAL}
    verdicts, leak = verdicts_and_leak(
        model, forward(model, **promised), promised, edits=after_softmax(attention, CAUSAL)
    )
    assert [verdict.passes for verdict in verdicts] == [layer > 0, False, False]
    assert leak.path == f"{attention}.weights"


def test_a_mask_left_out_in_one_head_is_found_there():
    model = small_transformer("decoder")
    of_heads = torch.stack([CAUSAL, torch.ones_like(CAUSAL)])
    verdicts, leak = verdicts_and_leak(model, forward(model, source_mask=of_heads), {"source_mask": CAUSAL})
    assert not any(verdict.passes for verdict in verdicts)
    assert leak.path == "decoder.layers.0.self_attention.weights"


def test_the_worst_leak_is_named():
    model = small_transformer("decoder", n_layers=1)
    run = forward(model)
    measured = measure_influence(model, run)
    first, _ = judge(measured, dict.fromkeys(measured.paths, CAUSAL))
    later = [(float(measured.norms[0, i, j]), (i, j)) for i in range(N_SOURCE) for j in range(i + 1, N_SOURCE)]
    assert first.n_forbidden == first.n_leaking == len(later)
    assert (first.largest, first.where) == max(later)


def test_padding_that_is_not_hidden_from_the_decoder_is_found():
    model = small_transformer("encoder-decoder")
    hidden = padding(torch.tensor([[False] * 4 + [True] * 2]))
    promised = {"source_mask": hidden, "memory_mask": hidden}
    run = forward(model, source_mask=hidden, memory_mask=(hidden, None))
    verdicts, leak = verdicts_and_leak(model, run, promised)
    assert [verdict.passes for verdict in verdicts] == [True, False, False]
    assert leak.path == "decoder.layers.1.cross_attention.weights"
    assert leak.token == 4
    correct, no_leak = verdicts_and_leak(model, forward(model, **promised), promised)
    assert all(verdict.passes for verdict in correct)
    assert no_leak is None


def test_a_leak_within_the_target_is_found():
    model = small_transformer("encoder-decoder")
    promised = {"target_mask": causal(N_TARGET, N_TARGET)}
    verdicts, leak = verdicts_and_leak(model, forward(model), promised, "target")
    assert not any(verdict.passes for verdict in verdicts)
    assert leak.path == "decoder.layers.0.self_attention.weights"


def test_a_number_that_is_none_does_not_pass():
    model = small_transformer("decoder")
    run = forward(model, source_mask=CAUSAL)
    broken = {"decoder.layers.0.residual1": lambda value: value * math.inf}
    verdicts = judge(
        measure_influence(model, run, edits=broken), allowed_under(model, run, {"source_mask": CAUSAL})
    )
    assert not verdicts[0].passes


def test_what_an_edit_makes_of_the_embeddings_is_what_enters():
    model = small_transformer("encoder", dtype=torch.float64)
    run = forward(model, source_mask=CAUSAL)
    other = random_tensor(1, N_SOURCE, 8, seed=9, dtype=torch.float64)
    measured = measure_influence(model, run, edits={"encoder.inputs.embedded": replace(other)})
    outputs, _ = outputs_as_function(model, run, "source", measured.paths)
    jacobians = torch.autograd.functional.jacobian(outputs, other)
    torch.testing.assert_close(measured.norms, torch.stack([block_norms(jacobian) for jacobian in jacobians]))


def test_hand_built_heads_keep_their_masks_too():
    """Their weights are near 0 and 1, where a difference from zero would be smallest."""
    config = small_transformer("decoder", d_model=64, n_heads=4).config
    model = build_model(config, "hand_built", seed=0)
    promised = {"source_mask": CAUSAL}
    verdicts, leak = verdicts_and_leak(model, forward(model, **promised), promised)
    assert all(verdict.passes for verdict in verdicts)
    assert leak is None
    verdicts, leak = verdicts_and_leak(model, forward(model), promised)
    assert not any(verdict.passes for verdict in verdicts)


# Progress, threads and refusals.


def test_derivatives_of_large_passes_share_the_memory(monkeypatch):
    model = small_transformer("encoder")
    with record(model) as trace:
        forward(model)()
    one = influence._BYTES_PER_TRACED * sum(stage.value.nbytes for stage in trace.values())
    for room, n_threads in ((100, 4), (2.5, 2), (0.1, 1)):
        monkeypatch.setattr(influence, "_MOST_BYTES", room * one)
        assert influence._threads_in_memory(trace) == n_threads


def test_progress_is_told_by_the_calling_thread(monkeypatch):
    monkeypatch.setattr(influence, "_CHUNK_BYTES", 3_000)
    model = small_transformer("encoder")
    told = []
    measure_influence(model, forward(model), progress=lambda done: told.append((done, threading.get_ident())))
    fractions = [done for done, _ in told]
    assert fractions == [n / len(fractions) for n in range(1, len(fractions) + 1)]
    assert len(fractions) > 5
    assert {thread for _, thread in told} == {threading.get_ident()}


def test_an_error_of_progress_ends_it_at_once(monkeypatch):
    monkeypatch.setattr(influence, "_CHUNK_BYTES", 1)
    pushed = []
    push = influence._Derivative.push

    def counted(derivative, directions):
        pushed.append(1)
        return push(derivative, directions)

    monkeypatch.setattr(influence._Derivative, "push", counted)
    model = small_transformer("encoder")

    def stop(done):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        measure_influence(model, forward(model), progress=stop)
    after = len(pushed)
    assert after < N_SOURCE * 8
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]
    assert len(pushed) == after


def test_measurements_at_once_do_not_disturb_each_other(monkeypatch):
    monkeypatch.setattr(influence, "_CHUNK_BYTES", 3_000)
    models = [small_transformer(architecture) for architecture in ARCHITECTURES]
    runs = [forward(model, source_mask=random_mask(N_SOURCE, N_SOURCE, seed=9)) for model in models]
    alone = [measure_influence(model, run).norms for model, run in zip(models, runs, strict=True)]
    together = [None] * len(models)

    def measure(i):
        together[i] = measure_influence(models[i], runs[i]).norms

    threads = [threading.Thread(target=measure, args=(i,)) for i in range(len(models))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("measure", [measure_influence, lambda *given: measure_dependence(*given, generator(0))])
def test_what_cannot_be_measured_is_refused(measure):
    dropping = small_transformer("encoder", dropout=0.5)
    with pytest.raises(ValueError, match="dropout is active"):
        measure(dropping.train(), forward(dropping))
    assert measure(dropping.eval(), forward(dropping))
    model = small_transformer("encoder")
    with pytest.raises(ValueError, match="the batch holds 2 sequences: measure one at a time"):
        measure(model, partial(model, *small_inputs()))
    with pytest.raises(ValueError, match=r"sequence \('target'\) must be 'source'"):
        measure_influence(model, forward(model), "target")


def test_training_mode_without_dropout_is_measured():
    model = small_transformer("encoder")
    run = forward(model, source_mask=CAUSAL)
    expected = measure_influence(model, run).norms
    assert torch.equal(measure_influence(model.train(), run).norms, expected)
