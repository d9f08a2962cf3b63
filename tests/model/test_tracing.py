"""The trace: what it holds, in which order, that it changes nothing, and whose it is."""

import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from model import Trace, TracedModule, TraceError, attention, record, seed_dropout
from tests.model.builders import ARCHITECTURES, VOCAB_SIZE, small_inputs, small_masks, small_transformer

INPUTS = ["embedding", "scaled_embedding", "positional_encoding", "embedded"]
ATTENTION = [
    *("query_input", "key_input", "value_input", "q_proj", "k_proj", "v_proj", "q", "k", "v"),
    *("scores", "scaled_scores", "mask", "masked_scores", "weights", "context", "concat", "output"),
]
FEED_FORWARD = ["hidden", "activation", "output"]

every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)
every_norm = pytest.mark.parametrize("norm", ["post", "pre"])


def traced(model, *inputs, edits=None, **masks):
    with record(model, edits) as trace:
        output = model(*inputs, **masks)
    return output, trace


def under(prefix, names):
    return [f"{prefix}.{name}" for name in names]


def layer_stages(path, norm, sublayers):
    """The stages of a layer from those of its sub-layers, in the order of the computation."""
    stages = []
    for number, (sublayer, names) in enumerate(sublayers.items(), start=1):
        inner = under(f"{path}.{sublayer}", names)
        residual, normed = f"{path}.residual{number}", f"{path}.norm{number}"
        stages += [normed, *inner, residual] if norm == "pre" else [*inner, residual, normed]
    return stages


def stack_stages(part, norm, sublayers):
    layers = [stage for layer in range(2) for stage in layer_stages(f"{part}.layers.{layer}", norm, sublayers)]
    return [*under(f"{part}.inputs", INPUTS), *layers, *([f"{part}.norm"] if norm == "pre" else [])]


def expected_stages(architecture, norm):
    sublayers = {"self_attention": ATTENTION, "feed_forward": FEED_FORWARD}
    crossed = {"self_attention": ATTENTION, "cross_attention": ATTENTION, "feed_forward": FEED_FORWARD}
    if architecture == "encoder-decoder":
        stacks = stack_stages("encoder", norm, sublayers) + stack_stages("decoder", norm, crossed)
    else:
        stacks = stack_stages(architecture, norm, sublayers)
    return [*stacks, "logits", "probabilities"]


@every_architecture
@every_norm
def test_the_stages_in_the_order_computed(architecture, norm):
    model = small_transformer(architecture, norm=norm)
    _, trace = traced(model, *small_inputs(architecture), **small_masks(architecture))
    assert list(trace) == expected_stages(architecture, norm)


def test_a_mask_is_a_stage_only_where_there_is_one():
    _, trace = traced(small_transformer(), *small_inputs())
    assert not [path for path in trace if path.endswith(".mask")]
    assert torch.equal(
        trace["encoder.layers.0.self_attention.masked_scores"].value,
        trace["encoder.layers.0.self_attention.scaled_scores"].value,
    )


@every_architecture
@every_norm
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_recording_and_editing_with_the_identity_change_not_one_bit(architecture, norm, dropout):
    model = small_transformer(architecture, norm=norm, dropout=dropout).train(dropout > 0)
    inputs, masks = small_inputs(architecture), small_masks(architecture)

    def seeded(run):
        seed_dropout(model, 5)
        return run()

    plain = seeded(lambda: model(*inputs, **masks))
    recorded, trace = seeded(lambda: traced(model, *inputs, **masks))
    identity = {path: lambda value: value for path in trace}
    edited, edited_trace = seeded(lambda: traced(model, *inputs, edits=identity, **masks))
    assert torch.equal(plain, recorded)
    assert torch.equal(plain, edited)
    assert list(trace) == list(edited_trace)
    assert all(torch.equal(trace[path].value, edited_trace[path].value) for path in trace)
    assert trace["probabilities"].value is recorded


def test_gradients_are_the_same_when_recorded():
    model, inputs, masks = small_transformer(), small_inputs(), small_masks()
    gradients = []
    for run in (lambda: model(*inputs, **masks), lambda: traced(model, *inputs, **masks)[0]):
        model.zero_grad()
        run().square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert all(torch.equal(plain, recorded) for plain, recorded in zip(*gradients, strict=True))


def test_a_stage_knows_its_shape_and_place():
    model = small_transformer()
    _, trace = traced(model, *small_inputs())
    stage = trace["encoder.layers.1.self_attention.weights"]
    assert stage.name == "weights"
    assert stage.module_path == "encoder.layers.1.self_attention"
    assert stage.shape_text == "(B H Tq Tk) = (2, 2, 6, 6)"
    file, line = stage.location
    assert file == inspect.getsourcefile(attention)
    assert 'tap("weights"' in inspect.getsource(attention).splitlines()[line - 1]


@every_architecture
def test_every_stage_has_the_sizes_of_its_tensor(architecture):
    _, trace = traced(small_transformer(architecture), *small_inputs(architecture))
    for path, stage in trace.items():
        assert stage.path == path
        assert tuple(size for _, size in stage.dims) == stage.value.shape
        assert {symbol for symbol, _ in stage.dims} <= {"B", "T", "Tq", "Tk", "H", "D", "Dh", "F", "V"}


class Tapping(TracedModule):
    """Names what it is told to, so that what is wrong can be named."""

    def __init__(self, *taps):
        super().__init__()
        self.taps = taps

    def forward(self, x):
        for name, value, shape in self.taps:
            x = self.tap(name, value, shape)
        return x


def test_a_module_recorded_as_the_root_has_no_prefix():
    _, trace = traced(Tapping(("a", torch.zeros(2, 3), "B T")), None)
    assert list(trace) == ["a"]
    assert (trace["a"].module_path, trace["a"].name) == ("", "a")


@pytest.mark.parametrize(
    ("taps", "message"),
    [
        (
            [("a", torch.zeros(2, 3), "B T"), ("b", torch.zeros(2, 4), "B T")],
            r"b \(B T\): T was 3 and is now 4",
        ),
        ([("a", torch.zeros(2, 3), "B B")], r"a \(B B\): B was 2 and is now 3"),
        ([("a", torch.zeros(2, 3), "B T D")], r"a has shape \(2, 3\), which \(B T D\) does not describe"),
        (
            [("q", torch.zeros(2, 3, 4), "H T Dh"), ("c", torch.zeros(3, 9), "T H*Dh")],
            r"c \(T H\*Dh\): H\*Dh was 8 and is now 9",
        ),
        ([("a", torch.zeros(2), "B"), ("a", torch.zeros(2), "B")], "a was computed twice in one recording"),
        ([("a", torch.zeros(2), "B"), ("a", torch.zeros(3), "B")], "a was computed twice in one recording"),
    ],
)
def test_a_stage_that_contradicts_another_is_refused(taps, message):
    with pytest.raises(TraceError, match=message):
        traced(Tapping(*taps), None)
    Tapping(*taps)(None)  # without a recorder a tap only returns its value


def test_a_product_of_symbols_is_checked():
    taps = [
        ("p", torch.zeros(3, 8), "T H*Dh"),
        ("q", torch.zeros(2, 3, 4), "H T Dh"),
        ("c", torch.zeros(3, 8), "T H*Dh"),
    ]
    _, trace = traced(Tapping(*taps), None)
    assert trace["c"].dims == (("T", 3), ("H*Dh", 8))


def test_two_passes_are_no_one_recording():
    model = small_transformer()

    def run_twice():
        with record(model):
            model(torch.tensor([[1, 2, 3]]))
            model(torch.tensor([[1, 2]]))

    with pytest.raises(TraceError, match=r"encoder\.inputs\.embedding was computed twice"):
        run_twice()


def test_shapes_that_were_good_once_are_checked_again_with_other_sizes():
    good = [("a", torch.zeros(2, 3), "B T"), ("b", torch.zeros(2, 3), "B T")]
    module = Tapping(*good)
    for _ in range(2):
        traced(module, None)
    module.taps = (good[0], ("b", torch.zeros(2, 4), "B T"))
    with pytest.raises(TraceError, match=r"b \(B T\): T was 3 and is now 4"):
        traced(module, None)


def test_a_wrong_shape_is_named_even_where_a_later_operation_failed_on_it():
    module = Tapping(("a", torch.zeros(2, 3), "B T"), ("b", torch.zeros(2, 4), "B T"))

    def multiply():
        with record(module):
            module(None) @ torch.zeros(2, 3)

    with pytest.raises(TraceError, match=r"T was 3 and is now 4") as refusal:
        multiply()
    assert isinstance(refusal.value.__context__, RuntimeError)


def test_a_trace_can_be_read_while_the_pass_runs():
    module = Tapping(("a", torch.zeros(2, 3), "B T"))
    with record(module) as trace:
        assert (len(trace), "a" in trace) == (0, False)
        module(None)
        assert trace["a"].dims == (("B", 2), ("T", 3))


def test_a_stage_knows_whether_it_was_edited():
    model = small_transformer("encoder")
    changed, kept = "encoder.layers.0.norm1", "encoder.layers.0.norm2"
    with record(model, {changed: lambda value: 2 * value, kept: lambda value: value}) as trace:
        model(*small_inputs("encoder"))
    assert [path for path in trace if trace[path].edited] == [changed]


def test_an_unknown_edit_is_refused_with_the_nearest_path():
    model = small_transformer()
    edits = {"encoder.layers.0.self_attention.wieghts": lambda value: value}
    with pytest.raises(TraceError, match=r"no stage '.*wieghts' to edit: did you mean '.*attention.weights'\?"):
        traced(model, *small_inputs(), edits=edits)


def test_an_edit_of_a_mask_that_is_not_there_is_refused():
    with pytest.raises(TraceError, match=r"no stage 'encoder.layers.0.self_attention.mask' to edit"):
        traced(
            small_transformer(), *small_inputs(), edits={"encoder.layers.0.self_attention.mask": lambda mask: mask}
        )


def test_an_error_inside_a_recording_is_the_one_seen_and_ends_it():
    model = small_transformer()
    with pytest.raises(ZeroDivisionError), record(model, {"never": lambda value: value}) as trace:
        raise ZeroDivisionError
    model(*small_inputs())
    assert len(trace) == 0


def test_a_path_that_is_not_there_is_refused_with_the_nearest():
    _, trace = traced(small_transformer(), *small_inputs())
    with pytest.raises(TraceError, match=r"no stage 'logit' in this trace: did you mean 'logits'\?") as refusal:
        trace["logit"]
    assert not str(refusal.value).startswith(("'", '"'))


def test_a_trace_is_a_mapping():
    _, trace = traced(small_transformer(), *small_inputs())
    assert "logits" in trace
    assert "logit" not in trace
    assert trace.get("logit") is None
    assert trace.get("logits") is trace["logits"]
    assert len(trace) == len(list(trace)) == len(dict(trace))
    assert len(Trace()) == 0


def test_recordings_nest():
    """The inner one takes what its model computes; the outer one goes on after it."""
    model = small_transformer()
    inner_model = model.encoder.layers[0].feed_forward
    with record(model) as outer:
        with record(inner_model) as inner:
            inner_model(torch.zeros(1, 2, 8))
        model(*small_inputs())
    assert list(inner) == FEED_FORWARD
    assert next(iter(outer)) == "encoder.inputs.embedding"


def test_a_recording_holds_its_own_model_alone():
    model, other = small_transformer(), small_transformer()
    with record(model) as trace:
        other(*small_inputs())
        assert len(trace) == 0
        model(*small_inputs())
    assert "logits" in trace


def test_threads_that_share_a_model_do_not_see_each_other():
    shared, n_threads = small_transformer(), 4
    together = threading.Barrier(n_threads)
    inputs = [torch.full((1, length), length) for length in range(2, 2 + n_threads)]
    path = "encoder.layers.0.self_attention.context"

    def run(thread):
        edits = {path: lambda context: context * thread}
        for _ in range(5):
            together.wait(timeout=30)
            output, trace = traced(shared, inputs[thread], edits=edits)
        return output, trace

    with ThreadPoolExecutor(n_threads) as pool:
        results = list(pool.map(run, range(n_threads)))
    for thread, (output, trace) in enumerate(results):
        expected, expected_trace = traced(
            shared, inputs[thread], edits={path: lambda context, by=thread: context * by}
        )
        assert torch.equal(output, expected)
        assert list(trace) == list(expected_trace)
        assert all(torch.equal(trace[stage].value, expected_trace[stage].value) for stage in trace)


def test_a_thread_without_a_recording_adds_nothing():
    shared = small_transformer()
    with record(shared) as trace, ThreadPoolExecutor(1) as pool:
        pool.submit(shared, *small_inputs()).result()
    assert len(trace) == 0


def test_tasks_that_share_a_model_do_not_see_each_other():
    shared = small_transformer()

    async def run(length):
        with record(shared) as trace:
            await asyncio.sleep(0)
            shared(torch.ones(1, length, dtype=torch.int64))
            await asyncio.sleep(0)
        return trace

    async def run_all():
        return await asyncio.gather(*(run(length) for length in (2, 3, 4)))

    with ThreadPoolExecutor(1) as thread:  # another test's browser may keep a loop running in this one
        traces = thread.submit(lambda: asyncio.run(run_all())).result()
    assert [trace["logits"].value.shape for trace in traces] == [(1, n, VOCAB_SIZE) for n in (2, 3, 4)]


@every_architecture
def test_a_compiled_model_has_no_graph_break(architecture):
    model = small_transformer(architecture)
    inputs, masks = small_inputs(architecture), small_masks(architecture)
    compiled = torch.compile(model, fullgraph=True, backend="eager")  # raises where the graph breaks
    torch.testing.assert_close(compiled(*inputs, **masks), model(*inputs, **masks), atol=1e-6, rtol=0)
