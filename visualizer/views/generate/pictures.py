"""The pictures of what a model wrote."""

from __future__ import annotations

import math

import numpy as np
import torch

from model.decoding import BeamTree, Step, Tokens
from model.key_value_cache import computed_rows
from model.texts import listed, texts_of
from visualizer.components.axis import Axis
from visualizer.components.generation.element import Bar, Node, StepPicture, StepsPicture, Tail
from visualizer.runs.continuation import Continuation, OneByOne
from visualizer.runs.run import Run
from visualizer.runs.writer import Writer
from visualizer.stages.panels import to_array

say = texts_of(__name__)

N_BARS = 10
"""The number of most likely tokens that have a bar of their own."""


def steps_picture(run: Run, writer: Writer, how: OneByOne, continuation: Continuation) -> StepsPicture:
    """One sequence, step by step."""
    steps = continuation.steps
    labels = tuple(run.vocabulary[token] for token in (*writer.prompt, *continuation.tokens))
    n_read = len(steps[-1].tokens)
    kind = "cross_attention" if writer.has_encoder else "self_attention"
    weights = _rows(steps, kind, len(writer.source) or n_read)
    n_heads = weights.shape[2]
    return StepsPicture(
        labels=labels,
        n_prompt=len(writer.prompt),
        ended=steps[-1].token == writer.end,
        steps=tuple(_step(run, writer, how, continuation, index) for index in range(len(steps))),
        weights=weights,
        keys=_keys(run, writer, labels[:n_read]),
        heads=tuple(run.head_label(head) for head in range(n_heads)),
        own=not writer.has_encoder,
        title=say("over_the_source") if writer.has_encoder else say("over_the_tokens"),
        keys_blocked=_blocked_keys(writer),
        blocked=_blocked(writer, n_read),
        blocked_by=writer.masks.names,
        sampled=how.sampling.temperature > 0,
        cached=how.cached,
    )


def tree_picture(run: Run, writer: Writer, tree: BeamTree) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    """The nodes of a tree, and the indices of its results, best first."""
    start = len(writer.prompt)
    nodes = tuple(
        Node(
            parent=node.parent,
            label=run.vocabulary[node.token],
            text=tuple(run.vocabulary[token] for token in node.tokens[start:]),
            depth=len(node.tokens) - start,
            probability=math.exp(node.log_probability),
            total=node.total,
            score=node.score,
            kept=node.kept,
            finished=node.finished,
        )
        for node in tree.nodes
    )
    places = {id(node): index for index, node in enumerate(tree.nodes)}
    return nodes, tuple(places[id(node)] for node in tree.results)


def _blocked(writer: Writer, n_read: int) -> np.ndarray:
    """Return the masks that block each cell of the decoder's self-attention over the first tokens, (T, T)."""
    size = len(writer.prompt) + writer.longest
    bits: np.ndarray = writer.masks.blocked_bits(size, size)[0, :n_read, :n_read].contiguous().numpy()
    return bits


def _rows(steps: tuple[Step, ...], kind: str, n_keys: int) -> np.ndarray:
    """The weights of the last token in every step, layer and head, (N, L, H, K); zero where there is no key yet.

    Of a self-attention the last keys count: a cache may let go of the first, or a prompt stand before the tokens.
    """
    found = [_weights(step, kind) for step in steps]
    rows = np.zeros((len(steps), len(found[0]), len(found[0][0]), n_keys), np.float32)
    for index, (step, layers) in enumerate(zip(steps, found, strict=True)):
        n_there = len(step.tokens) if kind == "self_attention" else n_keys
        for layer, weights in enumerate(layers):
            n_drawn = min(n_there, weights.shape[-1])
            rows[index, layer, :, n_there - n_drawn : n_there] = weights[:, weights.shape[-1] - n_drawn :]
    return rows


def _weights(step: Step, kind: str) -> list[np.ndarray]:
    """The weights of the last token in each layer, (H, K)."""
    return [
        to_array(stage.value[0, :, -1]) for path, stage in step.trace.items() if path.endswith(f"{kind}.weights")
    ]


def _keys(run: Run, writer: Writer, read: tuple[str, ...]) -> Axis:
    if writer.has_encoder:
        return Axis("key", run.tokens["source"].labels, "source")
    return Axis("key", read, None)


def _blocked_keys(writer: Writer) -> np.ndarray:
    """Return the keys of the source that the mask of the first layer's cross-attention hides."""
    mask = next((mask for mask in writer.memory_masks if mask is not None), None)
    if mask is None:
        return np.zeros(len(writer.source), np.uint8)
    blocked: np.ndarray = (~mask[0, 0, 0]).to(torch.uint8).numpy()
    return blocked


def _step(run: Run, writer: Writer, how: OneByOne, continuation: Continuation, index: int) -> StepPicture:
    step = continuation.steps[index]
    bars, tail = bars_of(run, step, writer.never, sampled=how.sampling.temperature > 0)
    n_read, n_source = len(step.tokens), len(writer.source)
    own, crossing = "decoder.layers.0.self_attention", "decoder.layers.0.cross_attention"
    rows = computed_rows(step.trace, own) if how.cached else range(n_read)  # those before are from the cache
    return StepPicture(
        bars=bars,
        tail=tail,
        sentence=_sentence(run, writer, how, step),
        kept=index < continuation.n_kept,
        computed=len(rows),
        from_cache=rows.start,
        source_computed=len(computed_rows(step.trace, crossing)) if how.cached and n_source else n_source,
    )


def bars_of(run: Run, step: Step, never: Tokens, *, sampled: bool) -> tuple[tuple[Bar, ...], Tail]:
    """The most likely tokens, among them the one chosen, and the others together.

    Without sampling, the shares are the probabilities: what a token is chosen by.
    """
    logits = step.logits.double()
    probabilities = logits.softmax(0)
    shares = step.probabilities if sampled else probabilities
    order = logits.sort(descending=True, stable=True).indices
    rank = 1 + int((order == step.token).nonzero())
    shown = order[:N_BARS].tolist() if rank <= N_BARS else [*order[: N_BARS - 1].tolist(), step.token]
    bars = tuple(
        Bar(
            run.vocabulary[token],
            rank if token == step.token else place,
            float(probabilities[token]),
            float(shares[token]),
            chosen=token == step.token,
            never=token in never,
        )
        for place, token in enumerate(shown, 1)
    )
    rest = torch.ones(len(order), dtype=torch.bool)
    rest[shown] = False
    return bars, Tail(int(rest.sum()), float(probabilities[rest].sum()), float(shares[rest].sum()))


def _sentence(run: Run, writer: Writer, how: OneByOne, step: Step) -> str:
    """Say how the token was chosen; isolated, so that a label of another direction turns nothing else around."""
    label = _quoted(run, step.token)
    if how.sampling.temperature == 0:
        over = [_quoted(run, token) for token in writer.never if step.logits[token] > step.logits[step.token]]
        if len(over) > 1:
            return say("some_passed_over", label=label, others=listed(over))
        return say("one_passed_over", label=label, other=over[0]) if over else say("most_likely", label=label)
    n_possible, n_tokens = int((step.probabilities > 0).sum()), len(step.probabilities) - len(writer.never)
    if n_possible == 1:
        return say("only_one_left", label=label, n_tokens=n_tokens)
    if n_possible == n_tokens:
        return say("drawn_from_all", n_tokens=n_tokens, draw=step.draw, label=label)
    return say("drawn_from_some", n_possible=n_possible, n_tokens=n_tokens, draw=step.draw, label=label)


def _quoted(run: Run, token: int) -> str:
    return f"“\u2068{run.vocabulary[token]}\u2069”"
