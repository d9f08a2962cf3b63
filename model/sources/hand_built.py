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
  mean: codes and votes sum to zero, and what reads positions is made to with entries where nothing is to be read.
  The deviation is nearly the same for all tokens, since every code is equally long, and so is every position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import cast

import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention
from model.attention_alone import AttentionAlone
from model.config import TransformerConfig
from model.feed_forward import FeedForward
from model.fused_projection import projections_of
from model.layers import DecoderLayer, EncoderLayer
from model.positional_encoding import LearnedPositions, sinusoidal_encoding
from model.randomness import named_generator
from model.transformer import Decoder, Encoder, InputEmbedding, Transformer

NARROWEST = 6
"""The least d_model with room for codes and votes."""

_USUAL_TEXT = 512
"""Up to so many tokens every model is made to tell positions apart; one with a greater ``max_len`` beyond that."""

_MOST_PAIRS = 16
_ROOMY = 8
"""From this head_dim on, a head does with a pair less, to have a row for making the best score 0."""

_USUAL_WORDS, _CANDIDATES = 64, 64
_WIDEST_CODE = 24

_MARGIN = 6.0
"""By how much the score of what a head looks for is to exceed all others: e^-6 is 1 / 400."""
_LEAST_GAIN, _GREATEST_GAIN = 20.0, 100.0

_VOTE_LENGTH, _FEED_FORWARD_LENGTH = 0.5, 0.05
"""Length of the votes where all heads agree, and of what all feed-forward networks add; a code has length 1."""
_UNANIMOUS_LOGIT = 12.0


def fill_hand_built(model: Transformer | AttentionAlone, seed: int) -> None:
    """Fill every parameter of a model.

    Each head gives what it looks for at least 0.9 of its weight in every layer: in texts of up to 512 tokens from
    d_model 64 and head_dim 8 on (0.85 in texts of up to 1,024, where ``max_len`` is as much), in short ones from
    head_dim 4 on. A head that the model lacks something for is uniform (``hand_built_names`` says which).
    Learned positions are filled with the sinusoids.

    Args:
        model: with an untied final linear layer; tied to the embedding, it would read codes instead of votes. An
            attention alone has none: what it puts out begins with the mean of the codes that its heads looked at.
        seed: of the codes and the feed-forward networks; what the heads do is the same for all.

    Raises:
        ValueError: the embeddings are tied, or d_model is below ``NARROWEST``.
    """
    config = model.config
    if config.tied_embeddings and isinstance(model, Transformer):
        raise ValueError("tied_embeddings (True) must be False: votes are not counted with the embedding")
    if config.d_model < NARROWEST:
        raise ValueError(f"d_model ({config.d_model}) must be at least {NARROWEST} for hand-built heads")
    plan = output_plan = _Plan(config, config.vocab_size, seed, "codes")
    if config.target_vocab_size is not None:
        output_plan = _Plan(config, config.target_vocab_size, seed, "target codes")
    with torch.no_grad():
        if isinstance(model, AttentionAlone):
            _fill_inputs(plan, model.inputs)
            mean_of_codes = torch.eye(config.d_out or config.d_model, plan.code_width) / config.n_heads
            _fill_attention(plan, model.attention, 1.0, 1.0, mean_of_codes)
            return
        if model.encoder is not None:
            _fill_part(plan, "encoder", model.encoder)
        if model.decoder is not None:
            _fill_part(output_plan, "decoder", model.decoder)
        model.unembedding.weight.copy_(_vote_counter(output_plan))
        if model.unembedding.bias is not None:
            model.unembedding.bias.zero_()


def hand_built_names(config: TransformerConfig) -> tuple[str, ...]:
    """Name what each head does, in the order of the heads.

    A head that the model lacks something for is uniform, and its name says so: ``next token (no positions)``.
    """
    heads = [_head(index) for index in range(config.n_heads)]
    return tuple(f"{head.name} ({lack})" if (lack := head.lacks(config)) else head.name for head in heads)


# The heads.


@dataclass(frozen=True, eq=False)
class _HeadWeights:
    """The weights by which a head reads vectors that no layer norm has scaled yet.

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
        lacks: what a model lacks for it, in a word or two; empty where it lacks nothing.
    """

    name: str
    build: Callable[[_Plan], _HeadWeights]
    lacks: Callable[[TransformerConfig], str]


def _offset_head(plan: _Plan, offset: int) -> _HeadWeights:
    """Attend to the token ``offset`` places on.

    The query is the position ``offset`` on from its own, the key its position: their product, a sum of
    cos(rate * (key - query - offset)), is greatest where key = query + offset.
    """
    reader = _position_reader(plan) / math.sqrt(len(plan.pairs))
    return _sharpened(plan, plan.position_gain, _HeadWeights(_shift(plan.rates, offset) @ reader, reader))


def _first_token_head(plan: _Plan) -> _HeadWeights:
    """Attend to position 0: whatever its token, a query asks for the cosines there, which are all 1.

    It asks by its bias, or, where it has none, by the dimension that holds 1 for every token.
    """
    cosines = _position_reader(plan)[1::2] / math.sqrt(len(plan.pairs))
    wanted = torch.full((len(cosines),), len(cosines) ** -0.5, dtype=torch.float64)
    if plan.config.qkv_bias:
        asking = _HeadWeights(torch.zeros_like(cosines), cosines, wanted)
    else:
        asking = _HeadWeights(wanted[:, None] * _blind_to_mean(plan, _unit_rows(plan, [plan.one])), cosines)
    return _sharpened(plan, plan.position_gain, asking)


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
    if len(query) < plan.config.width_of_head:
        one = _blind_to_mean(plan, _unit_rows(plan, [plan.one]))
        key = torch.cat([key, -one])
        query = torch.cat([query, one if bias is None else torch.zeros_like(one)])
        bias = None if bias is None else torch.cat([bias, torch.ones(1, dtype=torch.float64)])
    root = math.sqrt(gain)
    return _HeadWeights(root * query, root * key, None if bias is None else root * bias)


def _lacks_for_place(config: TransformerConfig) -> str:
    if config.positions == "none":
        return "no positions"
    return "" if _n_position_pairs(config) else "too narrow"


def _lacks_for_offset(config: TransformerConfig) -> str:
    return _lacks_for_place(config) or ("too narrow" if config.width_of_head < 2 else "")


def _lacks_for_codes(config: TransformerConfig) -> str:
    return "too narrow" if _code_width(config) < 2 else ""


def _offset(name: str, offset: int) -> _Head:
    return _Head(name, partial(_offset_head, offset=offset), _lacks_for_offset)


_FIRST_HEADS = (
    _offset("previous token", -1),
    _offset("next token", 1),
    _Head("same token", _same_token_head, _lacks_for_codes),
    _Head("first token", _first_token_head, _lacks_for_place),
    _offset("itself", 0),
    _Head("uniform", _uniform_head, lambda config: ""),
)
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def _head(index: int) -> _Head:
    """The head at a place: after the first ones two back, two ahead, three back, three ahead, and so on."""
    if index < len(_FIRST_HEADS):
        return _FIRST_HEADS[index]
    further, is_ahead = divmod(index - len(_FIRST_HEADS), 2)
    distance = further + 2
    number = _NUMBERS[further] if further < len(_NUMBERS) else str(distance)
    return _offset(f"{number} ahead", distance) if is_ahead else _offset(f"{number} back", -distance)


# The plan: what is where in the residual stream.


class _Plan:
    """The layout of the residual stream, and what the heads need to know of it.

    Attributes:
        config: of the model.
        vocab_size: number of words that have a code.
        seed: of everything drawn.
        codes_name: what the codes are drawn under; two vocabularies have codes of their own.
        zero, one: dimensions that hold 0 and 1 for every token.
        code_width: how many numbers tell words apart; codes have one dimension more, in which they sum to zero.
        codes, votes: dimensions, ``code_width + 1`` each.
        n_pairs: how many pairs of dimensions, from the first on, are left to positions.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int, seed: int, codes_name: str) -> None:
        self.config, self.vocab_size, self.seed, self.codes_name = config, vocab_size, seed, codes_name
        d_model = config.d_model
        self.one, self.zero = (d_model - 2, d_model - 1) if d_model % 2 else (d_model - 1, d_model - 2)
        self.code_width = _code_width(config)
        self.codes = slice(d_model - 2 - (self.code_width + 1), d_model - 2)
        self.votes = slice(self.codes.start - (self.code_width + 1), self.codes.start)
        self.n_pairs = _n_position_pairs(config)

    @property
    def longest_text(self) -> int:
        """Up to how many tokens the pairs are chosen to tell positions apart.

        Beyond the usual text it is more than any position: the slow pairs drift from where they rest, and what is
        chosen with room to spare still does at the last positions.
        """
        max_len = self.config.max_len
        return _USUAL_TEXT if max_len <= _USUAL_TEXT else max_len * 3 // 2

    @cached_property
    def directions(self) -> Tensor:
        """One direction of length 1 per word, of at least a usual text: (V or more, code_width)."""
        count = max(self.vocab_size, _USUAL_WORDS)
        return spread_directions(count, self.code_width, named_generator(self.seed, self.codes_name))

    @cached_property
    def heads(self) -> list[_HeadWeights]:
        """The weights of each head, the same in every layer but for the scale of what is read."""
        heads = [_head(index) for index in range(self.config.n_heads)]
        return [_uniform_head(self) if head.lacks(self.config) else head.build(self) for head in heads]

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

        It mixes ``zero``, the sum of the code and that of the votes. Each would be 0 but for a slow drift of the
        positions; mixed by least squares, in which the first positions weigh most, the drifts nearly cancel.
        """
        parts = torch.zeros(self.config.d_model, 3, dtype=torch.float64)
        parts[self.zero, 0] = 1.0
        parts[self.codes, 1] = parts[self.votes, 2] = 1.0 / (self.code_width + 1)
        table = sinusoidal_encoding(self.longest_text, self.config.d_model)
        near_first = 1.0 / torch.arange(1, self.longest_text + 1, dtype=torch.float64)[:, None]
        drift = (table - table[0]) @ parts * near_first
        shares = torch.linalg.lstsq(drift[:, 1:] - drift[:, :1], -drift[:, :1]).solution
        return parts @ torch.cat([1.0 - shares.sum(0, keepdim=True), shares])[:, 0]

    @cached_property
    def resting(self) -> Tensor:
        """The resting value of the positional encoding, (d_model,)."""
        if self.config.positions == "none":
            return torch.zeros(self.config.d_model, dtype=torch.float64)
        return sinusoidal_encoding(1, self.config.d_model)[0]

    @cached_property
    def pairs(self) -> list[int]:
        """The pairs by which heads tell positions apart."""
        head_dim = self.config.width_of_head
        room = (head_dim - 1) // 2 if head_dim >= _ROOMY else max(head_dim // 2, 1)
        most = min(room, self.n_pairs, _MOST_PAIRS)
        return choose_pairs(_rates(self.config.d_model)[: self.n_pairs], most, self.longest_text)

    @property
    def rates(self) -> Tensor:
        """Radians per position of ``pairs``."""
        return _rates(self.config.d_model)[self.pairs]

    @cached_property
    def position_gain(self) -> float:
        """The scaled score by which a position exceeds one that is not like it at all."""
        return _gain(float(_likeness(self.rates, self.longest_text).max()))

    @cached_property
    def code_gain(self) -> float:
        """The same for tokens; twice as much, since a text may have more words than the usual ones."""
        usual = self.directions[:_USUAL_WORDS]
        return 2 * _gain(float((usual @ usual.T).fill_diagonal_(-1.0).max()))

    @cached_property
    def embedding(self) -> Tensor:
        """(V, d_model), to be multiplied by sqrt(d_model): codes of length 1, so of unit variance in the model."""
        vocab_size, d_model = self.vocab_size, self.config.d_model
        wanted = torch.zeros(vocab_size, d_model, dtype=torch.float64)
        wanted[:, self.codes] = self.directions[:vocab_size] @ self.basis * math.sqrt(d_model)
        wanted[:, self.one] = 1.0
        first_slow = 2 * self.n_pairs
        wanted[:, first_slow:] -= self.resting[first_slow:]
        return wanted / math.sqrt(d_model)

    @cached_property
    def normed(self) -> float:
        """By what layer norm multiplies an embedded token, on average over the first positions."""
        embedded = self.embedding[:1] * math.sqrt(self.config.d_model)
        if self.config.positions != "none":
            embedded = embedded + sinusoidal_encoding(32, self.config.d_model)
        return float((1.0 / embedded.std(-1, correction=0)).mean())


def _code_width(config: TransformerConfig) -> int:
    """As wide as a head, less one for the row that makes the best score 0, where that leaves enough."""
    in_head = config.width_of_head - 1 if config.width_of_head > 2 else config.width_of_head
    return max(min(in_head, config.d_model // 4 - 1, _WIDEST_CODE), 1)


def _n_position_pairs(config: TransformerConfig) -> int:
    return (config.d_model - 2 - 2 * (_code_width(config) + 1)) // 2


def _gain(closest: float) -> float:
    """Return the factor for scores of at most 1 that makes 1 exceed ``closest`` by ``_MARGIN``, within limits."""
    return min(max(_MARGIN / max(1.0 - closest, 1e-9), _LEAST_GAIN), _GREATEST_GAIN)


def _rates(d_model: int) -> Tensor:
    """Radians per position of every pair of the sinusoidal encoding."""
    return 10000.0 ** (-torch.arange(0, d_model - 1, 2, dtype=torch.float64) / d_model)


def _likeness(rates: Tensor, longest_text: int) -> Tensor:
    """Return how alike two positions are at each distance from 1 on: the mean of cos(rate * distance)."""
    distance = torch.arange(1, longest_text, dtype=torch.float64)
    return torch.cos(rates[..., None] * distance).mean(-2)


def choose_pairs(rates: Tensor, most: int, longest_text: int = _USUAL_TEXT) -> list[int]:
    """Choose pairs, at most ``most``, that together tell a position from all others.

    One after the other, the pair that leaves the least weight on other positions. Near ones count more: even short
    texts have them.

    Args:
        rates: radians per position of the pairs to choose from.
        most: how many.
        longest_text: the distances are below this many tokens.

    Returns:
        Their indices.
    """
    distance = torch.arange(1, longest_text, dtype=torch.float64)
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
    candidates = nn.functional.normalize(candidates, dim=-1)
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
    pair = torch.arange(len(rates))
    blocks = torch.zeros(len(rates), 2, len(rates), 2, dtype=torch.float64)
    blocks[pair, :, pair] = rotations
    return blocks.reshape(2 * len(rates), 2 * len(rates))


def _unit_rows(plan: _Plan, dimensions: Sequence[int]) -> Tensor:
    """Rows that read one dimension each."""
    rows = torch.zeros(len(dimensions), plan.config.d_model, dtype=torch.float64)
    rows[torch.arange(len(dimensions)), torch.tensor(dimensions)] = 1.0
    return rows


def _blind_to_mean(plan: _Plan, rows: Tensor) -> Tensor:
    """The rows, made to sum to zero, so that layer norm's subtraction of the mean changes nothing they read."""
    return rows - rows.sum(-1, keepdim=True) * plan.blank


# Filling the model.


def _fill_part(plan: _Plan, name: str, part: Encoder | Decoder) -> None:
    """Fill an encoder or a decoder.

    What a vector of the residual stream holds is ``plan.normed`` times what it was in the embedding wherever a norm
    stands before. Rows that read are divided by this scale, columns that write multiplied by it.
    """
    _fill_inputs(plan, part.inputs)
    normed, is_pre_norm = plan.normed, plan.config.norm == "pre"
    layers = cast("Iterable[EncoderLayer | DecoderLayer]", part.layers)
    for index, layer in enumerate(layers):
        is_embedded = index == 0 and not is_pre_norm
        read = 1.0 if is_embedded else normed
        write = 1.0 if is_embedded or is_pre_norm else normed
        write_later = 1.0 if is_pre_norm else normed
        attentions = 2 if isinstance(layer, DecoderLayer) else 1
        vote = _VOTE_LENGTH / (attentions * len(part.layers) * plan.config.n_heads)
        _fill_attention(plan, layer.self_attention, read, read, _voting(plan, vote * write))
        if isinstance(layer, DecoderLayer):
            _fill_attention(plan, layer.cross_attention, normed, normed, _voting(plan, vote * write_later))
        noise = _FEED_FORWARD_LENGTH / len(part.layers) * write_later
        _fill_feed_forward(plan, layer.feed_forward, noise, f"{name}.layers.{index}.feed_forward")
    for module in part.modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()


def _fill_inputs(plan: _Plan, inputs: InputEmbedding) -> None:
    inputs.tokens.weight.copy_(plan.embedding)
    if isinstance(inputs.positions, LearnedPositions):
        inputs.positions.table.copy_(sinusoidal_encoding(*inputs.positions.table.shape))


def _voting(plan: _Plan, vote: float) -> Tensor:
    """Return the matrix that writes the code a head found to the residual stream: this part of it, to the votes."""
    columns = torch.zeros(plan.config.d_model, plan.code_width, dtype=torch.float64)
    columns[plan.votes] = vote * plan.basis.T
    return columns


def _fill_attention(
    plan: _Plan, attention: MultiHeadAttention, query_scale: float, key_scale: float, output: Tensor
) -> None:
    """Give each head its weights.

    Args:
        plan: of the model.
        attention: to fill.
        query_scale: of the vectors that queries are read from.
        key_scale: of the vectors that keys and values are read from.
        output: what one head puts out of the code that it found, (d_out, code_width).
    """
    for parameter in attention.parameters():
        parameter.zero_()
    (w_q, w_k, w_v), w_o = projections_of(attention), attention.w_o
    root = math.sqrt(math.sqrt(attention.head_dim)) if attention.scale_scores else 1.0
    for index, weights in enumerate(plan.heads):
        first = index * attention.head_dim
        rows = slice(first, first + len(weights.query))
        w_q.weight[rows] = root / query_scale * weights.query
        w_k.weight[rows] = root / key_scale * weights.key
        if w_q.bias is not None and weights.query_bias is not None:
            w_q.bias[rows] = root * weights.query_bias
        values = slice(first, first + plan.code_width)
        w_v.weight[values] = _code_reader(plan) / key_scale
        if w_o is not None:
            w_o.weight[:, values] = output.to(w_o.weight.dtype)


def _fill_feed_forward(plan: _Plan, feed_forward: FeedForward, length: float, name: str) -> None:
    """Random, of little weight, and written to the votes alone: the heads of later layers do not notice it.

    Hidden units have unit variance, of which the activation leaves about a half.
    """
    generator = named_generator(plan.seed, name)
    d_ff, d_model = feed_forward.w_1.weight.shape
    feed_forward.w_1.weight.normal_(0.0, d_model**-0.5, generator=generator)
    spread = length * math.sqrt(2.0 * d_model / (plan.code_width * d_ff))
    noise = torch.empty(plan.code_width, d_ff).normal_(0.0, spread, generator=generator)
    feed_forward.w_2.weight.zero_()
    feed_forward.w_2.weight[plan.votes] = plan.basis.T.to(noise.dtype) @ noise
    feed_forward.w_1.bias.zero_()
    feed_forward.w_2.bias.zero_()


def _vote_counter(plan: _Plan) -> Tensor:
    """The final linear layer, (V, d_model): how much of each word's code is in the votes."""
    counter = torch.zeros(plan.vocab_size, plan.config.d_model, dtype=torch.float64)
    counter[:, plan.votes] = plan.directions[: plan.vocab_size] @ plan.basis
    unanimous = _VOTE_LENGTH * math.sqrt(plan.config.d_model) * plan.normed
    return counter * _UNANIMOUS_LOGIT / unanimous
