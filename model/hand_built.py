"""Attention heads written by hand: each does one known thing on any text, in every layer.

The residual stream is divided, from the fast to the slow pairs of the sinusoidal encoding, into

    positions    where a token stands: the fast pairs, which the embedding leaves alone
    votes        what the heads write and the final linear layer reads: nothing at first
    codes        which token it is: one direction per word
    zero, one    the slowest pair: a sine that stays near 0 and a cosine that stays near 1

No head writes where a head reads, so the heads of every layer find what those of the first one find. Each head adds
the codes of the tokens it attends to to the votes, and the logits count them: the most likely tokens at a position
are those its heads looked at. So what a mask takes from a head is missing in every later stage.

Three facts make it work:

- A shift of a sinusoidal encoding is a rotation of each of its pairs ("Attention Is All You Need", section 3.5), so
  one matrix turns the position of a query into the position that it looks for.
- Slow pairs hardly move within a text. The embedding subtracts where they rest and has their dimensions to itself.
- Layer norm subtracts the mean of a vector and divides by its deviation. A row that sums to zero is blind to the
  mean, and any row can be made to sum to zero by its entry at ``zero``, where there is nothing to read. The deviation
  is nearly the same for all tokens: every code is equally long, and so is every position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention
from model.config import TransformerConfig
from model.feed_forward import FeedForward
from model.layers import DecoderLayer
from model.positional_encoding import LearnedPositions, sinusoidal_encoding
from model.randomness import named_generator
from model.transformer import Decoder, Encoder, InputEmbedding, Transformer

NARROWEST = 6
"""The least d_model with room for codes and votes."""

_WIDEST_CODE = 24
_MOST_PAIRS = 16
_ROOMY = 8
_LONGEST_TEXT = 512
_USUAL_WORDS = 64
_CANDIDATES = 64

_MARGIN = 6.0
"""By how much the score of the token looked for is to exceed all others: e^-6 is 1 / 400."""
_LEAST_GAIN, _GREATEST_GAIN = 20.0, 100.0

_VOTE_LENGTH = 0.5
"""Length of the votes where all heads agree, as a part of the length of a code."""
_FEED_FORWARD_LENGTH = 0.05
_UNANIMOUS_LOGIT = 12.0


def fill_hand_built(model: Transformer, seed: int) -> None:
    """Fill every parameter of a model.

    Learned positions are filled with the sinusoids. Without positions no place can be told from another: heads that
    look for a place are uniform then, and so are those of too narrow heads (``hand_built_names`` says which).

    Args:
        model: with a final linear layer of its own; tied to the embedding, it would read codes instead of votes.
        seed: of the codes and the feed-forward networks; what the heads do is the same for all.

    Raises:
        ValueError: the embeddings are tied, or d_model is below ``NARROWEST``.
    """
    config = model.config
    if config.tied_embeddings:
        raise ValueError("tied_embeddings (True) must be False: the heads need a final linear layer of its own")
    if config.d_model < NARROWEST:
        raise ValueError(f"d_model ({config.d_model}) must be at least {NARROWEST} for hand-built heads")
    plan = _Plan(config, seed)
    with torch.no_grad():
        if model.encoder is not None:
            _fill_part(plan, "encoder", model.encoder)
        if model.decoder is not None:
            _fill_part(plan, "decoder", model.decoder)
        model.unembedding.weight.copy_(_vote_counter(plan))


def hand_built_names(config: TransformerConfig) -> tuple[str, ...]:
    """What each head does, in the order of the heads."""
    return tuple(_named(_head(index), config) for index in range(config.n_heads))


# The heads.


@dataclass(frozen=True, eq=False)
class _HeadWeights:
    """What a head reads from vectors that no layer norm has scaled yet.

    Attributes:
        query: (n, d_model), n at most head_dim.
        key: (n, d_model).
        query_bias: (n,), what it asks for whatever the token; None for nothing.
    """

    query: Tensor
    key: Tensor
    query_bias: Tensor | None = None


@dataclass(frozen=True)
class _Head:
    """One thing that a head can do.

    Attributes:
        name: what it attends to.
        build: its weights.
        least_head_dim: narrower, it is uniform.
        needs_positions: without them, it is uniform.
    """

    name: str
    build: Callable[[_Plan], _HeadWeights]
    least_head_dim: int = 1
    needs_positions: bool = True


def _offset_head(plan: _Plan, offset: int) -> _HeadWeights:
    """Attend to the token ``offset`` places on.

    The query is the position ``offset`` on from its own, the key its position: their product, a sum of
    cos(rate * (key - query - offset)), is greatest where key = query + offset.
    """
    if plan.config.head_dim < 2 or not plan.pairs:
        return _uniform_head(plan)
    reader = _position_reader(plan) / math.sqrt(len(plan.pairs))
    return _sharpened(plan, plan.position_gain, _HeadWeights(_shift(plan.rates, offset) @ reader, reader))


def _first_token_head(plan: _Plan) -> _HeadWeights:
    """Attend to position 0: whatever its token, a query asks for the cosines there, which are all 1."""
    cosines = _position_reader(plan)[1::2] / math.sqrt(max(len(plan.pairs), 1))
    wanted = torch.full((len(cosines),), len(cosines) ** -0.5, dtype=torch.float64)
    return _sharpened(plan, plan.position_gain, _HeadWeights(torch.zeros_like(cosines), cosines, wanted))


def _same_token_head(plan: _Plan) -> _HeadWeights:
    """Attend to all equal tokens alike: the product of two codes is greatest for equal ones."""
    codes = _code_reader(plan) / math.sqrt(plan.config.d_model)
    return _sharpened(plan, plan.code_gain, _HeadWeights(codes, codes))


def _uniform_head(plan: _Plan) -> _HeadWeights:
    """Attend to all tokens alike: every score is zero."""
    nothing = torch.zeros(0, plan.config.d_model, dtype=torch.float64)
    return _HeadWeights(nothing, nothing)


def _sharpened(plan: _Plan, gain: float, weights: _HeadWeights) -> _HeadWeights:
    """Multiply scores of at most 1 by ``gain``, and subtract it from all where there is room for a row more.

    The token looked for then scores 0 and all others less. Layer norm divides every key by another deviation, which
    changes any score but 0.
    """
    query, key, bias = weights.query, weights.key, weights.query_bias
    if len(query) < plan.config.head_dim:
        one = _blind_to_mean(plan, _unit_rows(plan, [plan.one]))
        key = torch.cat([key, -one])
        query = torch.cat([query, one if bias is None else torch.zeros_like(one)])
        bias = None if bias is None else torch.cat([bias, torch.ones(1, dtype=torch.float64)])
    root = math.sqrt(gain)
    return _HeadWeights(root * query, root * key, None if bias is None else root * bias)


def _offset(name: str, offset: int) -> _Head:
    return _Head(name, partial(_offset_head, offset=offset), least_head_dim=2)


_FIRST_HEADS = (
    _offset("previous token", -1),
    _offset("next token", 1),
    _Head("same token", _same_token_head, least_head_dim=2, needs_positions=False),
    _Head("first token", _first_token_head),
    _offset("itself", 0),
    _Head("uniform", _uniform_head, needs_positions=False),
)
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def _head(index: int) -> _Head:
    """The head at a place: after the first ones, two back, two ahead, three back, three ahead, ..."""
    if index < len(_FIRST_HEADS):
        return _FIRST_HEADS[index]
    further, is_ahead = divmod(index - len(_FIRST_HEADS), 2)
    distance = further + 2
    number = _NUMBERS[further] if further < len(_NUMBERS) else str(distance)
    return _offset(f"{number} ahead", distance) if is_ahead else _offset(f"{number} back", -distance)


def _named(head: _Head, config: TransformerConfig) -> str:
    if config.head_dim < head.least_head_dim:
        return f"{head.name} (no room in head_dim {config.head_dim})"
    has_pairs = _n_position_pairs(config) > 0
    if head.needs_positions and (config.positions == "none" or not has_pairs):
        return f"{head.name} (uniform without positions)"
    return head.name


# The plan: what is where in the residual stream.


class _Plan:
    """Where each part of the residual stream is, and what the heads need to know of it.

    Attributes:
        config: of the model.
        seed: of everything drawn.
        zero, one: dimensions that hold 0 and 1 for every token.
        code_width: how many numbers tell words apart; codes have one dimension more, in which they sum to zero.
        codes, votes: dimensions, ``code_width + 1`` each.
        n_pairs: how many pairs of dimensions, from the first on, are left to positions.
    """

    def __init__(self, config: TransformerConfig, seed: int) -> None:
        self.config, self.seed = config, seed
        d_model = config.d_model
        self.one, self.zero = (d_model - 2, d_model - 1) if d_model % 2 else (d_model - 1, d_model - 2)
        self.code_width = _code_width(config)
        self.codes = slice(d_model - 2 - (self.code_width + 1), d_model - 2)
        self.votes = slice(self.codes.start - (self.code_width + 1), self.codes.start)
        self.n_pairs = _n_position_pairs(config)

    @cached_property
    def directions(self) -> Tensor:
        """One direction of length 1 per word, of at least a usual text: (V or more, code_width)."""
        count = max(self.config.vocab_size, _USUAL_WORDS)
        return spread_directions(count, self.code_width, named_generator(self.seed, "codes"))

    @cached_property
    def basis(self) -> Tensor:
        """From directions to codes, which sum to zero and so never shift the mean: (code_width, code_width + 1).

        Helmert's: its rows are orthonormal, and orthogonal to the vector of ones.
        """
        size = torch.arange(1, self.code_width + 1, dtype=torch.float64)[:, None]
        column = torch.arange(self.code_width + 1)
        rows = torch.where(column < size, 1.0, torch.where(column == size, -size, 0.0))
        return rows / (size * (size + 1)).sqrt()

    @cached_property
    def blank(self) -> Tensor:
        """A row that sums to one and reads nothing, (d_model,).

        It is mixed of ``zero``, the sum of the codes and that of the votes: each would be 0 but for a slow drift,
        and mixed the drifts nearly cancel.
        """
        parts = torch.zeros(self.config.d_model, 3, dtype=torch.float64)
        for column, place in enumerate((self.zero, self.codes, self.votes)):
            parts[place, column] = 1.0
        parts = parts / parts.sum(0)
        drift = (sinusoidal_encoding(_LONGEST_TEXT, self.config.d_model) - self.resting) @ parts
        shares = torch.linalg.lstsq(drift[:, 1:] - drift[:, :1], -drift[:, :1]).solution
        return parts @ torch.cat([1.0 - shares.sum(0, keepdim=True), shares])[:, 0]

    @cached_property
    def resting(self) -> Tensor:
        """Where the positional encoding rests, (d_model,)."""
        if self.config.positions == "none":
            return torch.zeros(self.config.d_model, dtype=torch.float64)
        return sinusoidal_encoding(1, self.config.d_model)[0]

    @cached_property
    def pairs(self) -> list[int]:
        """The pairs by which heads tell positions apart."""
        head_dim = self.config.head_dim
        room = (head_dim - 1) // 2 if head_dim >= _ROOMY else max(head_dim // 2, 1)
        most = min(room, self.n_pairs, _MOST_PAIRS)
        return choose_pairs(_rates(self.config.d_model)[: self.n_pairs], most)

    @property
    def rates(self) -> Tensor:
        """Radians per position of ``pairs``."""
        return _rates(self.config.d_model)[self.pairs]

    @cached_property
    def position_gain(self) -> float:
        """The scaled score by which a position exceeds one that is not like it at all."""
        return _gain(float(_likeness(self.rates).max())) if self.pairs else 0.0

    @cached_property
    def code_gain(self) -> float:
        """The scaled score by which a token exceeds one that is not like it at all."""
        usual = self.directions[:_USUAL_WORDS]
        return _gain(float((usual @ usual.T).fill_diagonal_(-1.0).max()))

    @cached_property
    def embedding(self) -> Tensor:
        """(V, d_model), to be multiplied by sqrt(d_model): codes of length 1, so of unit variance in the model."""
        wanted = torch.zeros(self.config.vocab_size, self.config.d_model, dtype=torch.float64)
        wanted[:, self.codes] = (
            self.directions[: self.config.vocab_size] @ self.basis * math.sqrt(self.config.d_model)
        )
        wanted[:, self.one] = 1.0
        wanted[:, 2 * self.n_pairs :] -= self.resting[2 * self.n_pairs :]
        return wanted / math.sqrt(self.config.d_model)

    @cached_property
    def normed(self) -> float:
        """By what layer norm multiplies an embedded token."""
        embedded = self.embedding[:1] * math.sqrt(self.config.d_model)
        if self.config.positions != "none":
            embedded = embedded + sinusoidal_encoding(32, self.config.d_model)
        return float((1.0 / embedded.std(-1, correction=0)).mean())


def _code_width(config: TransformerConfig) -> int:
    """As wide as a head, less one for the row that makes equal tokens score 0, where that leaves a code."""
    in_head = config.head_dim - 1 if config.head_dim > 2 else config.head_dim
    return max(min(in_head, config.d_model // 4 - 1, _WIDEST_CODE), 1)


def _n_position_pairs(config: TransformerConfig) -> int:
    return (config.d_model - 2 - 2 * (_code_width(config) + 1)) // 2


def _gain(closest: float) -> float:
    """What to multiply scores of at most 1 by, so that 1 exceeds ``closest`` by ``_MARGIN``, within limits."""
    return min(max(_MARGIN / max(1.0 - closest, 1e-9), _LEAST_GAIN), _GREATEST_GAIN)


def _rates(d_model: int) -> Tensor:
    """Radians per position of every pair of the sinusoidal encoding."""
    return 10000.0 ** (-torch.arange(0, d_model - 1, 2, dtype=torch.float64) / d_model)


def _likeness(rates: Tensor) -> Tensor:
    """How alike two positions are at each distance from 1 on: the mean of cos(rate * distance)."""
    distance = torch.arange(1, _LONGEST_TEXT, dtype=torch.float64)
    return torch.cos(rates[..., None] * distance).mean(-2)


def choose_pairs(rates: Tensor, most: int) -> list[int]:
    """Choose pairs, at most ``most``, that together tell a position from all others.

    One after the other, the pair that leaves the least weight on other positions; near ones count more, since no
    text is too short to have them.

    Args:
        rates: radians per position of the pairs to choose from.
        most: how many.

    Returns:
        Their indices.
    """
    distance = torch.arange(1, _LONGEST_TEXT, dtype=torch.float64)
    cosines = torch.cos(rates[:, None] * distance)
    chosen: list[int] = []
    least, best = math.inf, 0
    for count in range(1, min(most, len(rates)) + 1):
        likeness = (cosines[chosen].sum(0) + cosines) / count
        lost = (torch.exp(_GREATEST_GAIN / 2 * (likeness - 1.0)) / distance).sum(-1)
        lost[chosen] = math.inf
        chosen.append(int(lost.argmin()))
        if float(lost.min()) < least:
            least, best = float(lost.min()), count
    return chosen[:best]


def spread_directions(count: int, width: int, generator: torch.Generator) -> Tensor:
    """Unit vectors far from one another: each is, of some random ones, the least like all before it.

    This is Mitchell's best-candidate sampling (1991). More vectors leave the first ones as they are.

    Returns:
        (count, width), float64.
    """
    candidates = torch.randn(count, _CANDIDATES, width, generator=generator, dtype=torch.float64)
    candidates = candidates / candidates.norm(dim=-1, keepdim=True)
    chosen = candidates[:, 0].clone()
    for index in range(1, count):
        nearest = (chosen[:index] @ candidates[index].T).amax(0)
        chosen[index] = candidates[index, nearest.argmin()]
    return chosen


# Reading the residual stream.


def _position_reader(plan: _Plan) -> Tensor:
    """The sine and the cosine of each chosen pair, (2 * pairs, d_model)."""
    return _blind_to_mean(plan, _unit_rows(plan, [2 * pair + part for pair in plan.pairs for part in (0, 1)]))


def _code_reader(plan: _Plan) -> Tensor:
    """The code of the token, (code_width, d_model)."""
    reader = torch.zeros(plan.code_width, plan.config.d_model, dtype=torch.float64)
    reader[:, plan.codes] = plan.basis
    return reader


def _shift(rates: Tensor, offset: int) -> Tensor:
    """The matrix that turns the sines and cosines of any position into those ``offset`` places on.

    sin(a + b) = sin a cos b + cos a sin b and cos(a + b) = cos a cos b - sin a sin b: one rotation per pair.
    """
    sine, cosine = (rates * offset).sin(), (rates * offset).cos()
    rotations = torch.stack([torch.stack([cosine, sine], -1), torch.stack([-sine, cosine], -1)], -2)
    return torch.block_diag(*rotations)


def _unit_rows(plan: _Plan, dimensions: Iterable[int]) -> Tensor:
    return torch.eye(plan.config.d_model, dtype=torch.float64)[list(dimensions)]


def _blind_to_mean(plan: _Plan, rows: Tensor) -> Tensor:
    """The rows, made to sum to zero."""
    return rows - rows.sum(-1, keepdim=True) * plan.blank


# Filling the model.


def _fill_part(plan: _Plan, name: str, part: Encoder | Decoder) -> None:
    """Fill an encoder or a decoder.

    What a vector of the residual stream holds is ``plan.normed`` times what it was in the embedding wherever a norm
    stands before. Rows that read are divided by this scale, columns that write multiplied by it.
    """
    _fill_inputs(plan, part.inputs)
    normed, is_pre_norm = plan.normed, plan.config.norm == "pre"
    for index, layer in enumerate(part.layers):
        is_embedded = index == 0 and not is_pre_norm
        read = 1.0 if is_embedded else normed
        write = 1.0 if is_embedded or is_pre_norm else normed
        write_later = 1.0 if is_pre_norm else normed
        attentions = 2 if isinstance(layer, DecoderLayer) else 1
        vote = _VOTE_LENGTH / (attentions * plan.config.n_layers * plan.config.n_heads)
        _fill_attention(plan, layer.self_attention, read, read, vote * write)
        if isinstance(layer, DecoderLayer):
            _fill_attention(plan, layer.cross_attention, normed, normed, vote * write_later)
        noise = _FEED_FORWARD_LENGTH / plan.config.n_layers * write_later
        _fill_feed_forward(plan, layer.feed_forward, noise, f"{name}.layers.{index}.feed_forward")
    for module in part.modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()


def _fill_inputs(plan: _Plan, inputs: InputEmbedding) -> None:
    inputs.tokens.weight.copy_(plan.embedding)
    if isinstance(inputs.positions, LearnedPositions):
        inputs.positions.table.copy_(sinusoidal_encoding(*inputs.positions.table.shape))


def _fill_attention(
    plan: _Plan, attention: MultiHeadAttention, query_scale: float, key_scale: float, vote: float
) -> None:
    """Give each head its weights.

    Args:
        plan: of the model.
        attention: to fill.
        query_scale: of the vectors that queries are read from.
        key_scale: of the vectors that keys and values are read from.
        vote: the part of a token's code that one head adds to the votes.
    """
    for parameter in attention.parameters():
        parameter.zero_()
    w_q, w_k, w_v, w_o = attention.w_q, attention.w_k, attention.w_v, attention.w_o
    root = math.sqrt(math.sqrt(attention.head_dim)) if attention.scale_scores else 1.0
    for index in range(attention.n_heads):
        weights = _head(index).build(plan)
        first = index * attention.head_dim
        rows = slice(first, first + len(weights.query))
        w_q.weight[rows] = (root / query_scale * weights.query).float()
        w_k.weight[rows] = (root / key_scale * weights.key).float()
        if weights.query_bias is not None:
            w_q.bias[rows] = (root * weights.query_bias).float()
        values = slice(first, first + plan.code_width)
        w_v.weight[values] = (_code_reader(plan) / key_scale).float()
        if w_o is not None:
            w_o.weight[plan.votes, values] = (vote * plan.basis.T).float()


def _fill_feed_forward(plan: _Plan, feed_forward: FeedForward, length: float, name: str) -> None:
    """Random, of little weight, and written to the votes alone: the heads of later layers do not notice it.

    Hidden units have unit variance, of which the activation leaves about a half.
    """
    generator = named_generator(plan.seed, name)
    d_ff, d_model = feed_forward.w_1.weight.shape
    feed_forward.w_1.weight.normal_(0.0, d_model**-0.5, generator=generator)
    spread = length * math.sqrt(2.0 * d_model / (plan.code_width * d_ff))
    written = torch.empty(plan.code_width, d_ff).normal_(0.0, spread, generator=generator)
    feed_forward.w_2.weight.zero_()
    feed_forward.w_2.weight[plan.votes] = plan.basis.T.float() @ written
    feed_forward.w_1.bias.zero_()
    feed_forward.w_2.bias.zero_()


def _vote_counter(plan: _Plan) -> Tensor:
    """The final linear layer, (V, d_model): how much of each word's code is in the votes."""
    counter = torch.zeros(plan.config.vocab_size, plan.config.d_model, dtype=torch.float64)
    counter[:, plan.votes] = plan.directions[: plan.config.vocab_size] @ plan.basis
    unanimous = _VOTE_LENGTH * math.sqrt(plan.config.d_model) * plan.normed
    return counter * _UNANIMOUS_LOGIT / unanimous
