"""A text as the tokenizer of a checkpoint sees it: readable pieces, ids, special tokens and places in the text."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from headlight.pretrained.checkpoint import Checkpoint

MOST_LINES = 16
"""The most sequences that are read at once."""

_BLANK = "\u2581"
"""SentencePiece's character for a blank."""


@dataclass(frozen=True)
class Piece:
    """One token.

    Attributes:
        text: what it stands for, readable; bytes that are no whole character as ``<E2 9C>``.
        raw: how the vocabulary writes it.
        id: its number in the vocabulary.
        special: whether it stands for no text, as ``[CLS]``.
        start: where it begins in the text that was tokenized; None where that is not known.
        end: where it ends.
        part: 1 in the second of a pair of texts, else 0.
        padding: whether it only fills a sequence up.
    """

    text: str
    raw: str
    id: int
    special: bool
    start: int | None = None
    end: int | None = None
    part: int = 0
    padding: bool = False


@dataclass(frozen=True, eq=False)
class Tokenized:
    """The input of a model.

    Attributes:
        pieces: the tokens of its only sequence, of the first of several, or of the source.
        target: the tokens of the decoder, of an encoder-decoder.
        text: what was tokenized; with a template, what that made of it.
        inputs: the arguments of the model's ``forward``, (B, T) each.
        lines: of several sequences the tokens of each, filled up to one length.
    """

    pieces: tuple[Piece, ...]
    target: tuple[Piece, ...]
    text: str
    inputs: Mapping[str, Tensor]
    lines: tuple[tuple[Piece, ...], ...] = ()


@dataclass(frozen=True)
class Words:
    """The words that a person wrote for a model.

    Attributes:
        text: the text, or the source.
        second: the second of a pair for an encoder, the target for an encoder-decoder; "" for none.
        chat: whether the text is what is said to an assistant, in the template of the checkpoint.
        batch: whether each line of the text is a sequence of its own.
    """

    text: str
    second: str = ""
    chat: bool = False
    batch: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The sequences: in a batch the lines that are not blank."""
        lines = tuple(line for line in self.text.splitlines() if line.strip()) if self.batch else ()
        return lines or (self.text,)


class TooLongError(ValueError):
    """Too long a text. The message is one sentence.

    Attributes:
        most: the most tokens of one sequence that can be taken.
    """

    def __init__(self, sentence: str, most: int) -> None:
        super().__init__(sentence)
        self.most = most


def tokenized(checkpoint: Checkpoint, words: Words, most: int) -> Tokenized:
    """Tokenize a text for a checkpoint.

    Args:
        checkpoint: whose tokenizer it is.
        words: what was written.
        most: the most tokens that are taken, if the model itself takes as many.

    Raises:
        TooLongError: there are too many tokens.
        ValueError: there is none, or too many lines; one sentence.
    """
    if len(words.lines) > 1 and checkpoint.part != "encoder-decoder":
        return _batch(
            checkpoint, [tokenized(checkpoint, Words(line, "", words.chat), most) for line in words.lines]
        )
    tokenizer = checkpoint.tokenizer
    if checkpoint.part == "encoder-decoder":
        found = _source_and_target(checkpoint, words)
    elif checkpoint.part == "encoder" and words.second:
        encoding = tokenizer(words.text, words.second, **_asked(tokenizer))
        found = Tokenized(pieces_of(tokenizer, encoding), (), words.text, _inputs(encoding))
    else:
        text = in_template(checkpoint, words.text) if words.chat and checkpoint.chats else words.text
        encoding = tokenizer(text, add_special_tokens=text is words.text, **_asked(tokenizer))
        found = Tokenized(pieces_of(tokenizer, encoding), (), text, _inputs(encoding))
    _check_length(checkpoint, found, most)
    inputs = {name: value.to(checkpoint.device) for name, value in found.inputs.items()}
    return replace(found, inputs=inputs)


def _batch(checkpoint: Checkpoint, encodings: Sequence[Tokenized]) -> Tokenized:
    """Several sequences filled up to one length, on the side and with the token that the tokenizer says.

    Raises:
        ValueError: there are too many.
    """
    if len(encodings) > MOST_LINES:
        raise ValueError(f"There are more than {MOST_LINES} lines: as many are read at once.")
    tokenizer, longest = checkpoint.tokenizer, max(len(each.pieces) for each in encodings)
    known = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
    filler = next(token for token in known if token is not None)
    piece = Piece(
        *_written(tokenizer, filler, is_special=True, has_bytes=False), filler, special=True, padding=True
    )
    is_left = tokenizer.padding_side == "left"

    def filled(values: Tensor, value: int) -> Tensor:
        missing = longest - values.shape[1]
        return F.pad(values, (missing, 0) if is_left else (0, missing), value=value)

    masks = [each.inputs.get("attention_mask", torch.ones_like(each.inputs["input_ids"])) for each in encodings]
    inputs = {"attention_mask": torch.cat([filled(mask, 0) for mask in masks])}
    for name in encodings[0].inputs.keys() - inputs.keys():
        value = filler if name == "input_ids" else 0
        inputs[name] = torch.cat([filled(each.inputs[name], value) for each in encodings])
    lines = []
    for each in encodings:
        padding = (piece,) * (longest - len(each.pieces))
        lines.append((*padding, *each.pieces) if is_left else (*each.pieces, *padding))
    return Tokenized(lines[0], (), "\n".join(each.text for each in encodings), inputs, tuple(lines))


def _check_length(checkpoint: Checkpoint, found: Tokenized, most: int) -> None:
    own = checkpoint.most_tokens
    longest = max(len(found.pieces), len(found.target))
    if own is not None and longest > own:
        sentence = f"The text has {longest:,} tokens: {checkpoint.name} has positions for {own:,}."
        raise TooLongError(sentence, min(own, most))
    if longest > most:
        raise TooLongError(f"The text has {longest:,} tokens; at most {most:,} are drawn.", most)
    if not found.pieces:
        raise ValueError("The text has no token: type something.")


def beginning(checkpoint: Checkpoint, text: str, n_tokens: int, *, chat: bool = False) -> str:
    """As much of a text as has so many tokens, with special ones; all of it where their places are not known.

    chat: whether those of the checkpoint's template count too.
    """
    tokenizer = checkpoint.tokenizer
    pieces = pieces_of(tokenizer, tokenizer(text, **_asked(tokenizer)))
    ends = [piece.end for piece in pieces if piece.end is not None]

    def fits(part: str) -> bool:
        whole = in_template(checkpoint, part) if chat else part
        return len(tokenizer(whole, add_special_tokens=not chat)["input_ids"]) <= n_tokens

    if fits(text):
        return text
    parts = (text[:end] for end in reversed(ends[: n_tokens - (len(pieces) - len(ends))]))
    return next(filter(fits, parts), text)  # half a word may have more tokens than it gave


def in_template(checkpoint: Checkpoint, text: str) -> str:
    """A text as it is said to an assistant, up to where the answer begins.

    Raises:
        ValueError: the template of the checkpoint does not take it.
    """
    try:
        made = checkpoint.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
        )
    except Exception as error:  # a template is a small program of the checkpoint's, and fails as it likes
        raise ValueError(f"The chat template of {checkpoint.name} does not take this: {error}") from error
    return str(made)


def _source_and_target(checkpoint: Checkpoint, words: Words) -> Tokenized:
    """The source, and the target as the decoder is given it: its start token, and the target without its end."""
    tokenizer = checkpoint.tokenizer
    encoding = tokenizer(words.text, **_asked(tokenizer))
    start = start_of_target(checkpoint)
    target: tuple[Piece, ...] = (Piece(*_written(tokenizer, start, is_special=True, has_bytes=False), start, True),)
    if words.second:
        goal = tokenizer(text_target=words.second, **_asked(tokenizer))
        own = pieces_of(tokenizer, goal)
        target += own[:-1] if own and own[-1].id == tokenizer.eos_token_id else own
    ids = torch.tensor([[piece.id for piece in target]])
    inputs = {**_inputs(encoding), "decoder_input_ids": ids}
    return Tokenized(pieces_of(tokenizer, encoding), target, words.text, inputs)


def start_of_target(checkpoint: Checkpoint) -> int:
    """The id that the decoder of an encoder-decoder begins with."""
    config = checkpoint.model.config
    start = getattr(config, "decoder_start_token_id", None)
    if start is None:
        start = getattr(config, "bos_token_id", None)
    return int(start or 0)


def _asked(tokenizer: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"return_tensors": "pt", "return_offsets_mapping": tokenizer.is_fast}


def _inputs(encoding: Any) -> dict[str, Tensor]:  # noqa: ANN401
    known = ("input_ids", "attention_mask", "token_type_ids")
    return {name: encoding[name] for name in known if name in encoding}


def pieces_of(tokenizer: Any, encoding: Any) -> tuple[Piece, ...]:  # noqa: ANN401
    """The tokens of the first sequence of what a tokenizer gave."""
    pieces = pieces_of_ids(tokenizer, encoding["input_ids"][0].tolist())
    offsets = encoding["offset_mapping"][0].tolist() if "offset_mapping" in encoding else [None] * len(pieces)
    parts = encoding.sequence_ids(0) if tokenizer.is_fast else [0] * len(pieces)
    found: list[Piece] = []
    for piece, place, part in zip(pieces, offsets, parts, strict=True):
        start, end = (None, None) if place is None or piece.special else place
        before = found[-1].part if found else 0
        found.append(replace(piece, start=start, end=end, part=before if part is None else part))
    return tuple(found)


def pieces_of_ids(tokenizer: Any, ids: Iterable[int]) -> tuple[Piece, ...]:  # noqa: ANN401
    """Tokens without a place in a text, as a model writes them."""
    special, has_bytes = set(tokenizer.all_special_ids), _has_bytes(tokenizer)
    return tuple(
        Piece(
            *_written(tokenizer, token, is_special=token in special, has_bytes=has_bytes), token, token in special
        )
        for token in ids
    )


def _written(tokenizer: Any, token: int, *, is_special: bool, has_bytes: bool) -> tuple[str, str]:  # noqa: ANN401
    """A token as a person reads it, and as the vocabulary has it."""
    raw = tokenizer.convert_ids_to_tokens(token)
    if raw is None:  # the embedding may have more rows than the vocabulary has tokens
        return f"<{token}>", ""
    if is_special:
        return raw, raw
    if has_bytes:
        return readable_bytes(raw), raw
    if not tokenizer.vocab_files_names and tokenizer.convert_tokens_to_string([raw]) != raw:
        return _partly(raw.encode("latin-1")), raw  # a byte, which is the character with its number
    return raw.replace(_BLANK, " "), raw


def _has_bytes(tokenizer: Any) -> bool:  # noqa: ANN401
    """True if its vocabulary writes bytes as characters, as that of GPT-2 does."""
    return tokenizer.is_fast and "ByteLevel" in repr(tokenizer.backend_tokenizer.decoder)[:10_000]


def readable_bytes(raw: str) -> str:
    """The text of a token of a byte-level vocabulary; bytes that are no whole character as ``<E2 9C>``."""
    known = byte_of_character()
    if not known.keys() >= set(raw):  # an added token, which is written as it is
        return raw
    return _partly(bytes(known[character] for character in raw))


def _partly(data: bytes) -> str:
    """Bytes as text, those that are no whole character in hexadecimal."""
    return data.decode(errors="headlight.hexadecimal")


def _in_hexadecimal(error: UnicodeError) -> tuple[str, int]:
    """The bytes that are no character, up to the next one that can begin one; and where that is."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    end = error.end
    while end < len(error.object) and error.object[end] & 0xC0 == 0x80:
        end += 1
    return f"<{error.object[error.start : end].hex(' ').upper()}>", end


codecs.register_error("headlight.hexadecimal", _in_hexadecimal)


@cache
def byte_of_character() -> Mapping[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for (Radford et al., 2019)."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {character: byte for byte, character in bytes_to_unicode().items()}  # type: ignore[no-untyped-call]
