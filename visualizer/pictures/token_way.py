"""The picture of one token's way: a run, taken apart, as labelled arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.analysis.contributions import Place, Stack, Term, lens, places, stacks_of
from model.texts import texts_of
from visualizer.components.token_way.element import Part, Stop, TokenWay
from visualizer.runs.paths import layer_of
from visualizer.runs.run import Run
from visualizer.stages.panels import to_array

say = texts_of(__name__)

MOST_NUMBERS = 4_000_000
"""So many numbers are taken apart at most; of more, the tokens around the chosen one."""

MOST_WEIGHTS = 1_000_000
N_LIKELY = 5


@dataclass(frozen=True, eq=False)
class Taken:
    """The picture, and the largest relative difference between the sum of the terms and the stream at any place."""

    way: TokenWay
    difference: float
    n_places: int


def stack_of(run: Run, stage: str) -> Stack | None:
    """The part of the model that a stage belongs to, else the last one; None where there is no residual stream."""
    stacks = stacks_of(run.trace)
    return next((stack for stack in stacks if stage.startswith(f"{stack}.")), stacks[-1] if stacks else None)


def taken_at(run: Run, stack: Stack, query: int) -> Taken:
    """The ways of a token and of those around it, taken apart once for a run."""
    window = window_of(run, stack, query)
    return run.once(("token_way", stack, window.start), lambda: take_apart(run, stack, window))


def take_apart(run: Run, stack: Stack, window: slice) -> Taken:
    """The ways of the tokens of ``window`` through one part of the model, in the first sequence of the run."""
    tokens = run.axes(f"{stack}.inputs.embedded")[0]
    found = list(places(run.model, run.trace, stack, tokens=window))
    terms, before = found[-1].terms, 0
    stops: list[Stop] = []
    sums: list[Tensor] = []
    read: list[Tensor] = []
    norms, shares = torch.zeros(2, len(terms), window.stop - window.start, dtype=torch.float64)
    for place in found:
        n_terms = len(place.terms)
        added = place.parts[before:]
        norms[before:n_terms] = added.norm(dim=-1)
        stream = place.stream
        shares[before:n_terms] = (added * stream).sum(-1) / (stream * stream).sum(-1).clamp(min=1e-30)
        name = place.path.rpartition(".")[2]
        if name.startswith("norm"):
            if place.path != f"{stack}.norm":
                read[-1] = stream
        else:
            stops.append(_stop(run, place, _drawn(place, norms, before), window))
            sums.append(stream.norm(dim=-1))
            read.append(stream)
        before = n_terms
    predicts = stack == stacks_of(run.trace)[-1]
    likely, probabilities, logits = (
        _predicted(run, stack, torch.stack(read), found[-1].parts) if predicts else (None, None, None)
    )
    ids = set() if likely is None else set(likely.reshape(-1).tolist())
    way = TokenWay(
        tokens=tokens,
        first=window.start,
        parts=tuple(_part(run, term) for term in terms),
        stops=tuple(stops),
        norms=to_array(norms),
        shares=to_array(shares),
        logits=logits,
        sums=to_array(torch.stack(sums)),
        streams=to_array(torch.stack(read).norm(dim=-1)),
        likely=likely,
        probabilities=probabilities,
        vocabulary={token: run.vocabulary[token] for token in sorted(ids)},
        end=("prediction", "probabilities") if predicts else (say("to_the_decoder"), found[-1].path),
        expects_next=run.settings.architecture != "encoder",
    )
    return Taken(way, max(place.difference for place in found), len(found))


def window_of(run: Run, stack: Stack, query: int) -> slice:
    """The tokens around the chosen one whose numbers stay within bounds."""
    n_tokens = len(run.axes(f"{stack}.inputs.embedded")[0].labels)
    weights = [
        stage.value for path, stage in run.trace.items() if path.startswith(stack) and stage.name == "weights"
    ]
    n_terms = sum(value.shape[1] + 4 for value in weights) * 2
    width = run.trace[f"{stack}.inputs.embedded"].value.shape[-1]
    n_weights = sum(value.shape[1] * value.shape[-1] for value in weights)
    most = max(1, min(n_tokens, MOST_NUMBERS // (n_terms * width), MOST_WEIGHTS // n_weights))
    first = min(max(0, query - most // 2), n_tokens - most)
    return slice(first, first + most)


def _stop(run: Run, place: Place, added: tuple[int, ...], window: slice) -> Stop:
    if place.path.endswith("embedded"):
        return Stop("input", place.path, added)
    module = place.terms[added[0]].path.rpartition(".")[0]
    title = f"layer {layer_of(place.path)} · {module.rpartition('.')[2].replace('_', '-')}"
    if place.terms[added[0]].kind != "head":
        return Stop(title, place.path, added)
    weights = run.trace[f"{module}.weights"]
    return Stop(title, place.path, added, run.axes(weights.path)[1], to_array(weights.value[0][:, window]))


def _drawn(place: Place, norms: Tensor, before: int) -> tuple[int, ...]:
    """The parts that were added here, without biases and positions that are zero."""
    return tuple(
        i
        for i, term in enumerate(place.terms)
        if i >= before and (term.kind not in ("bias", "position") or bool(norms[i].max() > 0))
    )


def _part(run: Run, term: Term) -> Part:
    if term.head is not None:
        return Part(term.kind, run.head_label(term.head), f"{term.path.rpartition('.')[0]}.weights", term.head)
    if term.kind == "bias":
        module, _, name = term.path.rpartition(".")
        return Part(term.kind, say("bias", name=name), term.path if name.startswith("norm") else f"{module}.output")
    return Part(term.kind, term.kind.replace("_", "-"), term.path)


def _predicted(
    run: Run, stack: Stack, streams: Tensor, parts: Tensor
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    """The most likely tokens at each stop, and what is left of each part in the logit of the one predicted."""
    dtype = run.trace["logits"].value.dtype
    probabilities = lens(run.model, stack, streams.to(dtype)).softmax(-1)
    best = probabilities.topk(min(N_LIKELY, probabilities.shape[-1]), dim=-1)
    unembedding = run.model.get_parameter("unembedding.weight").detach().double()
    chosen = unembedding[best.indices[-1, :, 0]]
    logits = torch.einsum("ntd,td->nt", parts, chosen)
    return best.indices.int().numpy(), to_array(best.values), to_array(logits)
