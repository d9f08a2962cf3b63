"""The picture of one token's way: a residual stream of a run, taken apart, as labelled arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from headlight.contexts import Context
from headlight.graph import NOT_COMPUTED
from headlight.residual_stream.contributions import Contributions, contributions_of
from headlight.residual_stream.streams import Stream
from headlight.residual_stream.terms import Place, Term
from model.dataflow import Constant, n_shared
from model.texts import listed, texts_of
from visualizer.components.axis import Axis, SequenceName
from visualizer.components.packing import Precision
from visualizer.components.token_way.element import Numbers, Part, Stop, TokenWay, packed_way
from visualizer.runs.paths import attention_modules, number_in
from visualizer.runs.run import Run
from visualizer.runs.watched import plane
from visualizer.safe_text import visible_whole
from visualizer.stages.check_line import check_line
from visualizer.stages.checks import TOLERANCE, Check, is_exact
from visualizer.stages.operands import wirings
from visualizer.stages.panels import to_array

say = texts_of(__name__)

_OF_OTHERS, _ROUNDED = 1e-4, 5e-2
"""The tolerance for other models: in full precision, and in less."""

MOST_NUMBERS = 4_000_000
"""So many numbers are taken apart at most; of more, the tokens around the chosen one."""

MOST_WEIGHTS = 1_000_000
MOST_PRODUCTS = 10**10
"""So many products of the logit lens are computed at most; of more, for fewer tokens."""

N_LIKELY = 5
_KINDS = {"embedding": say("embedding"), "position": say("position"), "feed_forward": say("feed_forward")}


class NotFollowedError(ValueError):
    """The operations of another model cannot be followed back, said in one sentence."""


@dataclass(frozen=True, eq=False)
class FollowedStream:
    """A residual stream of a run, and what the picture shows of the run beside it.

    Attributes:
        found: the operations of the run.
        stream: one of its streams.
        item: the sequence of the batch.
        tokens: those of the stream.
        read: of an attention that writes to it, by its path, the keys and the weights, (1 or H, Tq, Tk).
        crosses: whether it attends to another sequence, by its path.
        head_label: what a head is called, by its number.
        vocabulary: the text of every token id; empty where it is not known.
        end: what follows the last stop: a title, and the stage that it leads to.
        expects_next: whether the run predicts what follows a token; else it answers at the token.
        tolerance: the largest difference of the sum from the stream, relative to its largest number.
    """

    found: Contributions
    stream: Stream
    item: int
    tokens: Axis
    read: Callable[[str], tuple[Axis, Tensor]]
    crosses: Callable[[str], bool]
    head_label: Callable[[int], str]
    vocabulary: Sequence[str]
    end: tuple[str, str]
    expects_next: bool
    tolerance: float


@dataclass(frozen=True, eq=False)
class Taken:
    """The picture, and the largest relative difference between the sum of the terms and the stream at any place."""

    way: TokenWay
    difference: float
    n_places: int
    tolerance: float

    def check(self) -> Check:
        """The sum of the parts, held against the stream."""
        places = say("one_place") if self.n_places == 1 else say("places", n_places=self.n_places)
        said = say("sums", n_parts=len(self.way.parts), places=places, difference=self.difference)
        return Check(said, self.difference <= self.tolerance)

    def packed(self, precision: Precision) -> bytes:
        """The bytes that the browser draws."""
        return packed_way(self.way, precision=precision)

    def caption(self, check: Check, more: str = "") -> str:
        """The line below the picture: the check, and the tokens that the arrow keys reach, where not all."""
        first, n_drawn = self.way.first, self.way.norms.shape[1]
        is_whole = n_drawn == len(self.way.tokens.labels)
        keys = "" if is_whole else say("arrow_keys", first=first, last=first + n_drawn - 1)
        return f"{check_line(check)}{more}{keys}"


def stacks_of(run: Run) -> tuple[str, ...]:
    """The residual streams of a run, the longest first, each by the first attention that writes to it."""
    found = contributions_in(run)
    return tuple(found.attentions_of(stream)[0] for stream in found.streams)


def stack_of(run: Run, stage: str) -> str | None:
    """The stream of a stage, else the one that the answer is read from; None where there is no residual stream."""
    found, near = contributions_in(run), _attention_near(run, stage)
    streams = dict(zip(stacks_of(run), found.streams, strict=True))
    of_stage = (stack for stack, stream in streams.items() if near in found.attentions_of(stream))
    answering = (stack for stack, stream in streams.items() if found.lens.answer_of(stream) is not None)
    return next(chain(of_stage, answering, streams), None)


def _attention_near(run: Run, stage: str) -> str | None:
    """The attention that is nearest to a stage; None where none is near."""
    if run.seen is not None:
        near = run.seen.attention_near(stage)
        return None if near is None else near.path
    module = max(attention_modules(run.trace), key=lambda one: n_shared(one, stage), default="")
    return f"{module}.weights" if n_shared(module, stage) else None


def taken_at(run: Run, stack: str, query: int) -> Taken:
    """The ways of a token, or the last one, and of those around it, taken apart once for a run.

    Raises:
        NotFollowedError: as it says.
    """
    try:
        followed = followed_in(run, stack)
        window = window_of(followed, query)
        return run.once(("token_way", stack, followed.item, window.start), lambda: take_apart(followed, window))
    except NOT_COMPUTED as error:
        if run.seen is None:
            raise
        raise NotFollowedError(say("not_followed")) from error


def followed_in(run: Run, stack: str) -> FollowedStream:
    """One stream of a run, in the sequence that is looked at."""
    found, seen = contributions_in(run), run.seen
    stream = found.streams[stacks_of(run).index(stack)]
    tokens, answer = _read(run, stack)[0], found.lens.answer_of(stream)
    if seen is None:
        expects_next, tolerance = run.settings.architecture != "encoder", TOLERANCE
    else:
        is_causal = not seen.looking_ahead if seen.causal is None else seen.causal
        expects_next = is_causal or seen.trace[stack].is_decoding
        weights = filter(Tensor.is_floating_point, seen.trace.parameters.values())
        exactly = all(map(is_exact, (run.trace[stream.path].value, *weights)))  # a norm may give float32
        tolerance = _OF_OTHERS if exactly else _ROUNDED
    is_read_on = "target" in run.batches and tokens.sequence == "source"
    end = (say("to_the_decoder") if is_read_on else say("end"), stream.path)
    return FollowedStream(
        found,
        stream,
        0 if seen is None else run.item,
        tokens=tokens,
        read=lambda path: _read(run, path)[1:],
        crosses=lambda path: _crosses(run, path),
        head_label=run.head_label,
        vocabulary=run.vocabulary,
        end=end if answer is None else (say("prediction"), answer if seen else "probabilities"),
        expects_next=expects_next,
        tolerance=tolerance,
    )


def _read(run: Run, path: str) -> tuple[Axis, Axis, Tensor]:
    """The queries and the keys of an attention, and its weights, (1 or H, Tq, Tk)."""
    if run.seen is None:
        return *run.axes(path), run.trace[path].value[0]
    attention = run.seen.trace[path]
    if attention.weights is None:
        raise ValueError(f"no weights of {attention.path} were kept")
    labels = run.seen.labels(attention, run.item)
    queries, keys = (
        known or tuple(map(str, range(size))) for known, size in zip(labels, attention.shape[2:], strict=True)
    )
    is_target = attention.is_decoding and "target" in run.batches
    return (
        _axis("query", queries, is_target),
        _axis("key", keys, is_target and not attention.is_cross),
        plane(attention.weights, run.item),
    )


def _crosses(run: Run, path: str) -> bool:
    if run.seen is None:
        return run.is_cross_attention(path.rpartition(".")[0])
    return run.seen.trace[path].is_cross


def contributions_in(run: Run) -> Contributions:
    """The operations of a run, to be followed back."""
    return (run.seen or run).once("contributions", lambda: _contributions(run))


def _contributions(run: Run) -> Contributions:
    if run.seen is not None:
        return contributions_of(run.seen.trace, len(run.vocabulary) or None)
    if not any(path.endswith(".residual1") for path in run.trace):
        return Contributions({}, {}, {}, {})
    nodes = {path: wiring.node for path, wiring in wirings(run).items()}
    return Contributions(
        {path: None if isinstance(node, Constant) else node for path, node in nodes.items()},
        {path: stage.value for path, stage in run.trace.items()},
        run.parameters,
        {f"{module}.context": _context(run, module) for module in attention_modules(run.trace)},
    )


def _context(run: Run, module: str) -> Context:
    weights = f"{module}.weights"
    n_items, n_heads, n_tokens, _ = run.trace[weights].value.shape
    return Context(f"{module}.context", weights, n_heads, (n_items, n_tokens))


def _axis(name: str, labels: Sequence[str], is_target: bool) -> Axis:
    sequence: SequenceName = "target" if is_target else "source"
    return Axis(name, tuple(map(visible_whole, labels)), sequence)


def window_of(followed: FollowedStream, query: int) -> slice:
    """The tokens around the chosen one, or the last one, whose numbers stay within bounds."""
    found, stream, n_tokens = followed.found, followed.stream, len(followed.tokens.labels)
    shapes = [followed.read(path)[1].shape for path in found.attentions_of(stream)]
    width = found.width_of(stream.path)
    n_terms = sum(n_heads + 5 for n_heads, _, _ in shapes)
    n_weights = sum(n_heads * n_keys for n_heads, _, n_keys in shapes)
    bounds = [n_tokens, MOST_NUMBERS // (n_terms * width), MOST_WEIGHTS // n_weights]
    if answer := found.lens.answer_of(stream):
        bounds.append(MOST_PRODUCTS // (2 * len(shapes) * found.width_of(answer) * width))
    most = max(1, min(bounds))
    first = max(0, min(query - most // 2, n_tokens - most))
    return slice(first, first + most)


def take_apart(followed: FollowedStream, window: slice) -> Taken:
    """The ways of the tokens of ``window``."""
    stream = followed.stream
    numbers: dict[Term, int] = {}
    parts: list[Part] = []
    norms: list[Tensor] = []
    shares: list[Tensor] = []
    stops: list[Stop] = []
    sums: list[Tensor] = []
    read: list[Tensor] = []
    difference, n_places, place = 0.0, 0, None
    for place in followed.found.places(stream, item=followed.item, tokens=window):
        difference, n_places = max(difference, place.difference), n_places + 1
        new = [i for i, term in enumerate(place.terms) if term not in numbers]
        terms, added = [place.terms[i] for i in new], place.parts[new]
        numbers |= {term: len(numbers) + i for i, term in enumerate(terms)}
        parts += _parts(followed, terms)
        norms.append(added.norm(dim=-1))
        along = (place.stream * place.stream).sum(-1).clamp(min=1e-30)
        shares.append((added * place.stream).sum(-1) / along)
        if place.adds:
            is_drawn = (norms[-1].amax(-1) > 0).tolist()
            drawn = [
                numbers[term]
                for term, is_there in zip(terms, is_drawn, strict=True)
                if is_there or term.kind not in ("bias", "position")
            ]
            stops.append(_stop(followed, place.path, terms, tuple(drawn), window))
            sums.append(place.stream.norm(dim=-1))
            read.append(place.stream)
        elif place.path == stream.end or place.path != stream.path:  # the last norm belongs to no layer
            read[-1] = place.stream
    if place is None:
        raise ValueError(f"nothing was added to {stream.path}")
    likely, probabilities, logits = _predicted(followed, torch.stack(read), place, numbers)
    ids = [] if likely is None else sorted(set(likely.reshape(-1).tolist()))
    way = TokenWay(
        tokens=followed.tokens,
        first=window.start,
        parts=tuple(parts),
        stops=tuple(stops),
        norms=to_array(torch.cat(norms)),
        shares=to_array(torch.cat(shares)),
        logits=logits,
        sums=to_array(torch.stack(sums)),
        streams=to_array(torch.stack(read).norm(dim=-1)),
        likely=None if likely is None else likely.int().numpy(),
        probabilities=probabilities,
        vocabulary={one: followed.vocabulary[one] if followed.vocabulary else str(one) for one in ids},
        end=followed.end,
        expects_next=followed.expects_next,
    )
    return Taken(way, difference, n_places, followed.tolerance)


def _stop(
    followed: FollowedStream, path: str, terms: Sequence[Term], parts: tuple[int, ...], window: slice
) -> Stop:
    title, layer = _title(followed, terms)
    head = next((term for term in terms if term.kind == "head"), None)
    if head is None:
        return Stop(title, path, parts, layer=layer)
    keys, weights = followed.read(followed.found.attention_of(head))
    return Stop(title, path, parts, keys, to_array(weights[:, window]), layer)


def _title(followed: FollowedStream, terms: Sequence[Term]) -> tuple[str, int | None]:
    """``layer 3 · self-attention`` and 3; the module and None where a part has no layer."""
    writers = [term for term in terms if term.kind != "bias"]
    if not writers or all(term.kind in ("embedding", "position") for term in writers):
        return say("input"), None
    names = dict.fromkeys(_name_of(followed, term) for term in writers)
    number = number_in(writers[0].path)
    joined = listed(names)
    return joined if number is None else say("layer", layer=number, what=joined), number


def _name_of(followed: FollowedStream, term: Term) -> str:
    if term.kind != "head":
        return say("feed_forward") if term.kind == "feed_forward" else _module(term.path)
    return say("cross") if followed.crosses(followed.found.attention_of(term)) else say("self")


def _parts(followed: FollowedStream, terms: Sequence[Term]) -> Iterator[Part]:
    """The terms that were added at one place: what is the only one of its kind there is called by that."""
    found, counts = followed.found, Counter(term.kind for term in terms)
    for term in terms:
        if term.head is not None:
            yield Part("head", followed.head_label(term.head), found.attention_of(term), term.head)
        elif term.kind == "bias":
            yield Part("bias", say("bias", name=_module(term.parameter or term.path)), term.path)
        else:
            is_named = term.kind == "other" or counts[term.kind] > 1
            path = found.scaled(term, followed.stream) if term.kind == "embedding" else term.path
            yield Part(term.kind, _module(term.path) if is_named else _KINDS[term.kind], path)


def _module(path: str) -> str:
    """The last part of the module's path that is no number: ``block.0.mlp.add`` -> ``mlp``."""
    names = [name for name in path.split(".")[:-1] if not name.isdigit()]
    return visible_whole(names[-1] if names else path)


def _predicted(
    followed: FollowedStream, streams: Tensor, last: Place, numbers: dict[Term, int]
) -> tuple[Tensor | None, Numbers | None, Numbers | None]:
    """The most likely tokens at each stop, theirs, and what is left of each part in the logit of the first one."""
    found, stream = followed.found, followed.stream
    if found.lens.answer_of(stream) is None:
        return None, None, None
    answers = found.lens.logits(stream, streams.flatten(0, 1)).float().softmax(-1)
    best = answers.topk(min(N_LIKELY, answers.shape[-1]), dim=-1)
    shape = (*streams.shape[:2], -1)
    indices, values = best.indices.view(shape), to_array(best.values.view(shape))
    matrix = found.lens.unembedding_of(stream)
    if matrix is None:
        return indices, values, None
    order = [last.terms.index(term) for term in numbers]
    logits = torch.einsum("ntd,td->nt", last.parts[order], matrix[indices[-1, :, 0]].double())
    return indices, values, to_array(logits)
