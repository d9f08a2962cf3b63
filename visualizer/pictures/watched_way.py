"""The picture of one token's way through a watched model: its residual stream, taken apart, as labelled arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headlight.contributions import Contributions, Place, Stream, Term
from headlight.findings import is_cross, is_cross_path, is_of_decoder
from model.texts import texts_of
from visualizer.components.axis import Axis, SequenceName
from visualizer.components.token_way.element import Part, Stop, TokenWay
from visualizer.pictures.token_way import MOST_NUMBERS, MOST_WEIGHTS, N_LIKELY, Taken
from visualizer.runs.watched import WatchedRun, plane
from visualizer.safe_text import visible_whole
from visualizer.stages.panels import to_array

say = texts_of(__name__)

MOST_PRODUCTS = 10**10
"""So many products of the logit lens are computed at most; of more, for fewer tokens."""


@dataclass(eq=False)
class _Added:
    """The terms added at one stop, and the stream after it."""

    path: str
    terms: list[Term]
    sum: Tensor
    read: Tensor
    places: list[Place] = field(default_factory=list)


def take_apart(run: WatchedRun, found: Contributions, stream: Stream, item: int, query: int) -> Taken:
    """The ways of a token and of those around it, as many as stay within bounds."""
    first = run.attention(found.attentions_of(stream)[0])
    labels = run.labels(first, item)[0] or tuple(map(str, range(first.shape[2])))
    window = _window(run, found, stream, query, len(labels))
    norms: dict[Term, Tensor] = {}
    shares: dict[Term, Tensor] = {}
    added: list[_Added] = []
    difference, n_places, place = 0.0, 0, None
    for place in found.places(stream, item=item, tokens=window):
        difference, n_places = max(difference, place.difference), n_places + 1
        new = [(term, part) for term, part in zip(place.terms, place.parts, strict=True) if term not in norms]
        along = (place.stream * place.stream).sum(-1).clamp(min=1e-30)
        norms |= {term: part.norm(dim=-1) for term, part in new}
        shares |= {term: (part * place.stream).sum(-1) / along for term, part in new}
        _note(added, place, [term for term, _ in new], stream)
    if place is None:
        raise ValueError(f"nothing was added to {stream.path}")
    numbers = {term: i for i, term in enumerate(norms)}
    likely, probabilities, logits = _predicted(found, stream, added, place, list(norms))
    ids = [] if likely is None else sorted(set(likely.reshape(-1).tolist()))
    sequence: SequenceName = "target" if is_of_decoder(first.module) and run.trace.texts.decoder else "source"
    way = TokenWay(
        tokens=Axis("query", tuple(map(visible_whole, labels)), sequence),
        first=window.start,
        parts=tuple(_part(found, term) for term in norms),
        stops=tuple(_stop(run, found, one, numbers, norms, item, window) for one in added),
        norms=to_array(torch.stack(list(norms.values()))),
        shares=to_array(torch.stack(list(shares.values()))),
        logits=None if logits is None else to_array(logits),
        sums=to_array(torch.stack([one.sum.norm(dim=-1) for one in added])),
        streams=to_array(torch.stack([one.read.norm(dim=-1) for one in added])),
        likely=None if likely is None else likely.int().numpy(),
        probabilities=None if probabilities is None else to_array(probabilities),
        vocabulary=dict(zip(ids, _texts(run, ids), strict=True)),
        end=(say("end"), stream.path) if likely is None else (say("prediction"), found.answer_of(stream) or ""),
        expects_next=run.causal is True or is_of_decoder(first.module),
    )
    return Taken(way, difference, n_places)


def _window(run: WatchedRun, found: Contributions, stream: Stream, query: int, n_tokens: int) -> slice:
    """The tokens around the chosen one whose numbers stay within bounds."""
    attentions = [run.attention(path) for path in found.attentions_of(stream)]
    width = run.trace.stages[stream.path].value.shape[-1]  # type: ignore[union-attr]
    n_terms = sum(one.n_heads + 4 for one in attentions)
    n_weights = sum(one.n_heads * one.shape[3] for one in attentions)
    bounds = [n_tokens, MOST_NUMBERS // (n_terms * width), MOST_WEIGHTS // n_weights]
    if answer := found.answer_of(stream):
        n_known = run.trace.stages[answer].value.shape[-1]  # type: ignore[union-attr]
        bounds.append(MOST_PRODUCTS // (2 * len(attentions) * n_known * width))
    most = max(1, min(bounds))
    first = min(max(0, query - most // 2), n_tokens - most)
    return slice(first, first + most)


def _note(added: list[_Added], place: Place, new: list[Term], stream: Stream) -> None:
    """Add a place to the stops: one for what there was before the first layer, then one for each addition."""
    if not place.adds:
        if place.path == stream.end or place.path != stream.path:  # the last norm belongs to no layer
            added[-1].read = place.stream
    elif len(added) == 1 and all(term.kind in ("embedding", "bias", "other") for term in (*added[0].terms, *new)):
        added[0] = _Added(place.path, [*added[0].terms, *new], place.stream, place.stream)
    else:
        added.append(_Added(place.path, new, place.stream, place.stream))


def _stop(
    run: WatchedRun,
    found: Contributions,
    added: _Added,
    numbers: dict[Term, int],
    norms: dict[Term, Tensor],
    item: int,
    window: slice,
) -> Stop:
    drawn = tuple(numbers[term] for term in added.terms if term.kind != "bias" or bool(norms[term].max() > 0))
    head = next((term for term in added.terms if term.kind == "head"), None)
    title = _title(found, added.terms)
    if head is None:
        return Stop(title, added.path, drawn)
    attention = run.attention(found.attention_of(head))
    if attention.weights is None:
        raise ValueError(f"no weights of {attention.path} were kept")
    keys = run.labels(attention, item)[1] or tuple(map(str, range(attention.shape[3])))
    decoder = is_of_decoder(attention.module) and not is_cross(attention) and run.trace.texts.decoder
    axis = Axis("key", tuple(map(visible_whole, keys)), "target" if decoder else "source")
    return Stop(title, added.path, drawn, axis, to_array(plane(attention.weights, item)[:, window]))


def _title(found: Contributions, terms: Sequence[Term]) -> str:
    """``layer 3 · self-attention``; the module where a part has no layer."""
    writers = [term for term in terms if term.kind != "bias"]
    if not writers or all(term.kind == "embedding" for term in writers):
        return say("input")
    names = dict.fromkeys(_name_of(found, term) for term in writers)
    number = re.search(r"(?:^|\.)(\d+)\.", writers[0].path)
    joined = say("and").join(names)
    return say("layer", layer=number[1], what=joined) if number else joined


def _name_of(found: Contributions, term: Term) -> str:
    if term.kind != "head":
        return say("feed_forward") if term.kind == "feed_forward" else visible_whole(_module(term.path))
    return say("cross") if is_cross_path(found.attention_of(term)) else say("self")


def _module(path: str) -> str:
    """The last part of the module's path that is no number: ``block.0.mlp.add`` -> ``mlp``."""
    names = [name for name in path.split(".")[:-1] if not name.isdigit()]
    return names[-1] if names else path


def _part(found: Contributions, term: Term) -> Part:
    if term.head is not None:
        return Part("head", say("head", head=term.head), found.attention_of(term), term.head)
    if term.kind == "bias":
        return Part("bias", say("bias", name=visible_whole(_module(term.path))), term.path)
    return Part(term.kind, visible_whole(_module(term.path)), term.path)


def _predicted(
    found: Contributions, stream: Stream, added: Sequence[_Added], last: Place, terms: Sequence[Term]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The most likely tokens at each stop, theirs, and what is left of each part in the logit of the first one."""
    if found.answer_of(stream) is None:
        return None, None, None
    streams = torch.stack([one.read for one in added])
    answers = found.lens(stream, streams.flatten(0, 1)).float().softmax(-1)
    best = answers.topk(min(N_LIKELY, answers.shape[-1]), dim=-1)
    shape = (*streams.shape[:2], -1)
    indices, values = best.indices.view(shape), best.values.view(shape)
    matrix = found.unembedding_of(stream)
    if matrix is None:
        return indices, values, None
    parts = dict(zip(last.terms, last.parts, strict=True))
    chosen = matrix[indices[-1, :, 0]].double()
    return indices, values, torch.stack([(parts[term] * chosen).sum(-1) for term in terms])


def _texts(run: WatchedRun, ids: Sequence[int]) -> Sequence[str]:
    return tuple(map(str, ids)) if run.texts_of_ids is None else run.texts_of_ids(ids)
