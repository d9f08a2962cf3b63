"""The sequence that a model wrote, step by step, and how much of it was already there when the settings changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from model.decoding import BeamTree, Read, Sampling, Step, Tokens, beam_search, decode, next_logits, rechosen
from model.tracing import Stage, Trace
from visualizer.runs.writer import ROUNDING, Readers, Writer

ROUNDING_OF_FLOAT64 = 1e-12
"""Up to this, relative to the largest, numbers in float64 count as the same."""


@dataclass(frozen=True)
class OneByOne:
    """One sequence, token by token.

    Attributes:
        sampling: how a token is chosen.
        limit: the most tokens.
        cached: whether keys and values are kept from step to step.
    """

    sampling: Sampling
    limit: int
    cached: bool = False


@dataclass(frozen=True)
class Beam:
    """Several sequences side by side.

    Attributes:
        width: how many.
        length_penalty: alpha of ``beam_search``.
        limit: the most tokens.
    """

    width: int
    length_penalty: float
    limit: int


@dataclass(frozen=True)
class Difference:
    """The difference between two ways to compute the same steps.

    Attributes:
        probabilities: the largest difference of two probabilities.
        logits: the same of two logits.
        largest_logit: what a difference of logits is to be compared with.
        rounding: up to this, relative to the largest logit, the numbers count as the same.
        in_float64: the largest difference of two logits in float64, where that was needed to tell what it is.
    """

    probabilities: float
    logits: float
    largest_logit: float
    rounding: float = ROUNDING
    in_float64: float | None = None

    @property
    def is_rounding(self) -> bool:
        """True if the difference is no more than rounding makes."""
        size = max(1.0, self.largest_logit)
        if self.in_float64 is not None:
            return self.in_float64 <= ROUNDING_OF_FLOAT64 * size
        return max(self.probabilities, self.logits) <= self.rounding * size


@dataclass(frozen=True, eq=False)
class Continuation:
    """A sequence that was written.

    Attributes:
        steps: one for each token.
        n_kept: how many of the steps have their logits from the writing before.
        differs_at: the step that then chose otherwise; None where none did.
        difference: from the same steps without a key/value cache; None where there is no cache.
    """

    steps: tuple[Step, ...]
    n_kept: int
    differs_at: int | None
    difference: Difference | None

    @property
    def tokens(self) -> Tokens:
        """The tokens that were written, without the prompt."""
        return tuple(step.token for step in self.steps)

    @property
    def n_bytes(self) -> int:
        """The memory of all traces."""
        return sum(stage.value.nbytes for step in self.steps for stage in step.trace.values())


def write(writer: Writer, how: OneByOne, before: Continuation | None = None) -> Continuation:
    """Write one sequence; steps of a writing before are chosen anew from their logits as far as they hold.

    Args:
        writer: the model.
        how: the way to choose.
        before: what the same writer wrote under another sampling or limit, with or without a cache as ``how``.

    Raises:
        ValueError: a mask lets a token see a later one, and there is a cache; or what ``decode`` raises.
    """
    old = () if before is None else before.steps[: how.limit]
    sampling = replace(how.sampling, never=writer.never)
    same = rechosen(old, sampling)
    read = Sparing(writer.reader(cached=how.cached), for_cache=how.cached)
    new = decode(read, writer.prompt, sampling, end=writer.end, limit=how.limit, taken=same.steps)
    steps = (*same.steps, *new)
    difference = largest_difference(writer, steps) if how.cached else None
    return Continuation(steps, len(same.steps), same.differs_at, difference)


def search(writer: Writer, how: Beam) -> BeamTree:
    """The tree of a beam search, without its traces."""
    read = Sparing(writer.reader(cached=False), for_cache=False)
    tree = beam_search(
        read,
        writer.prompt,
        how.width,
        end=writer.end,
        limit=how.limit,
        length_penalty=how.length_penalty,
        never=writer.never,
    )
    return BeamTree(tuple(replace(node, trace=None) for node in tree.nodes))


def largest_difference(writer: Writer, steps: tuple[Step, ...]) -> Difference:
    """Return the difference of the steps from those of a reader that computes everything each time.

    Scores in the dozens make much of float32's rounding: a larger difference is looked at again in float64.
    """
    read = writer.reader(cached=False)
    pairs = [(step.logits.double(), next_logits(read(step.tokens, None)).double()) for step in steps]
    found = Difference(
        probabilities=max(_distance(own.softmax(0), plain.softmax(0)) for own, plain in pairs),
        logits=max(_distance(own, plain) for own, plain in pairs),
        largest_logit=max(float(plain.abs().max()) for _, plain in pairs),
        rounding=writer.rounding,
    )
    if found.is_rounding or writer.exact_readers is None:
        return found
    return replace(found, in_float64=_largest_in_turn(writer.exact_readers(), steps))


def _largest_in_turn(readers: Readers, steps: tuple[Step, ...]) -> float:
    """Return the largest difference of two logits as a reader with a cache and one without read the same steps."""
    cached, plain = readers(True), readers(False)
    largest, before = 0.0, None
    for step in steps:
        before = cached(step.tokens, before)
        largest = max(largest, _distance(next_logits(before), next_logits(plain(step.tokens, None))))
    return largest


def _distance(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


@dataclass(frozen=True)
class Sparing:
    """A reader whose traces hold little, so that those of many steps can be kept.

    Attributes:
        read: the reader.
        for_cache: whether to keep the keys and values too.
    """

    read: Read
    for_cache: bool

    def __call__(self, tokens: Tokens, before: Trace | None = None) -> Trace:
        """Record a pass, and keep of it the last token's logits and attention weights."""
        stages = self.read(tokens, before).items()
        small = {path: _last_row(stage) for path, stage in stages if _is_drawn(path)}
        if self.for_cache:
            small |= {path: stage for path, stage in stages if _is_cached(path)}
        return Trace(small)


def _is_drawn(path: str) -> bool:
    return path == "logits" or (path.startswith("decoder.") and path.endswith("_attention.weights"))


def _is_cached(path: str) -> bool:
    """True if a stage is needed to read on, or to see which rows were computed."""
    return path.startswith("decoder.") and path.rpartition(".")[2] in ("k", "v", "k_proj")


def _last_row(stage: Stage) -> Stage:
    value = stage.value[..., -1:, :].clone()
    symbol, _ = stage.dims[-2]
    return replace(stage, value=value, dims=(*stage.dims[:-2], (symbol, 1), stage.dims[-1]))
