"""From text to tokens to ids, and text that a person typed made safe to draw.

A text may hold anything: control characters, other directions, emoji of many code points, lone surrogates, markup.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from model.texts import texts_of
from visualizer.safe_text import _EMOJI, graphemes, visible
from visualizer.settings.lines import lines_of

if TYPE_CHECKING:  # settings quotes what a link holds with `visible_whole`
    from visualizer.settings.settings import PadSide, Settings, TokenKind

say = texts_of(__name__)

PADDING, START = "<pad>", "<s>"
SPECIALS = (PADDING, START)
"""The tokens with ids 0 and 1. No token of a text is ever one of them, whatever the text says."""

PADDING_ID, START_ID = 0, 1


# Text to tokens.


def tokenize(text: str, kind: TokenKind) -> list[str]:
    """Split a text into tokens.

    - ``words``: words, numbers, and everything else one character at a time; white space only separates. An
      apostrophe between letters stays in its word, a point or comma between digits in its number, and each Chinese
      character is a word.
    - ``characters``: characters as a person sees them (``graphemes``), white space included.
    - ``bytes``: the bytes of UTF-8: ASCII as the character, others as ``0xC3``.
    """
    return list(_tokenized(text, kind))


@lru_cache(maxsize=64)
def _tokenized(text: str, kind: TokenKind) -> tuple[str, ...]:
    match kind:
        case "words":
            return tuple(_words(text))
        case "characters":
            return tuple(graphemes(text))
        case "bytes":
            return tuple(_BYTES[byte] for byte in text.encode("utf-8", "surrogatepass"))


def first_tokens(text: str, kind: TokenKind, n_tokens: int) -> str:
    """A beginning of a text, as long as can be, that has at most so many tokens."""
    if len(tokenize(text, kind)) <= n_tokens:
        return text
    ends = range(len(text) + 1)
    return text[: bisect_right(ends, n_tokens, key=lambda end: len(tokenize(text[:end], kind))) - 1]


_BYTES = tuple(chr(byte) if byte < 0x80 else f"0x{byte:02X}" for byte in range(256))
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def _words(text: str) -> Iterator[str]:
    clusters = graphemes(text)
    word: list[str] = []
    for cluster, following in zip(clusters, [*clusters, " "][1:], strict=True):
        if _is_of_word(cluster) or (word and _joins(word[-1], cluster, following)):
            word.append(cluster)
            continue
        if word:
            yield "".join(word)
            word = []
        if not cluster.isspace():
            yield cluster.strip()
    if word:
        yield "".join(word)


def _is_of_word(cluster: str) -> bool:
    is_letter_or_digit = cluster[0].isalnum() or cluster[0] == "_"
    return is_letter_or_digit and not _CHINESE.match(cluster) and not _EMOJI.match(cluster)


def _joins(before: str, cluster: str, following: str) -> bool:
    if cluster in "'’":
        return before[0].isalpha() and following[0].isalpha()
    return cluster in ".," and before[0].isdigit() and following[0].isdigit()


# Tokens to ids.


@dataclass(frozen=True)
class Vocabulary:
    """Every token that a model knows.

    Attributes:
        tokens: the tokens by id, from the id after the specials on.
        specials: the tokens with the first ids, the padding first.
    """

    tokens: tuple[str, ...]
    specials: tuple[str, ...] = SPECIALS

    def __len__(self) -> int:
        """The number of ids, V."""
        return len(self.specials) + len(self.tokens)

    def ids_of(self, tokens: Iterable[str]) -> tuple[int, ...]:
        """The ids of tokens of a text, never those of the specials.

        Raises:
            ValueError: a token is not in the vocabulary.
        """
        try:
            return tuple(self._ids[token] for token in tokens)
        except KeyError as error:
            raise ValueError(say("unknown_token", error=error)) from None

    def tokens_of(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The tokens of ids, the specials among them by their names."""
        everything = (*self.specials, *self.tokens)
        return tuple(everything[index] for index in ids)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One label to draw per id."""
        return (*self.specials, *(visible(token) for token in self.tokens))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens, len(self.specials))}


@dataclass(frozen=True)
class TokenSequence:
    """One sequence as the model gets it.

    Attributes:
        tokens: as typed; the specials by their names.
        ids: one per token.
        is_padding: one per token.
        labels: one per token, safe to draw as text (``visible``).
        is_special: one per token, whether it stands for no text; () where the first ids are the specials.
        parts: the number of the text that each token belongs to, where a checkpoint reads two; else ().
    """

    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    is_padding: tuple[bool, ...]
    labels: tuple[str, ...]
    is_special: tuple[bool, ...] = ()
    parts: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def ids_without_padding(self) -> tuple[int, ...]:
        """The ids of the tokens that are none."""
        return tuple(token for token, pads in zip(self.ids, self.is_padding, strict=True) if not pads)

    def only(self, places: Sequence[int]) -> TokenSequence:
        """The tokens in some places alone."""
        return TokenSequence(
            tokens=tuple(self.tokens[place] for place in places),
            ids=tuple(self.ids[place] for place in places),
            is_padding=tuple(self.is_padding[place] for place in places),
            labels=tuple(self.labels[place] for place in places),
        )


@dataclass(frozen=True)
class Encoded:
    """The input of a model for some settings: a batch with one sequence for each line of the text.

    Attributes:
        vocabulary: shared by all sequences, or that of the sources.
        sources: the lines of the text, equally long; of length zero where the text has no tokens.
        targets: for each of them the start token and a line of the target, equally long; None unless the
            architecture is ``encoder-decoder``.
        target_vocabulary: that of the targets, where they have one of their own.
    """

    vocabulary: Vocabulary
    sources: tuple[TokenSequence, ...]
    targets: tuple[TokenSequence, ...] | None
    target_vocabulary: Vocabulary | None = None

    @property
    def output_vocabulary(self) -> Vocabulary:
        """The tokens that the model gives probabilities to."""
        return self.target_vocabulary or self.vocabulary


def encode(settings: Settings) -> Encoded:
    """Turn the text, and for an encoder-decoder the target, into ids, each line into a sequence of its own.

    Ids follow the order of first appearance, sources before targets, so that typing on leaves the sources' earlier
    ids as they are; for bytes they are fixed. With two vocabularies those of the targets count for themselves. The
    target is shifted right: it starts with ``<s>`` ("Attention Is
    All You Need", section 3.1). Padding brings the sequences of a batch to one length; ``settings.pad`` padding
    tokens more are beside each sequence, but not beside an empty text. All of it follows the sequence, or stands
    before it where ``settings.pad_side`` is ``left``. The tokens of a source stand in the order ``settings.order``,
    with the ids that they have as typed.

    Raises:
        ValueError: text and target have different numbers of lines.
    """
    sources = [tokenize(line, settings.tokens) for line in settings.lines]
    has_target = settings.architecture == "encoder-decoder"
    targets = [tokenize(line, settings.tokens) for line in target_lines(settings)] if has_target else []
    of_target = _vocabulary(settings, targets) if settings.has_two_vocabularies else None
    vocabulary = _vocabulary(settings, sources if of_target else [*sources, *targets])
    output_vocabulary = of_target or vocabulary
    pad = settings.pad if any(sources) else 0
    return Encoded(
        vocabulary,
        padded_batch(
            vocabulary,
            [_ordered(vocabulary.ids_of(source), settings.order) for source in sources],
            pad,
            settings.pad_side,
        ),
        padded_batch(
            output_vocabulary,
            [(START_ID, *output_vocabulary.ids_of(target)) for target in targets],
            settings.pad,
            settings.pad_side,
        )
        if has_target
        else None,
        of_target,
    )


def _vocabulary(settings: Settings, texts: Iterable[Sequence[str]]) -> Vocabulary:
    """The tokens of some texts, in the order in which they appear; of bytes always all."""
    return Vocabulary(_BYTES if settings.tokens == "bytes" else tuple(dict.fromkeys(chain(*texts))))


def places(order: int, n_tokens: int) -> tuple[int, ...]:
    """For each place of a text in an order, the place where its token was typed: ``order`` of ``Settings``."""
    if order == 0:
        return tuple(range(n_tokens))
    draws = random.Random(order)  # its `random` gives the same numbers in every version of Python
    shuffled = sorted(range(n_tokens), key=lambda _: draws.random())
    is_new = order > 1 and shuffled != list(range(n_tokens))
    return tuple(shuffled if is_new else range(n_tokens - 1, -1, -1))


def _ordered(ids: tuple[int, ...], order: int) -> tuple[int, ...]:
    return tuple(ids[place] for place in places(order, len(ids)))


def target_lines(settings: Settings) -> tuple[str, ...]:
    """A line of the target for each line of the text; an empty one for each where there is no target.

    Raises:
        ValueError: text and target have different numbers of lines; the message says what to do.
    """
    n_lines, lines = len(lines_of(settings.text)), lines_of(settings.target)
    if len(lines) != n_lines and any(line.strip() for line in lines):
        raise ValueError(say("other_lines", of_text=n_lines, of_target=len(lines)))
    return lines if len(lines) == n_lines else ("",) * n_lines


def padded_batch(
    vocabulary: Vocabulary, contents: Sequence[tuple[int, ...]], pad: int, side: PadSide
) -> tuple[TokenSequence, ...]:
    """Sequences of ids, brought to one length by padding on one side, with ``pad`` padding tokens more for each."""
    longest = max(map(len, contents))
    return tuple(padded(vocabulary, content, longest - len(content) + pad, side) for content in contents)


def padded(vocabulary: Vocabulary, content: tuple[int, ...], pad: int, side: PadSide) -> TokenSequence:
    """A sequence of ids with so many padding tokens on one side."""
    before, after = (pad, 0) if side == "left" else (0, pad)
    ids = (PADDING_ID,) * before + content + (PADDING_ID,) * after
    return TokenSequence(
        tokens=vocabulary.tokens_of(ids),
        ids=ids,
        is_padding=(True,) * before + (False,) * len(content) + (True,) * after,
        labels=tuple(vocabulary.labels[index] for index in ids),
    )


DOCUMENT_END = "|"
"""The token that ends a document, where several are packed into one sequence."""


def segments(sequence: TokenSequence) -> tuple[int, ...]:
    """The number of the document that each token belongs to; its ``DOCUMENT_END`` is its last token."""
    if sequence.parts:
        return sequence.parts
    ends = accumulate(int(token == DOCUMENT_END) for token in sequence.tokens)
    return tuple(count - (token == DOCUMENT_END) for count, token in zip(ends, sequence.tokens, strict=True))


def read_then_predicted(read: Iterable[str], predicted: Iterable[str]) -> tuple[str, ...]:
    """One label per row of a decoder: the token read there, then the one predicted after it, ``<sos> → t``.

    Args:
        read: the labels of the tokens that the rows stand for.
        predicted: as many, each the label of what follows; empty for a row that predicts nothing, such as padding.
    """
    return tuple(f"{one} → {next_one}" if next_one else one for one, next_one in zip(read, predicted, strict=True))
