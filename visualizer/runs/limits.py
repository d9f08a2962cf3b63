"""The limits of what can be drawn, checked before anything is computed."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

from model.texts import texts_of
from visualizer.runs.refusals import WayOut
from visualizer.runs.tokens import Encoded, encode, first_tokens, target_lines, tokenize
from visualizer.settings.attentions import MaskedAttention, attentions_of, seen_by
from visualizer.settings.fields import MAX_SEQUENCES, MAX_TEXT, MAX_TOKENS, TRAINED, USUAL_POSITIONS
from visualizer.settings.lines import lines_of
from visualizer.settings.painted_mask import asks_for_head, read_planes
from visualizer.settings.settings import Settings, TokenKind

say = texts_of(__name__)

MAX_BYTES = 2**30
"""The most memory that one recorded run may take."""

_FLOAT_BYTES = 4
_MIB = 2**20


def problem_with_size(settings: Settings, encoded: Encoded) -> str | None:
    """Say in one sentence why these tokens cannot be run, and what to do; None where they can."""
    if not encoded.sources[0]:
        return say("nothing")
    return _too_much_memory(settings, encoded)


def problem_with_text(settings: Settings) -> str | None:
    """Say why a text cannot be read, before anything is kept of it: it is too long, or its lines do not fit."""
    for name in ("text", "target"):
        length = len(getattr(settings, name))
        if length > MAX_TEXT:
            return say("too_long", name=name, length=length, most=MAX_TEXT, most_tokens=MAX_TOKENS)
    if problem := _too_many_lines(settings) or _lines_without_partner(settings):
        return problem
    return None if settings.weights == TRAINED else _too_many_tokens(settings)


def way_out(settings: Settings) -> WayOut | None:
    """The settings with as much of the text and the target as can be drawn; None where that is all of them."""
    if settings.weights == TRAINED:
        return None
    n_most = _tokens_that_fit(settings)
    shorter = _shortened(settings, n_most)
    n_lines = _lines_that_fit(shorter)
    fitting = replace(shorter, text=_lines(shorter.text, n_lines), target=_lines(shorter.target, n_lines))
    changes = {name: getattr(fitting, name) for name in ("text", "target")}
    changes = {name: text for name, text in changes.items() if text != getattr(settings, name)}
    if not changes:
        return None
    if n_lines < len(lines_of(settings.text)):
        return WayOut(say("use_lines", n=n_lines), changes)
    label = say("use_tokens_of_each", n=n_most) if n_lines > 1 else say("use_tokens", n=n_most)
    return WayOut(label, changes)


def _tokens_that_fit(settings: Settings) -> int:
    """Return the most tokens of each line that can be drawn if one line is to fit into memory; all if none fits."""
    most = MAX_TOKENS - settings.pad
    if problem_with_text(_shortened(settings, most)):
        return most

    def bytes_of_one(n_tokens: int) -> int:
        shorter = _shortened(settings, n_tokens)
        return bytes_for(shorter, encode(shorter), 1)

    if bytes_of_one(most) <= MAX_BYTES:
        return most
    return bisect_right(range(1, most), MAX_BYTES, key=bytes_of_one) or most


def _shortened(settings: Settings, n_tokens: int) -> Settings:
    """The settings with so many tokens of each line at most; a target has one less, behind its start token."""
    shorter = replace(settings, text=_beginning(settings.text, settings.tokens, n_tokens))
    if settings.architecture != "encoder-decoder":
        return shorter
    return replace(shorter, target=_beginning(settings.target, settings.tokens, n_tokens - 1))


def _lines_that_fit(settings: Settings) -> int:
    """Return the number of lines of a text that fit into memory together; all where that cannot be told yet."""
    n_lines = len(lines_of(settings.text))
    if n_lines == 1 or problem_with_text(settings):
        return n_lines
    return _sequences_that_fit(settings, encode(settings))


def _sequences_that_fit(settings: Settings, encoded: Encoded) -> int:
    n_lines = len(encoded.sources)
    return next((n for n in range(n_lines, 1, -1) if bytes_for(settings, encoded, n) <= MAX_BYTES), 1)


def _lines(text: str, n_lines: int) -> str:
    lines = lines_of(text)
    return text if len(lines) <= n_lines else "\n".join(lines[:n_lines])


def _beginning(text: str, kind: TokenKind, n_tokens: int) -> str:
    """The first lines of a text that can be drawn, each up to so many tokens; the text itself where that is all."""
    lines = lines_of(text[:MAX_TEXT])
    shortened = [first_tokens(line, kind, n_tokens) for line in lines[:MAX_SEQUENCES]]
    is_all = len(text) <= MAX_TEXT and tuple(shortened) == lines
    return text if is_all else "\n".join(shortened)


def estimate_bytes(
    settings: Settings,
    n_source: int,
    n_target: int,
    vocabulary_size: int,
    n_sequences: int = 1,
    target_vocabulary_size: int = 0,
) -> int:
    """The memory of a run's weights and of every recorded stage, in bytes, in float32.

    Stages that are views of others (inputs of an attention, heads of a projection) count once.

    Args:
        settings: everything but the texts counts.
        n_source: tokens of the source, S.
        n_target: tokens of the target, T; counts for an encoder-decoder only.
        vocabulary_size: V.
        n_sequences: B.
        target_vocabulary_size: V of the target, where it has a vocabulary of its own.
    """
    output_size = target_vocabulary_size or vocabulary_size
    stacks = _stacks(settings, n_source, n_target)
    n_output = stacks[-1].n_tokens
    embeddings = (vocabulary_size + target_vocabulary_size) * settings.d_model  # one also in the final linear layer
    has_logits = settings.architecture != "attention"
    unembedding_bias = output_size if has_logits and settings.unembedding_bias else 0
    logits_and_probabilities = 2 * n_output * output_size if has_logits else 0
    positions = len(stacks) * n_positions(*(stack.n_tokens for stack in stacks)) * settings.d_model
    weights = embeddings + unembedding_bias + positions + sum(_stack_weights(settings, stack) for stack in stacks)
    stages = sum(_stack_stages(settings, stack) for stack in stacks) + logits_and_probabilities
    masks = sum(_mask_bytes(attention) for stack in stacks for attention in stack.attentions)
    return _FLOAT_BYTES * weights + n_sequences * (_FLOAT_BYTES * stages + masks)


@dataclass(frozen=True)
class _Attention:
    n_queries: int
    n_keys: int
    is_masked: bool
    n_masks: int = 1


@dataclass(frozen=True)
class _Stack:
    """An encoder or a decoder, with the attentions of each of its layers."""

    n_layers: int
    n_tokens: int
    attentions: tuple[_Attention, ...]


def _stacks(settings: Settings, n_source: int, n_target: int) -> tuple[_Stack, ...]:
    n_tokens = {"source": n_source, "target": n_target}

    def of(attention: MaskedAttention) -> _Attention:
        seen = seen_by(attention, settings)
        sizes = (n_tokens[attention.queries], n_tokens[attention.keys])
        return _Attention(*sizes, bool(seen.mask), _n_masks(seen, attention.n_layers(settings)))

    first, *others = (of(attention) for attention in attentions_of(settings.architecture))
    if not others:
        return (_Stack(settings.depth, n_source, (first,)),)
    return (
        _Stack(settings.n_layers, n_source, (first,)),
        _Stack(settings.depth, n_target, tuple(others)),
    )


def n_positions(*n_tokens: int) -> int:
    """Return the number of positions that a model has for sequences of so many tokens."""
    return USUAL_POSITIONS if max(n_tokens) <= USUAL_POSITIONS else MAX_TOKENS


def _stack_weights(settings: Settings, stack: _Stack) -> int:
    width = settings.d_model
    last_norm = 2 * width if _has_last_norm(settings) else 0
    return stack.n_layers * _layer_weights(settings, stack) + last_norm


def _stack_stages(settings: Settings, stack: _Stack) -> int:
    width, n_tokens = settings.d_model, stack.n_tokens
    inputs = 3 * n_tokens * width  # embedding, scaled_embedding, embedded
    last_norm = n_tokens * width if _has_last_norm(settings) else 0
    return inputs + stack.n_layers * _layer_stages(settings, stack) + last_norm


def _has_last_norm(settings: Settings) -> bool:
    return settings.architecture != "attention" and (settings.norm == "pre" or settings.final_norm)


def _layer_weights(settings: Settings, stack: _Stack) -> int:
    width, hidden = settings.d_model, settings.d_ff
    attention = _attention_weights(settings)
    if settings.architecture == "attention":
        return attention
    feed_forward = 2 * width * hidden + hidden + width
    norm = 2 * width
    n_attentions = len(stack.attentions)
    return n_attentions * attention + feed_forward + (n_attentions + 1) * norm


def _attention_weights(settings: Settings) -> int:
    width, inner, output = settings.d_model, _inner_width(settings), _output_width(settings)
    biases = 3 * inner * settings.qkv_bias + output * settings.output_bias
    return 3 * width * inner + inner * output + biases  # w_q, w_k, w_v, w_o


def _layer_stages(settings: Settings, stack: _Stack) -> int:
    width, n_tokens = settings.d_model, stack.n_tokens
    attentions = sum(_attention_stages(settings, attention) for attention in stack.attentions)
    if settings.architecture == "attention":
        return attentions
    feed_forward = n_tokens * (2 * settings.d_ff + width)  # hidden, activation, output
    n_sub_layers = len(stack.attentions) + 1
    residuals_and_norms = (2 + (settings.dropout > 0)) * n_sub_layers * n_tokens * width  # and dropped_output
    return attentions + feed_forward + residuals_and_norms


def _attention_stages(settings: Settings, attention: _Attention) -> int:
    n_queries, n_keys = attention.n_queries, attention.n_keys
    # scores, scaled_scores and weights always; masked_scores is scaled_scores itself where nothing is masked.
    n_grids = 3 + attention.is_masked + (settings.dropout > 0) + bool(settings.score)
    grids = n_grids * settings.n_heads * n_queries * n_keys
    inner = _inner_width(settings)
    projections = (n_queries + 2 * n_keys) * inner  # q_proj, k_proj, v_proj; q, k and v are views of them
    # context and output; concat is a copy of context unless there is a single head.
    results = (1 + (settings.n_heads > 1)) * n_queries * inner + n_queries * _output_width(settings)
    return grids + projections + results


def _output_width(settings: Settings) -> int:
    """The width of what an attention puts out."""
    return (settings.d_out if settings.architecture == "attention" else 0) or settings.d_model


def _inner_width(settings: Settings) -> int:
    """The width of all heads side by side."""
    return settings.n_heads * settings.head_dim if settings.head_dim else settings.d_model


def _mask_bytes(attention: _Attention) -> int:
    """At most: one byte per cell, shared by all layers that have the same mask."""
    return attention.is_masked * attention.n_masks * attention.n_queries * attention.n_keys


def _n_masks(settings: Settings, n_layers: int) -> int:
    """Return the most masks that an attention with these settings can have in all its layers and heads together."""
    scopes = read_planes(settings.custom) if "custom" in settings.mask else {}
    by_layer = any(scope.layer is not None for scope in scopes)
    by_head = any(scope.head is not None or asks_for_head(source) for scope, source in scopes.items())
    return (n_layers if by_layer else 1) * (settings.n_heads if by_head else 1)


def _too_many_lines(settings: Settings) -> str | None:
    n_lines = len(lines_of(settings.text))
    return say("too_many_lines", n_lines=n_lines, most=MAX_SEQUENCES) if n_lines > MAX_SEQUENCES else None


def _lines_without_partner(settings: Settings) -> str | None:
    if settings.architecture != "encoder-decoder" or settings.weights == TRAINED:
        return None
    try:
        target_lines(settings)
    except ValueError as error:
        return str(error)
    return None


def _too_many_tokens(settings: Settings) -> str | None:
    starts = {"text": 0, "target": 1} if settings.architecture == "encoder-decoder" else {"text": 0}
    for name, n_start in starts.items():
        lines = lines_of(getattr(settings, name))
        n_tokens = max(_count_if_many(line, settings.tokens) for line in lines) + n_start + settings.pad
        if n_tokens > MAX_TOKENS:
            what = name if len(lines) == 1 else say("longest_line", name=name)
            how = _SHORTEN[settings.tokens]
            if settings.pad:
                return say("too_many_padded", what=what, n_tokens=n_tokens, most=MAX_TOKENS, how=how)
            return say("too_many_tokens", what=what, n_tokens=n_tokens, most=MAX_TOKENS, how=how)
    return None


def _count_if_many(line: str, kind: TokenKind) -> int:
    """The number of tokens of a line; 0 where these are so few characters that they cannot be too many."""
    most = len(line) * (_MOST_BYTES if kind == "bytes" else 1)
    return len(tokenize(line, kind)) if most > MAX_TOKENS // 2 else 0


_MOST_BYTES = 4  # of a character in UTF-8
_SHORTEN = {
    "words": say("shorten"),
    "characters": say("shorten_or_words"),
    "bytes": say("shorten_or_coarser"),
}


def _too_much_memory(settings: Settings, encoded: Encoded) -> str | None:
    needed = bytes_for(settings, encoded)
    if needed <= MAX_BYTES:
        return None
    n_lines, n_fitting = len(encoded.sources), _sequences_that_fit(settings, encoded)
    if n_fitting < n_lines:
        advice = say("fewer_lines", n_fitting=n_fitting, n_lines=n_lines)
    else:
        changes = _fewer_layers(settings, encoded)
        advice = say("fewer_layers", changes=changes) if changes else say("less")
    return say("too_much_memory", needed=needed / _MIB, most=MAX_BYTES // _MIB, advice=advice)


def _fewer_layers(settings: Settings, encoded: Encoded) -> str:
    """Say how far to lower ``n_layers``, and ``n_decoder_layers`` where it is apart; empty for single layers."""
    deepest = max(settings.n_layers, settings.depth)
    fewer = (_at_most(settings, n_layers) for n_layers in range(deepest - 1, 0, -1))
    less = next((less for less in fewer if bytes_for(less, encoded) <= MAX_BYTES), _at_most(settings, 1))
    numbers = ((name, getattr(settings, name), getattr(less, name)) for name in ("n_layers", "n_decoder_layers"))
    return say("separator").join(
        say("change", name=name, now=now, less=to) for name, now, to in numbers if now != to
    )


def _at_most(settings: Settings, n_layers: int) -> Settings:
    return replace(
        settings,
        n_layers=min(settings.n_layers, n_layers),
        n_decoder_layers=min(settings.n_decoder_layers, n_layers),
    )


def bytes_for(settings: Settings, encoded: Encoded, n_sequences: int | None = None) -> int:
    """The memory of a run, or of one of so many of its sequences, in bytes."""
    n_target = len(encoded.targets[0]) if encoded.targets is not None else 0
    n_target_words = 0 if encoded.target_vocabulary is None else len(encoded.target_vocabulary)
    return estimate_bytes(
        settings,
        len(encoded.sources[0]),
        n_target,
        len(encoded.vocabulary),
        n_sequences or len(encoded.sources),
        n_target_words,
    )
