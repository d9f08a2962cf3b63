"""Autoregressive decoding: read the tokens so far, choose the next one, append it, and again.

Reading and choosing are apart. A ``Reader`` runs the model and records the pass; ``distribution`` and ``sample``
make one token of its last logits. So a finished decoding can be chosen anew from its stored logits (``rechosen``),
and the model runs again only from the first token that came out otherwise:

    read = Reader(model, source)
    steps = tuple(decode(read, (SOS,), end=EOS, limit=20))
    kept = rechosen(steps, warmer).steps
    steps = (*kept, *decode(read, (SOS,), warmer, end=EOS, limit=20, taken=kept))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor

from model.config import check_at_least
from model.masks import LayerMasks, causal, for_each_layer
from model.randomness import named_generator
from model.texts import texts_of
from model.tracing import Trace, record
from model.transformer import Transformer

say = texts_of(__name__)

Tokens = tuple[int, ...]

Read = Callable[[Tokens, Trace | None], Trace]
"""From the tokens so far, and the trace of the pass before (None at first), to the trace of a pass over them."""


@dataclass(frozen=True, eq=False)
class Reader:
    """Runs a model over all tokens so far, from the first to the last, whatever was read before.

    Attributes:
        model: with a decoder, in evaluation mode.
        source: what the encoder reads; empty without an encoder.
        source_mask: of the encoder's self-attention, as ``Transformer`` takes it.
        target_mask: of the decoder's self-attention, (..., L, L) with L at least the longest sequence read, True =
            may attend; as the sequence grows, so does the corner of it that is used. ``causal`` unless given.
        memory_mask: of the cross-attention, broadcastable to (1, H, 1, S).
        source_positions: where each token of the source stands, (S,) or (1, S) int64; from 0 on unless
            given.
        target_positions: the same of the tokens read, (L,); for a prompt that is padded on the left.

    Raises:
        ValueError: the model cannot decode, its source is missing or not wanted, or it is in training mode.
    """

    model: Transformer
    source: Tokens = ()
    source_mask: LayerMasks = None
    target_mask: LayerMasks = None
    memory_mask: LayerMasks = None
    source_positions: Tensor | None = None
    target_positions: Tensor | None = None

    def __post_init__(self) -> None:
        architecture = self.model.config.architecture
        if architecture == "encoder":
            raise ValueError("architecture (encoder) has no decoder: choose decoder or encoder-decoder to generate")
        if bool(self.source) != (architecture == "encoder-decoder"):
            raise ValueError(f"architecture ({architecture}): encoder-decoder needs a source, decoder takes none")
        if self.model.training:
            raise ValueError("the model is in training mode: call eval() before decoding")

    def __call__(self, tokens: Tokens, before: Trace | None = None) -> Trace:
        """Record a pass over the tokens; the logits of the next token are the last row.

        Raises:
            ValueError: there are more tokens than ``max_len``, than ``target_mask`` has rows or than there are
                ``target_positions``.
        """
        return self.run(self.model, tokens, 0)

    def run(self, model: Transformer, tokens: Tokens, n_read: int) -> Trace:
        """Record a pass of a model that has already read the first ``n_read`` tokens over the others."""
        mask = self.target_mask_of(n_read, len(tokens))
        positions = self._target_positions(len(tokens))[n_read:]
        new = torch.tensor([tokens[n_read:]])
        with torch.inference_mode(), record(model) as trace:
            if self.source:
                model(
                    torch.tensor([self.source]),
                    new,
                    source_mask=self.source_mask,
                    target_mask=mask,
                    memory_mask=self.memory_mask,
                    source_positions=self.source_positions,
                    target_positions=positions,
                )
            else:
                model(new, source_mask=mask, source_positions=positions)
        return trace

    def _target_positions(self, n_tokens: int) -> Tensor:
        """Return the positions of the first ``n_tokens`` tokens read, (n_tokens,)."""
        if self.target_positions is None:
            return torch.arange(n_tokens)
        if len(self.target_positions) < n_tokens:
            raise ValueError(f"target_positions has {len(self.target_positions)}: too few for {n_tokens} tokens")
        return self.target_positions[:n_tokens]

    def target_mask_of(self, n_read: int, n_tokens: int) -> Sequence[Tensor | None]:
        """For each layer, the mask of queries ``n_read`` to ``n_tokens``, (..., n_tokens - n_read, n_tokens)."""
        whole = causal(n_tokens, n_tokens) if self.target_mask is None else self.target_mask
        masks = for_each_layer(whole, self.model.config.decoder_depth)
        for mask in masks:
            if mask is not None and min(mask.shape[-2:]) < n_tokens:
                raise ValueError(f"target_mask {tuple(mask.shape)} is too small for {n_tokens} tokens")
        return [None if mask is None else mask[..., n_read:n_tokens, :n_tokens] for mask in masks]


_ROUNDING = 1e-12
"""By how much a sum of probabilities may miss what it would be without rounding: 8 times 0.1 falls short of 0.8."""


def next_logits(trace: Trace) -> Tensor:
    """(V,): the logits of the token that follows those read."""
    return trace["logits"].value[0, -1]


@dataclass(frozen=True)
class Sampling:
    """The settings of sampling: the arguments of ``distribution``, the seed of the draws, and what is never chosen.

    A token that is ``never`` chosen, such as padding, keeps its place in the model's logits; the others share its
    probability before temperature, ``top_k`` and ``top_p``.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int = 0
    never: Tokens = ()


GREEDY = Sampling(temperature=0.0)
"""Always the most probable token."""


def distribution(logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Tensor:
    """The probabilities that the next token is drawn with.

    The logits are divided by the temperature; of their softmax the ``top_k`` most probable tokens are kept (Fan et
    al. 2018), and of these, once more summing to one, the fewest that together reach ``top_p`` (nucleus sampling,
    Holtzman et al. 2020, section 3.1). Of equally probable tokens the one with the smaller id ranks higher.

    Args:
        logits: (V,).
        temperature: below one sharpens, above one flattens; zero, the limit, leaves the most probable token alone.
        top_k: how many tokens are kept; None keeps all.
        top_p: the probability that the kept tokens reach together; 1 keeps all.

    Returns:
        (V,), float64, summing to one.

    Raises:
        ValueError: an argument is out of its range, or the largest logit is no finite number.

    >>> distribution(torch.tensor([2.0, 1.0, 0.0]), top_k=2)
    tensor([0.7311, 0.2689, 0.0000], dtype=torch.float64)
    """
    if not 0.0 <= temperature < float("inf"):
        raise ValueError(f"temperature ({temperature}) must be 0 or a positive number")
    if top_k is not None:
        check_at_least(1, "top_k", top_k)
    if not 0.0 < top_p <= 1.0:
        raise ValueError(f"top_p ({top_p}) must be above 0 and at most 1")
    ranked, ids = logits.double().sort(descending=True, stable=True)
    if not ranked[0].isfinite():
        raise ValueError(say("diverged", largest=ranked[0].item()))
    if temperature == 0.0:
        temperature, top_k = 1.0, 1
    top = ((ranked - ranked[0]) / temperature).softmax(0)[:top_k]
    top = top / top.sum()
    if top_p < 1.0:
        n_short_of_p = int((top.cumsum(0)[:-1] < top_p - _ROUNDING).sum())
        top = top[: n_short_of_p + 1] / top[: n_short_of_p + 1].sum()
    return torch.zeros_like(ranked).scatter(0, ids[: len(top)], top)


def sample(probabilities: Tensor, draw: float) -> int:
    """The token in whose share a number from [0, 1) falls, the shares lying in a row from the most probable on.

    In this order the same number never falls on a less probable token because the temperature was lowered.

    >>> sample(torch.tensor([0.2, 0.8]), 0.7), sample(torch.tensor([0.2, 0.8]), 0.9)
    (1, 0)
    """
    ranked, ids = probabilities.sort(descending=True, stable=True)
    upper = ranked.cumsum(0)
    return int(ids[torch.searchsorted(upper, draw * upper[-1], right=True)])


@dataclass(frozen=True, eq=False)
class Step:
    """One token chosen.

    Attributes:
        tokens: what stood before it.
        trace: the pass that read them; the last row of ``cross_attention.weights`` belongs to this choice.
        probabilities: (V,), what it was drawn with.
        draw: the number from [0, 1) that decided.
        token: the choice.
    """

    tokens: Tokens
    trace: Trace
    probabilities: Tensor
    draw: float
    token: int

    @property
    def logits(self) -> Tensor:
        """(V,): what the model said of the next token."""
        return next_logits(self.trace)

    @property
    def log_probability(self) -> float:
        """The log probability of the choice, by the model's own softmax: before temperature, top-k and top-p."""
        return float(self.logits.double().log_softmax(0)[self.token])


def choose(tokens: Tokens, trace: Trace, sampling: Sampling) -> Step:
    """The next token after a pass over ``tokens``.

    The number drawn depends on the seed and the place in the sequence alone, not on what was drawn before, so that
    going back and forth, or reading on from the middle, gives the same tokens.
    """
    found = chosen(next_logits(trace), len(tokens), sampling)
    return Step(tokens, trace, found.probabilities, found.draw, found.token)


@dataclass(frozen=True, eq=False)
class Choice:
    """The choice of a token: the fields of ``Step`` of the same names."""

    probabilities: Tensor
    draw: float
    token: int


def chosen(logits: Tensor, place: int, sampling: Sampling) -> Choice:
    """The token at a place of a sequence, by the logits (V,) of any model."""
    logits = logits.clone()
    logits[list(sampling.never)] = -torch.inf
    probabilities = distribution(logits, sampling.temperature, sampling.top_k, sampling.top_p)
    generator = named_generator(sampling.seed, f"token {place}")
    draw = torch.rand((), dtype=torch.float64, generator=generator).item()
    return Choice(probabilities, draw, sample(probabilities, draw))


def decode(
    read: Read,
    prompt: Tokens,
    sampling: Sampling = GREEDY,
    *,
    end: int | None,
    limit: int,
    taken: Sequence[Step] = (),
) -> Iterator[Step]:
    """Choose one token after the other, each when it is asked for.

    Args:
        read: runs the model.
        prompt: the tokens before the first choice: the start token, or the text that a decoder continues.
        sampling: how to choose.
        end: the token that ends the sequence; None where there is none.
        limit: the most tokens to choose, ``taken`` included.
        taken: steps already there; only those that follow are computed.

    Raises:
        ValueError: the prompt is empty or the limit below one; at a step, what ``read`` or ``distribution`` raises.

    >>> from model.config import TransformerConfig
    >>> config = TransformerConfig("decoder", vocab_size=5, d_model=8, n_heads=2, d_ff=8, n_layers=1)
    >>> steps = list(decode(Reader(Transformer(config).eval()), (1, 2), end=None, limit=3))
    >>> len(steps), steps[-1].tokens[:2]
    (3, (1, 2))
    """
    _check(prompt, limit)
    return _decode(read, prompt, sampling, end, limit, taken)


def _decode(
    read: Read, prompt: Tokens, sampling: Sampling, end: int | None, limit: int, taken: Sequence[Step]
) -> Iterator[Step]:
    last = taken[-1] if taken else None
    for _ in range(limit - len(taken)):
        if last is None:
            tokens, before = prompt, None
        elif last.token == end:
            return
        else:
            tokens, before = (*last.tokens, last.token), last.trace
        last = choose(tokens, read(tokens, before), sampling)
        yield last


@dataclass(frozen=True)
class Rechosen:
    """The steps of a decoding under another sampling, as far as they follow from its logits.

    Attributes:
        steps: up to the first that chose otherwise, this one included.
        differs_at: its index; None if all chose the same.
    """

    steps: tuple[Step, ...]
    differs_at: int | None


def rechosen(steps: Sequence[Step], sampling: Sampling) -> Rechosen:
    """Choose anew from stored logits; what follows the first other choice has to be read by the model.

    Raises:
        ValueError: as ``distribution``.
    """
    again = []
    for index, step in enumerate(steps):
        again.append(choose(step.tokens, step.trace, sampling))
        if again[-1].token != step.token:
            return Rechosen(tuple(again), index)
    return Rechosen(tuple(again), None)


@dataclass(frozen=True, eq=False)
class BeamNode:
    """One hypothesis of a beam search: those before it and one token more.

    Attributes:
        parent: index of the node that it continues; None for the prompt, where the tree begins.
        tokens: prompt and choices.
        log_probability: of the last token after those before it.
        total: the sum of the log-probabilities of all tokens chosen.
        score: the total over the length penalty, by which finished hypotheses are compared.
        kept: whether it was among the best of its length; the others are pruned.
        finished: whether it ended by the end token.
        trace: the pass that its log-probability is from; None for the prompt.
    """

    parent: int | None
    tokens: Tokens
    log_probability: float
    total: float
    score: float
    kept: bool
    finished: bool
    trace: Trace | None

    @property
    def token(self) -> int:
        """The last token."""
        return self.tokens[-1]


@dataclass(frozen=True)
class BeamTree:
    """Every hypothesis that a beam search looked at, the shorter before the longer."""

    nodes: tuple[BeamNode, ...]

    @property
    def results(self) -> tuple[BeamNode, ...]:
        """The finished sequences and those that the limit cut off, from the best score to the worst."""
        longest = max(len(node.tokens) for node in self.nodes)
        ends = [node for node in self.nodes if node.kept and (node.finished or len(node.tokens) == longest)]
        return tuple(sorted(ends, key=lambda node: -node.score))


def beam_search(
    read: Read,
    prompt: Tokens,
    width: int,
    *,
    end: int | None,
    limit: int,
    length_penalty: float = 0.0,
    never: Tokens = (),
) -> BeamTree:
    """Keep the ``width`` most probable hypotheses of each length instead of one.

    A finished one leaves the beam (Sutskever et al. 2014, section 3.2), which is narrower by one from then on; the
    search is over when none is left or the limit is reached. Of a node's continuations only the ``width`` most
    probable are in the tree: no other could be kept. Of equally probable ones the earlier node's wins, then the
    smaller token id.

    Args:
        read: runs the model, once for every node that is continued.
        prompt: the tokens before the first choice.
        width: how many hypotheses to keep; 1 is greedy decoding.
        end: the token that ends a sequence; None where there is none.
        limit: the most tokens to choose.
        length_penalty: alpha of score = total / ((5 + length) / 6)^alpha (Wu et al. 2016, section 7, without the
            coverage term), the length counting the tokens chosen. 0 does not penalise; more favours the longer.
        never: tokens that continue nothing; the log-probabilities of the others are the model's own all the same.

    Raises:
        ValueError: an argument is out of its range; or what ``read`` raises.
    """
    _check(prompt, limit)
    check_at_least(1, "width", width)
    if not 0.0 <= length_penalty < float("inf"):
        raise ValueError(f"length_penalty ({length_penalty}) must be 0 or a positive number")
    nodes = [BeamNode(None, prompt, 0.0, 0.0, 0.0, kept=True, finished=False, trace=None)]
    live = [0]
    for length in range(1, limit + 1):
        divisor = ((5 + length) / 6) ** length_penalty
        candidates = [
            child for index in live for child in _continuations(read, nodes[index], index, width, end, never)
        ]
        best = sorted(candidates, key=lambda node: -node.total)[:width]
        start = len(nodes)
        nodes += [replace(node, score=node.total / divisor, kept=node in best) for node in candidates]
        live = [index for index in range(start, len(nodes)) if nodes[index].kept and not nodes[index].finished]
        width -= sum(node.finished for node in best)
        if not live:
            break
    return BeamTree(tuple(nodes))


def _continuations(
    read: Read, node: BeamNode, index: int, count: int, end: int | None, never: Tokens
) -> Iterator[BeamNode]:
    """The most probable continuations of a node, best first, neither scored nor kept yet."""
    trace = read(node.tokens, node.trace)
    ranked, ids = next_logits(trace).double().log_softmax(0).sort(descending=True, stable=True)
    ranking = zip(ranked.tolist(), ids.tolist(), strict=True)
    for log_probability, token in islice((pair for pair in ranking if pair[1] not in never), count):
        total = node.total + log_probability
        tokens = (*node.tokens, token)
        yield BeamNode(index, tokens, log_probability, total, 0.0, kept=False, finished=token == end, trace=trace)


def _check(prompt: Tokens, limit: int) -> None:
    if not prompt:
        raise ValueError("the prompt is empty: decoding starts from at least one token")
    check_at_least(1, "limit", limit)
