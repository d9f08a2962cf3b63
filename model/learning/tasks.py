"""Tasks that a small Transformer learns: what it is given, what is right, and what it is tested on.

A task answers a text with a text; a token is a character, or in the small languages a word. How they become
sequences follows from the architecture:

    encoder-decoder   the encoder reads  text <eos> ; the decoder starts from  <sos>  and writes  answer <eos>
    decoder           starts from  <sos> text <eos>  and writes  answer <eos>
    encoder           reads  text <eos> ; the answer is read off above the text, one token at each position

A task that continues has no answer: a decoder reads  <sos> text  and learns at each token which one comes next.

One text in ``HELD_OUT`` is never trained on. A checksum of the text alone decides which, so that it is the same
for every recipe, seed and machine. Short texts, of which there are few, are no exception: of the 26 single letters
one is held out, of the ten digits one, of the two brackets none.
"""

from __future__ import annotations

import re
import string
import tomllib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import torch
from torch import Tensor

from model.config import TransformerArchitecture
from model.learning.grammar import (
    END,
    NOWHERE,
    Sentence,
    draw_sentences,
    english_words,
    german_words,
    next_words,
    sentence_of,
)
from model.masks import causal, padding
from model.texts import texts_of

say = texts_of(__name__)

Ids = tuple[int, ...]

PAD, SOS, EOS = 0, 1, 2
SPECIALS = ("<pad>", "<sos>", "<eos>")
"""The tokens of the ids ``PAD``, ``SOS`` and ``EOS``."""

NEVER_WRITTEN = (PAD, SOS)
"""The tokens that no answer holds: one fills a batch up, one comes before what is written."""

LONGEST = 10
"""The most characters of a text; the least is one."""

LONGEST_SENTENCE = 24
"""The most words of one."""

HELD_OUT = 10
"""One text in this many is held out."""

_DESCRIPTIONS = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8"))
_QUOTED = 40
_MOST_UNKNOWN = 3  # words that a refusal names
_WORDS = re.compile(r"\w+|[^\w\s]")
_FEWEST_DRAWN = 8


@dataclass(frozen=True)
class Texts:
    """The texts that a task is asked about.

    Attributes:
        allowed: what they are, as the end of a sentence that tells a person what to type.
        contains: whether a string is one of them.
        draw: so many of them at random.
    """

    allowed: str
    contains: Callable[[str], bool]
    draw: Callable[[int, torch.Generator], list[str]]


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: what code and checkpoints call it.
        title: what a person reads.
        description: one sentence.
        architecture: of the models that learn it.
        texts: what it is asked about.
        symbols: every token of a text or an answer, but the special ones.
        example: a text to begin with.
        answer: the right answer to a text; None where the task is to continue the text.
        read_from: for each token of the answer the position in the text that it is read from, or ``NOWHERE``; None
            where that is so for all.
        has_words: whether a token is a word, and not a character.
    """

    name: str
    title: str
    description: str
    architecture: TransformerArchitecture
    texts: Texts
    symbols: Sequence[str]
    example: str
    answer: Callable[[str], str] | None
    read_from: Callable[[str], Sequence[int]] | None = None
    has_words: bool = False

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Every token by its id, as it is printed."""
        return (*SPECIALS, *self.symbols)

    @cached_property
    def _ids(self) -> Mapping[str, int]:
        return {token: index for index, token in enumerate(self.vocabulary)}

    def read(self, typed: str) -> str:
        """The text that a person typed, in small letters where only those fit.

        Raises:
            ValueError: it is not a text of this task; the message says what is.
        """
        tokens = [self._known_as(token) for token in self.split(typed)]
        text = self.joined(tokens)
        if not self.texts.contains(text):
            unknown = list(dict.fromkeys(token[:_QUOTED] for token in tokens if token not in self._ids))
            if self.has_words and unknown:
                words = _listed(unknown)
                raise ValueError(say("unknown_words", title=self.title, words=words, allowed=self.texts.allowed))
            if not typed.strip():
                raise ValueError(say("empty", title=self.title, allowed=self.texts.allowed))
            quoted = _quote(typed if len(typed) <= _QUOTED else f"{typed[:_QUOTED]}…")
            raise ValueError(say("does_not_fit", text=quoted, title=self.title, allowed=self.texts.allowed))
        return text

    def _known_as(self, token: str) -> str:
        """A token as the task knows it: in small letters, or as a name, where only that fits."""
        return next((one for one in (token, token.lower(), token.capitalize()) if one in self._ids), token)

    def split(self, text: str) -> tuple[str, ...]:
        """The tokens of a text, known or not: its words and marks, or its characters."""
        return tuple(_WORDS.findall(text)) if self.has_words else tuple("".join(text.split()))

    def joined(self, tokens: Iterable[str]) -> str:
        """The text of some tokens."""
        return (" " if self.has_words else "").join(tokens)

    def encode(self, text: str) -> Ids:
        """The ids of a text or an answer."""
        return tuple(self._ids[token] for token in self.split(text))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids up to the first ``EOS``."""
        end = list(ids).index(EOS) if EOS in ids else len(ids)
        return self.joined(self.vocabulary[index] for index in ids[:end])

    def right_tokens(self, text: str) -> tuple[str, ...]:
        """The tokens of the right answer; none where the text is to be continued."""
        return () if self.answer is None else self.split(self.answer(text))


# The tasks.


def reverse() -> Task:
    """Write the letters backwards."""
    return _picked("reverse", _LETTERS, _made_of(_LETTERS, say("letters", longest=LONGEST)), _backwards)


def reverse_digits() -> Task:
    """Write the digits backwards: [5, 3, 6] becomes [6, 3, 5]."""
    texts = _made_of(string.digits, say("digits", longest=LONGEST))
    return _picked("reverse_digits", string.digits, texts, _backwards)


def copy() -> Task:
    """Write the letters once more."""
    return _picked("copy", _LETTERS, _made_of(_LETTERS, say("letters", longest=LONGEST)), _in_order)


def sort() -> Task:
    """Write the digits in ascending order."""
    texts = _made_of(string.digits, say("digits", longest=LONGEST))
    return _picked("sort", string.digits, texts, lambda text: sorted(range(len(text)), key=text.__getitem__))


def add() -> Task:
    """Add two numbers."""
    return Task(
        name="add",
        **_DESCRIPTIONS["add"],
        texts=Texts(say("sum", largest=_LARGEST), _is_sum, _draw_sums),
        symbols=f"{string.digits}+",
        answer=lambda text: str(sum(int(number) for number in text.split("+"))),
    )


def remove_vowels() -> Task:
    """Leave out the vowels."""
    texts = _made_of(_LETTERS, say("letters", longest=LONGEST), drawn_from=_LETTERS + 3 * _VOWELS)
    return _picked("remove_vowels", _LETTERS, texts, _consonants)


def repeat_block() -> Task:
    """Go on as the sequence began: what a two-layer decoder does with induction heads (Olsson et al. 2022)."""
    texts = Texts(say("different_letters", longest=LONGEST), _is_block, _draw_blocks)
    return _picked("repeat_block", _LETTERS, texts, _in_order)


def match_brackets() -> Task:
    """Find the partner of each bracket."""
    return Task(
        name="match_brackets",
        **_DESCRIPTIONS["match_brackets"],
        texts=_made_of("()", say("brackets", longest=LONGEST)),
        symbols=f"(){string.digits}.",
        answer=lambda text: "".join("." if place == NOWHERE else str(place) for place in _partners(text)),
        read_from=lambda text: _partners(text),
    )


def mark_repeats() -> Task:
    """Find the letters that occur more than once."""
    return Task(
        name="mark_repeats",
        **_DESCRIPTIONS["mark_repeats"],
        texts=Texts(say("letters", longest=LONGEST), _is_made_of(_LETTERS), _draw_repeating),
        symbols=f"{_LETTERS}.",
        answer=lambda text: "".join(letter if text.count(letter) > 1 else "." for letter in text),
    )


def small_english() -> Task:
    """Continue an English sentence of a small grammar."""
    return Task(
        name="small_english",
        **_DESCRIPTIONS["small_english"],
        texts=Texts(say("known_words", longest=LONGEST_SENTENCE), _has_known_words, _draw_english),
        symbols=english_words(),
        answer=None,
        has_words=True,
    )


def small_translator() -> Task:
    """Translate an English sentence of a small grammar into German."""
    return Task(
        name="small_translator",
        **_DESCRIPTIONS["small_translator"],
        texts=Texts(say("sentences"), lambda text: sentence_of(text.split()) is not None, _draw_english),
        symbols=tuple(sorted({*english_words(), *german_words()})),
        answer=lambda text: " ".join(_sentence(text).german),
        read_from=lambda text: _sentence(text).read_from,
        has_words=True,
    )


def _picked(name: str, symbols: str, texts: Texts, places: Callable[[str], Sequence[int]]) -> Task:
    """A task whose answer is what stands at some places of the text, in their order."""
    return Task(
        name=name,
        **_DESCRIPTIONS[name],
        texts=texts,
        symbols=symbols,
        answer=lambda text: "".join(text[place] for place in places(text)),
        read_from=places,
    )


def _in_order(text: str) -> Sequence[int]:
    return range(len(text))


def _backwards(text: str) -> Sequence[int]:
    return range(len(text))[::-1]


def _consonants(text: str) -> Sequence[int]:
    return [place for place, letter in enumerate(text) if letter not in _VOWELS]


def _has_known_words(text: str) -> bool:
    words = text.split()
    return 1 <= len(words) <= LONGEST_SENTENCE and set(words) <= set(english_words())


def _draw_english(n: int, generator: torch.Generator) -> list[str]:
    return [" ".join(sentence.english) for sentence in draw_sentences(n, generator)]


@lru_cache(maxsize=4096)
def _sentence(text: str) -> Sentence:
    sentence = sentence_of(text.split())
    if sentence is None:
        raise ValueError(f"{text!r} is not a sentence of the small grammar")
    return sentence


_LETTERS = string.ascii_lowercase
_VOWELS = "aeiou"
_LARGEST = 999
_POOL = 8


def _made_of(symbols: str, allowed: str, drawn_from: str = "") -> Texts:
    """Texts of any of the symbols, each as likely as it is frequent in what it is drawn from."""
    return Texts(
        allowed,
        _is_made_of(symbols),
        lambda n, generator: _cut([drawn_from or symbols] * n, generator),
    )


def _is_made_of(symbols: str) -> Callable[[str], bool]:
    return lambda text: 1 <= len(text) <= LONGEST and set(text) <= set(symbols)


def _cut(pools: Sequence[Sequence[str]], generator: torch.Generator) -> list[str]:
    """For each pool a text of its characters; every length is equally likely."""
    lengths = _draw_lengths(len(pools), generator)
    picks = torch.randint(len(pools[0]), (len(pools), LONGEST), generator=generator).tolist()
    return [
        "".join([pool[index] for index in row[:length]])
        for pool, row, length in zip(pools, picks, lengths, strict=True)
    ]


def _draw_lengths(n: int, generator: torch.Generator) -> list[int]:
    lengths: list[int] = torch.randint(1, LONGEST + 1, (n,), generator=generator).tolist()
    return lengths


def _draw_repeating(n: int, generator: torch.Generator) -> list[str]:
    """Texts of a few letters each: of all 26, few would repeat."""
    pools = torch.randint(len(_LETTERS), (n, _POOL), generator=generator).tolist()
    return _cut([[_LETTERS[index] for index in pool] for pool in pools], generator)


def _is_block(text: str) -> bool:
    return _is_made_of(_LETTERS)(text) and len(set(text)) == len(text)


def _draw_blocks(n: int, generator: torch.Generator) -> list[str]:
    """Texts without repetition, so that each letter says which one follows it."""
    keys = torch.rand(n, len(_LETTERS), dtype=torch.float32, generator=generator)
    orders = keys.argsort(dim=-1, stable=True).tolist()
    return [
        "".join([_LETTERS[index] for index in order[:length]])
        for order, length in zip(orders, _draw_lengths(n, generator), strict=True)
    ]


def _is_sum(text: str) -> bool:
    numbers = text.split("+")
    return len(numbers) == 2 and all(_is_number(number) for number in numbers)


def _is_number(text: str) -> bool:
    """True if it is a number from 0 to the largest, written without leading zeros."""
    short = 1 <= len(text) <= len(str(_LARGEST))
    return short and set(text) <= set(string.digits) and text == str(int(text))


def _draw_sums(n: int, generator: torch.Generator) -> list[str]:
    """Sums of numbers of which each number of digits is equally likely."""
    sizes = torch.randint(1, len(str(_LARGEST)) + 1, (n, 2), generator=generator).tolist()
    picks = torch.rand(n, 2, dtype=torch.float64, generator=generator).tolist()
    return [
        "+".join(str(_number_at(pick, size)) for pick, size in zip(*pair, strict=True))
        for pair in zip(picks, sizes, strict=True)
    ]


def _number_at(fraction: float, n_digits: int) -> int:
    """The number that stands this far, from 0 to below 1, among all of so many digits."""
    least = 10 ** (n_digits - 1) if n_digits > 1 else 0
    return least + int(fraction * (10**n_digits - least))


def _partners(text: str) -> list[int]:
    """The position of each bracket's partner."""
    partners, waiting = [NOWHERE] * len(text), []
    for place, bracket in enumerate(text):
        if bracket == "(":
            waiting.append(place)
        elif waiting:
            partners[place] = waiting.pop()
            partners[partners[place]] = place
    return partners


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        reverse(),
        reverse_digits(),
        copy(),
        sort(),
        add(),
        remove_vowels(),
        repeat_block(),
        match_brackets(),
        mark_repeats(),
        small_english(),
        small_translator(),
    )
}
"""Every task by its name."""


# What is trained on and what is held out.


def is_held_out(text: str) -> bool:
    """True if a text is never trained on."""
    return zlib.crc32(text.encode()) % HELD_OUT == 0


def training_texts(task: Task, n: int, generator: torch.Generator) -> list[str]:
    """Random texts, none of them held out."""
    return _drawn(task, n, generator, held_out=False)


def held_out_texts(task: Task, n: int, generator: torch.Generator) -> list[str]:
    """Random texts, all of them held out."""
    return _drawn(task, n, generator, held_out=True)


def _drawn(task: Task, n: int, generator: torch.Generator, held_out: bool) -> list[str]:
    texts: list[str] = []
    while len(texts) < n:
        drawn_texts = task.texts.draw(max(n - len(texts), _FEWEST_DRAWN), generator)
        texts += [text for text in drawn_texts if is_held_out(text) == held_out]
    return texts[:n]


# Texts as sequences.


@dataclass(frozen=True)
class Sequences:
    """A text and its answer as a model gets them.

    Attributes:
        source: what the encoder reads, or a decoder without one.
        target: what the decoder reads beside an encoder; None where there are not both.
        labels: the token that is right at each position of the last sequence, ``PAD`` where none is asked for.
    """

    source: Ids
    target: Ids | None
    labels: Ids


def sequences(task: Task, text: str) -> Sequences:
    """Return the input of a model for one text, and the answer that it is to give."""
    ids = task.encode(text)
    if task.answer is None:
        return Sequences((SOS, *ids), None, (*ids, EOS))
    answer = task.encode(task.answer(text))
    match task.architecture:
        case "encoder-decoder":
            return Sequences((*ids, EOS), (SOS, *answer), (*answer, EOS))
        case "decoder":
            prompt = (SOS, *ids, EOS)
            return Sequences((*prompt, *answer), None, (*(PAD,) * (len(prompt) - 1), *answer, EOS))
        case "encoder":
            return Sequences((*ids, EOS), None, (*answer, PAD))


def prompt(task: Task, text: str) -> Ids:
    """Return the tokens that the decoder starts from, before it has written any; empty if there is no decoder."""
    match task.architecture:
        case "encoder-decoder":
            return (SOS,)
        case "decoder":
            return (SOS, *task.encode(text)) if task.answer is None else (SOS, *task.encode(text), EOS)
        case "encoder":
            return ()


def expected_keys(task: Task, text: str) -> Ids:
    """For each query of the attention that reads the text, the key that it should find, or ``NOWHERE``.

    It is the cross-attention where there is one, else the self-attention; its queries and keys are the tokens of
    ``sequences``.
    """
    labels = sequences(task, text).labels
    answered = [place for place, label in enumerate(labels) if label not in (PAD, EOS)]
    places = [NOWHERE] * len(answered) if task.read_from is None else task.read_from(text)
    first = 1 if task.architecture == "decoder" else 0
    keys = {query: first + place for query, place in zip(answered, places, strict=True) if place != NOWHERE}
    return tuple(keys.get(query, NOWHERE) for query in range(len(labels)))


@dataclass(frozen=True, eq=False)
class Batch:
    """The sequences of several texts side by side, for ``model(*batch.inputs, **batch.masks)``.

    Attributes:
        inputs: the ids, (B, S) and, beside an encoder, (B, T), padded with ``PAD``.
        masks: the model's masks by name, True = may attend, each broadcastable to (B, H, Tq, Tk).
        labels: (B, T) or (B, S), ``PAD`` where no token is asked for.
        allowed: (B, T, V), True where a token is as right as the label; None where the label alone is.
    """

    inputs: tuple[Tensor, ...]
    masks: Mapping[str, Tensor]
    labels: Tensor
    allowed: Tensor | None = None


def make_batch(task: Task, texts: Sequence[str], *, is_causal: bool = True, n_padding: int = 0) -> Batch:
    """The sequences of several texts.

    Args:
        task: what is asked.
        texts: B texts of the task.
        is_causal: whether the decoder's self-attention sees no later token.
        n_padding: positions of padding after the longest, as if another text were that much longer.
    """
    examples = [sequences(task, text) for text in texts]
    source = _padded([each.source for each in examples], n_padding)
    labels = _padded([each.labels for each in examples], n_padding)
    seen = padding(source == PAD)
    if task.architecture == "encoder":
        return Batch((source,), {"source_mask": seen}, labels)
    if task.architecture == "decoder":
        return Batch((source,), {"source_mask": _decoder_mask(source, is_causal)}, labels)
    target = _padded([each.target for each in examples if each.target is not None], n_padding)
    masks = {"source_mask": seen, "target_mask": _decoder_mask(target, is_causal), "memory_mask": seen}
    return Batch((source, target), masks, labels)


def allowed_words(task: Task, texts: Sequence[str]) -> Tensor:
    """The tokens that may come next in some sentence of the grammar, (B, T, V), at each place of texts of words."""
    sentences = [task.split(text) for text in texts]
    allowed = torch.zeros(len(texts), max(map(len, sentences)) + 1, len(task.vocabulary), dtype=torch.bool)
    for row, words in enumerate(sentences):
        for place in range(len(words) + 1):
            following = next_words(words[:place])
            allowed[row, place, task.encode(task.joined(following - {END}))] = True
            allowed[row, place, EOS] = END in following
    return allowed


def _decoder_mask(ids: Tensor, is_causal: bool) -> Tensor:
    seen = padding(ids == PAD)
    return seen & causal(ids.shape[1], ids.shape[1]) if is_causal else seen


def _padded(rows: Sequence[Ids], n_padding: int) -> Tensor:
    longest = max(map(len, rows)) + n_padding
    return torch.tensor([(*row, *(PAD,) * (longest - len(row))) for row in rows])


def _listed(unknown: Sequence[str]) -> str:
    """Some words as a list: ``“a”, “b” or “c”``, or ``“a”, “b”, “c” and 2 more``."""
    named, n_more = ", ".join(map(_quote, unknown[:_MOST_UNKNOWN])), len(unknown[_MOST_UNKNOWN:])
    return say("more_unknown", words=named, count=n_more) if n_more else " or ".join(named.rsplit(", ", 1))


def _quote(text: str) -> str:
    """A text in quotation marks, with what cannot be printed as an escape."""
    return f"“{repr(text)[1:-1]}”"
