"""The measured influence of each token on each row of a model, and whether that keeps what its masks promise.

Measured is the Jacobian of a row of some output with respect to the embedding of a token, what enters the first
layer. Where the masks block every way from the token to the row it is zero, and not about zero but exactly: the
weight of a blocked key is e^-inf, which is 0 in any floating-point type, each way through the key is a product with
that weight, and a sum of zeros is zero in any order. So there is no tolerance: what is not zero is a leak.

What is measured is what the machine computes. A key that is allowed, but whose weight is too small for the type,
such as e^-200 in float32, passes nothing on either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from model.analysis.reach import SequenceName, entry_path, of_pairs
from model.dropout import Dropout
from model.edits import replace
from model.tracing import Edit, Trace, TracedModule, record

_CHUNK_BYTES = 2**21
"""The size of the largest stage of all directions pushed through at once: what a core's cache can hold."""

_MOST_THREADS = 4
_MOST_BYTES, _BYTES_PER_TRACED = 2**31, 3.5
"""The memory that all derivatives may take, and how many times that of a pass one takes, as measured."""

_KEPT_BYTES = 31 * 2**20

_Part = TypeVar("_Part")


@dataclass(frozen=True, eq=False)
class Influence:
    """The influence of tokens on outputs.

    Attributes:
        paths: the output of each layer, and ``logits``, in the order computed.
        norms: (n_outputs, rows, T) float64; cell (o, i, j) is the Frobenius norm of the Jacobian of row i of output
            o with respect to the embedding of token j.
    """

    paths: tuple[str, ...]
    norms: Tensor


@dataclass(frozen=True)
class Verdict:
    """The verdict on whether one output depends on nothing that it must not depend on.

    Attributes:
        path: the output.
        n_forbidden: how many cells (row, token) must be zero.
        n_leaking: how many of them are not.
        largest: the largest norm among them; 0 where none leaks.
        where: its row and token; None where none leaks.
    """

    path: str
    n_forbidden: int
    n_leaking: int
    largest: float
    where: tuple[int, int] | None

    @property
    def passes(self) -> bool:
        """True if every cell that must be zero is."""
        return self.n_leaking == 0


@dataclass(frozen=True)
class Leak:
    """The first stage at which a row depends on a token that it must not depend on.

    Attributes:
        path: the stage.
        row: its first such row.
        token: the first such token of that row.
    """

    path: str
    row: int
    token: int


def output_paths(trace: Trace, *, of_encoder: bool = False) -> tuple[str, ...]:
    """The last stage of each layer of the last stack, and the logits; of an attention alone its output.

    Of an encoder beside a decoder, the last stage of each of its layers.
    """
    if "logits" not in trace:
        return (list(trace)[-1],)
    has_decoder = "decoder.inputs.embedded" in trace
    of_encoder = of_encoder and has_decoder
    stack = "decoder" if has_decoder and not of_encoder else "encoder"
    layer = re.compile(rf"{stack}\.layers\.\d+")
    last_of_layer = {stage.module_path: path for path, stage in trace.items() if layer.fullmatch(stage.module_path)}
    return (*last_of_layer.values(), *(() if of_encoder else ("logits",)))


def measure_influence(
    model: TracedModule,
    run: Callable[[], object],
    sequence: SequenceName = "source",
    *,
    of_encoder: bool = False,
    edits: Mapping[str, Edit] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Influence:
    """The exact Jacobian norms of the output of every layer and of the logits, all in one sweep.

    Each of the T * d_model directions of the input is pushed through the model: nothing is sampled, and nothing is
    taken to be zero. Beside an encoder, the outputs are those of the decoder unless the encoder's are asked for.

    Args:
        model: any Transformer or attention alone whose dropout is not active.
        run: calls the model with ids and masks, for one sequence or one pair of them. It is called a few times, in
            this thread, and must compute the same each time.
        sequence: whose embeddings the outputs are differentiated by.
        of_encoder: whether the outputs are those of the encoder's layers, where there is a decoder beside it.
        edits: as in ``record``, to measure a model that is broken on purpose.
        progress: called in this thread with the fraction done, up to 1. An error that it raises ends the
            measurement.

    Raises:
        ValueError: dropout is active, there are several sequences in the batch, or the model has no such sequence.
    """
    forward = _first_pass(model, run, edits or {}, sequence)
    outputs = output_paths(forward.trace, of_encoder=of_encoder)
    n_tokens, d_model = forward.embedded.shape[-2:]
    n_rows = forward.trace[outputs[-1]].value.shape[-2]
    chunks = _chunks(n_tokens * d_model, forward.trace)
    squares = torch.zeros(len(outputs), n_rows, n_tokens, dtype=torch.float64)
    with closing(_each_chunk(forward, outputs, chunks, _squared_norms)) as parts:
        for n_done, (chunk, part) in enumerate(parts, 1):
            squares.index_add_(-1, torch.tensor(chunk) // d_model, part)
            if progress is not None:
                progress(n_done / len(chunks))
    return Influence(outputs, squares.sqrt())


def measure_dependence(
    model: TracedModule,
    run: Callable[[], object],
    generator: torch.Generator,
    sequence: SequenceName = "source",
    *,
    of_encoder: bool = False,
    edits: Mapping[str, Edit] | None = None,
) -> dict[str, Tensor]:
    """Measure which rows of every stage depend on which tokens at all.

    One random direction per token is pushed through the model, d_model times fewer than ``measure_influence``
    needs: a Jacobian that is zero sends it to exactly zero, and any other does so with probability zero.

    Args:
        model: as in ``measure_influence``.
        run: as in ``measure_influence``.
        generator: draws the directions.
        sequence: whose tokens.
        of_encoder: whether only the encoder's stages are wanted, where there is a decoder beside it.
        edits: as in ``record``.

    Returns:
        By path, (rows, T) bool, for the embeddings and every later stage in the order computed. Those
        ``of_pairs`` are left out: their blocked cells hold both tokens of the pair by design.

    Raises:
        ValueError: as in ``measure_influence``.
    """
    forward = _first_pass(model, run, edits or {}, sequence)
    paths = list(forward.trace)
    stack = "encoder." if of_encoder else ""
    after = paths[paths.index(forward.entry) :]
    later = [path for path in after if path.startswith(stack) and not of_pairs(forward.trace[path])]
    like = forward.embedded
    directions = torch.randn(like.shape[-2:], generator=generator, dtype=like.dtype, device=like.device)

    def dependent_rows(derivative: _Derivative, chunk: range) -> list[Tensor]:
        one_token_each = F.one_hot(torch.tensor(chunk), len(directions))[:, None, :, None] * directions
        return [_rows_not_zero(pushed) for pushed in derivative.push(one_token_each)]

    with closing(_each_chunk(forward, later, _chunks(len(directions), forward.trace), dependent_rows)) as parts:
        columns = [part for _, part in parts]
    return {path: torch.cat(of_path).T for path, of_path in zip(later, zip(*columns, strict=True), strict=True)}


def judge(influence: Influence, allowed: Mapping[str, Tensor]) -> tuple[Verdict, ...]:
    """The verdict on each output.

    Args:
        influence: what was measured.
        allowed: by path, (rows, T) bool, True = the row may depend on the token: ``allowed_dependence``, or
            ``causal(T, T)`` for each path where all that matters is that no later token is seen.
    """
    measured = zip(influence.paths, influence.norms, strict=True)
    return tuple(_verdict(path, norms, ~allowed[path]) for path, norms in measured)


def first_leak(dependence: Mapping[str, Tensor], allowed: Mapping[str, Tensor]) -> Leak | None:
    """The first stage at which a row depends on what it must not; None where there is none.

    Args:
        dependence: ``measure_dependence``.
        allowed: as in ``judge``, for each path of ``dependence``.
    """
    for path, depends in dependence.items():
        for row, token in (depends & ~allowed[path]).nonzero().tolist():
            return Leak(path, row, token)
    return None


def _verdict(path: str, norms: Tensor, forbidden: Tensor) -> Verdict:
    leaks = norms.masked_fill(~forbidden, 0.0)
    n_forbidden, n_leaking = int(forbidden.sum()), int((leaks != 0).sum())
    if n_leaking == 0:
        return Verdict(path, n_forbidden, 0, 0.0, None)
    row, token = divmod(int(leaks.argmax()), leaks.shape[-1])
    return Verdict(path, n_forbidden, n_leaking, float(leaks[row, token]), (row, token))


@dataclass(frozen=True, eq=False)
class _ForwardPass:
    """A pass that can be repeated with other embeddings at ``entry``."""

    model: TracedModule
    run: Callable[[], object]
    edits: Mapping[str, Edit]
    entry: str
    trace: Trace

    @property
    def embedded(self) -> Tensor:
        """The input of the first layer, (1, T, D)."""
        return self.trace[self.entry].value

    def repeated(self, embedded: Tensor) -> Trace:
        """The pass with these embeddings."""
        with record(self.model, {**self.edits, self.entry: replace(embedded)}) as trace:
            self.run()
        return trace


def _first_pass(
    model: TracedModule, run: Callable[[], object], edits: Mapping[str, Edit], sequence: SequenceName
) -> _ForwardPass:
    if any(isinstance(module, Dropout) and module.active for module in model.modules()):
        raise ValueError("dropout is active, so that no two passes are the same: measure in evaluation mode")
    with torch.no_grad(), record(model, edits) as trace:
        run()
    entry = entry_path(trace, sequence)
    if (n_sequences := len(trace[entry].value)) != 1:
        raise ValueError(f"the batch holds {n_sequences} sequences: measure one at a time")
    return _ForwardPass(model, run, edits, entry, trace)


@dataclass(frozen=True, eq=False)
class _Derivative:
    """The derivative of stages at one input, ready to be applied to directions.

    Reverse mode turns cotangents u into the sum of J_o^T u_o over the stages o. As that is linear in u, to
    differentiate it by u, in reverse mode again, along a direction of the input gives J_o times the direction, for
    all stages at once (Townsend, "A new trick for calculating Jacobian vector products", 2017). PyTorch's forward
    mode gives the same, but has one level for the whole process, which a thread that is done closes for all.

    Attributes:
        pulled_back: the sum, (1, T, D), as a function of the cotangents.
        cotangents: one per stage, of its shape; their values do not matter.
    """

    pulled_back: Tensor
    cotangents: tuple[Tensor, ...]

    def push(self, directions: Tensor) -> tuple[Tensor, ...]:
        """Directions of the input (n, 1, T, D) to those of each stage (n, *its shape)."""

        def push_one(direction: Tensor) -> tuple[Tensor, ...]:
            return torch.autograd.grad(
                self.pulled_back, self.cotangents, direction, retain_graph=True, materialize_grads=True
            )

        pushed: tuple[Tensor, ...] = torch.func.vmap(push_one)(directions)
        return pushed


def _derivative(forward: _ForwardPass, outputs: Sequence[str]) -> _Derivative:
    """The derivative of the stages at ``outputs`` with respect to the embeddings."""
    with torch.inference_mode(False), torch.enable_grad():
        embedded = forward.embedded.clone().requires_grad_()
        trace = forward.repeated(embedded)
        stages = [trace[path].value for path in outputs]
        cotangents = tuple(torch.zeros_like(stage, requires_grad=True) for stage in stages)
        dependent = [pair for pair in zip(stages, cotangents, strict=True) if pair[0].requires_grad]
        values, their_cotangents = zip(*dependent, strict=True)
        (pulled_back,) = torch.autograd.grad(values, embedded, their_cotangents, create_graph=True)
    return _Derivative(pulled_back, cotangents)


def _chunks(n_directions: int, trace: Trace) -> list[range]:
    """The directions in as many parts as keep the memory small."""
    size = max(1, _CHUNK_BYTES // max(stage.value.nbytes for stage in trace.values()))
    return [range(start, min(start + size, n_directions)) for start in range(0, n_directions, size)]


def _each_chunk(
    forward: _ForwardPass,
    outputs: Sequence[str],
    chunks: Sequence[range],
    work: Callable[[_Derivative, range], _Part],
) -> Generator[tuple[range, _Part], None, None]:
    """Yield what ``work`` makes of each chunk, in their order, from several threads.

    Each thread uses a derivative of its own, as a node of PyTorch's graph serves one thread at a time. PyTorch
    releases the interpreter while it computes.
    """
    _keep_freed_memory()
    n_threads = min(os.cpu_count() or 1, len(chunks), _threads_in_memory(forward.trace))
    idle: SimpleQueue[_Derivative] = SimpleQueue()
    for _ in range(n_threads):
        idle.put(_derivative(forward, outputs))

    def work_on(chunk: range) -> _Part:
        derivative = idle.get()
        try:
            return work(derivative, chunk)
        finally:
            idle.put(derivative)

    pool = ThreadPoolExecutor(n_threads)
    try:
        yield from zip(chunks, pool.map(work_on, chunks), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def _threads_in_memory(trace: Trace) -> int:
    """Return the number of threads that have memory for a derivative each; at least one."""
    in_each = _BYTES_PER_TRACED * sum(stage.value.nbytes for stage in trace.values())
    return max(1, min(_MOST_THREADS, int(_MOST_BYTES / in_each)))


def _squared_norms(derivative: _Derivative, chunk: range) -> Tensor:
    """Return each input direction's squared norm in each row of each output, (n_outputs, rows, n) float64.

    Squares of small float32 numbers would vanish in float32.
    """
    embedded = derivative.pulled_back
    directions = F.one_hot(torch.tensor(chunk), embedded.numel()).to(embedded.dtype)
    pushed = derivative.push(directions.view(-1, *embedded.shape))
    return torch.stack([output[:, 0].double().square().sum(-1).T for output in pushed])


def _rows_not_zero(pushed: Tensor) -> Tensor:
    """(n, ..., rows, width) -> (n, rows) bool: whether a row holds anything but zeros, in whichever head."""
    return (pushed != 0).any(-1).reshape(len(pushed), -1, pushed.shape[-2]).any(1)


def _keep_freed_memory() -> None:
    """Let the allocator keep what is freed for what comes next.

    glibc hands blocks above a threshold back to the system, and up to a third of the time would go into getting
    them again. The threshold rises to the largest such block that was freed, at most 32 MiB (mallopt(3),
    M_MMAP_THRESHOLD).
    """
    torch.empty(_KEPT_BYTES, dtype=torch.uint8)
