"""Tasks against what their names say, the split, and the batches against loops."""

from __future__ import annotations

import itertools
import string
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.config import TransformerConfig
from model.learning.tasks import (
    EOS,
    HELD_OUT,
    LONGEST,
    LONGEST_SENTENCE,
    NOWHERE,
    PAD,
    SOS,
    TASKS,
    expected_keys,
    held_out_texts,
    is_held_out,
    make_batch,
    prompt,
    sequences,
    training_texts,
)
from model.transformer import Transformer

every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
letters = st.text(string.ascii_lowercase, min_size=1, max_size=LONGEST)
any_task = st.sampled_from(list(TASKS.values()))
seeds = st.integers(0, 1000)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def some_texts(task, n=200, seed=0):
    return training_texts(task, n, generator(seed))


# What is right.


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("reverse", "abc", "cba"),
        ("reverse", "a", "a"),
        ("copy", "hello", "hello"),
        ("sort", "3141592653", "1123345569"),
        ("add", "0+0", "0"),
        ("add", "999+1", "1000"),
        ("add", "68+57", "125"),
        ("remove_vowels", "headlight", "hdlght"),
        ("remove_vowels", "aeiou", ""),
        ("repeat_block", "qzfkx", "qzfkx"),
        ("match_brackets", "()", "10"),
        ("match_brackets", "(()())", "521430"),
        ("match_brackets", ")(", ".."),
        ("match_brackets", "(()", ".21"),
        ("match_brackets", "())", "10."),
        ("mark_repeats", "headlamp", "..a..a.."),
        ("mark_repeats", "abc", "..."),
    ],
)
def test_answers(name, text, answer):
    assert TASKS[name].answer(text) == answer


@given(st.text("()", min_size=1, max_size=LONGEST))
def test_brackets_match_as_taking_out_pairs_of_neighbours_says(text):
    partners, left = ["."] * len(text), list(range(len(text)))
    while (at := "".join(text[place] for place in left).find("()")) >= 0:
        opening, closing = left[at : at + 2]
        partners[opening], partners[closing] = str(closing), str(opening)
        del left[at : at + 2]
    assert TASKS["match_brackets"].answer(text) == "".join(partners)


@given(letters)
def test_repeats_are_marked_as_counting_says(text):
    counts = Counter(text)
    marked = TASKS["mark_repeats"].answer(text)
    assert all((mark == letter) == (counts[letter] > 1) for mark, letter in zip(marked, text, strict=True))
    assert set(marked) <= {*text, "."}


@given(letters)
def test_sorting_and_leaving_out_keep_what_they_should(text):
    digits = "".join(str(ord(letter) % 10) for letter in text)
    assert Counter(TASKS["sort"].answer(digits)) == Counter(digits)
    assert all(a <= b for a, b in itertools.pairwise(TASKS["sort"].answer(digits)))
    assert TASKS["remove_vowels"].answer(text) == text.translate(str.maketrans("", "", "aeiou"))


@pytest.mark.parametrize(
    "task",
    [task for task in TASKS.values() if task.read_from is not None and not task.has_words],
    ids=lambda task: task.name,
)
def test_what_is_read_from_the_text_is_the_answer(task):
    for text in some_texts(task):
        answer, places = task.answer(text), task.read_from(text)
        assert len(places) == len(answer)
        for token, place in zip(answer, places, strict=True):
            if task.name == "match_brackets":
                assert token == ("." if place == NOWHERE else str(place))
            else:
                assert token == text[place]


# Texts and vocabularies.


@every_task
def test_a_vocabulary_holds_every_token_once_and_the_special_ones_first(task):
    assert [task.vocabulary[index] for index in (PAD, SOS, EOS)] == ["<pad>", "<sos>", "<eos>"]
    assert len(set(task.vocabulary)) == len(task.vocabulary)
    assert all(token.isprintable() for token in task.vocabulary)


@every_task
def test_texts_and_answers_are_within_the_vocabulary_and_the_lengths(task):
    texts = some_texts(task, 500)
    lengths = {len(task.split(text)) for text in texts}
    assert max(lengths) <= (LONGEST_SENTENCE if task.has_words else LONGEST)
    for text in texts:
        assert task.texts.contains(text)
        assert task.decode(task.encode(text)) == text
        if task.answer is None:
            continue
        answer = task.answer(text)
        assert task.decode((*task.encode(answer), EOS, PAD)) == answer
        if task.architecture == "encoder":
            assert len(answer) == len(text)


@pytest.mark.parametrize(
    "task",
    [task for task in TASKS.values() if task.name != "add" and not task.has_words],
    ids=lambda task: task.name,
)
def test_every_length_from_one_to_the_longest_is_drawn(task):
    counts = Counter(len(text) for text in some_texts(task, 2000))
    assert set(counts) == set(range(1, LONGEST + 1))
    assert min(counts.values()) > 100


def test_sums_have_numbers_of_every_length_and_no_leading_zeros():
    pairs = [text.split("+") for text in some_texts(TASKS["add"], 1000)]
    counts = Counter((len(a), len(b)) for a, b in pairs)
    assert set(counts) == set(itertools.product((1, 2, 3), repeat=2))
    assert min(counts.values()) > 60
    assert all(number == str(int(number)) for pair in pairs for number in pair)
    assert {"0", "9"} <= {number for pair in pairs for number in pair}


@every_task
def test_a_text_is_read_without_its_white_space(task):
    assert task.read(task.example) == task.example
    assert task.read(f"  {'  '.join(task.split(task.example))}\n") == task.example


def test_words_are_told_from_marks_and_capitals_are_read_as_the_words_known():
    assert TASKS["small_translator"].read("The cat slept on the mat.") == "the cat slept on the mat ."
    assert TASKS["small_english"].read("when MARY and john") == "when Mary and John"


@pytest.mark.parametrize(
    ("name", "typed", "allowed"),
    [
        ("reverse", "", "1 to 10 letters from a to z"),
        ("reverse", "Hello!", "letters from a to z"),
        ("reverse", "naïve", "letters from a to z"),
        ("reverse", "abcdefghijk", "1 to 10 letters"),
        ("sort", "12a", "1 to 10 digits"),
        ("sort", "١٢", "1 to 10 digits"),
        ("add", "12", r"two numbers from 0 to 999 with a \+ between them"),
        ("add", "1+2+3", "two numbers"),
        ("add", "1000+1", "two numbers"),
        ("add", "007+1", "two numbers"),
        ("add", "+1", "two numbers"),
        ("add", "²+1", "two numbers"),
        ("repeat_block", "abca", "1 to 10 different letters"),
        ("match_brackets", "([])", r"brackets \( and \)"),
        ("mark_repeats", "a.b", "letters from a to z"),
        ("small_english", "the cat <b>", "up to 24 words that it knows"),
        ("small_translator", "the cat sat", "a sentence of its small grammar"),
    ],
)
def test_another_text_is_refused_with_what_is_allowed(name, typed, allowed):
    with pytest.raises(ValueError, match=f"“{TASKS[name].title}”.*: type .*{allowed}"):
        TASKS[name].read(typed)


@pytest.mark.parametrize(
    ("name", "typed"), [("reverse", "ABC"), ("mark_repeats", " A bC"), ("repeat_block", "aBc")]
)
def test_capitals_are_read_as_small_letters_where_only_those_fit(name, typed):
    assert TASKS[name].read(typed) == "abc"


def test_a_refusal_names_the_words_that_a_model_does_not_know():
    with pytest.raises(ValueError, match="does not know “zebra”, “flew” or “crow”: type up to 24 words"):
        TASKS["small_english"].read("the zebra flew and the crow sat")
    with pytest.raises(ValueError, match="does not know “zebra”, “flew”, “crow” and 2 more: type"):
        TASKS["small_english"].read("the zebra flew and the crow swam to mars")


def test_an_empty_text_is_not_quoted():
    with pytest.raises(ValueError, match="There is nothing for “Small English” to read yet: type up to 24 words"):
        TASKS["small_english"].read(" ")


def test_a_refusal_quotes_the_beginning_of_a_long_text():
    with pytest.raises(ValueError, match="z…” does not fit") as refusal:
        TASKS["sort"].read("z" * 10_000)
    assert len(str(refusal.value)) < 150


@given(any_task, st.text(max_size=12))
def test_whatever_is_read_can_be_answered(task, typed):
    try:
        text = task.read(typed)
    except ValueError:
        return
    assert len(sequences(task, text).labels) <= 2 * LONGEST + 3


@pytest.mark.parametrize("index", [PAD, SOS])
def test_special_tokens_are_printed_by_their_names(index):
    assert TASKS["copy"].decode([index, 3, EOS, 4]) == f"{TASKS['copy'].vocabulary[index]}a"


# The split.


@every_task
def test_no_text_is_trained_on_and_held_out(task):
    assert not any(is_held_out(text) for text in some_texts(task, 1000))
    assert all(is_held_out(text) for text in held_out_texts(task, 100, generator()))


def test_which_texts_are_held_out_never_changes():
    held_out = [text for text in map("".join, itertools.product("abc", repeat=4)) if is_held_out(text)]
    assert held_out == ["aabb", "abab", "bbac", "caab", "caca", "cacc", "cccc"]


@pytest.mark.parametrize(("symbols", "length"), [(string.digits, 3), (string.ascii_lowercase, 3), ("()", 10)])
def test_about_one_text_in_ten_is_held_out(symbols, length):
    texts = list(map("".join, itertools.product(symbols, repeat=length)))
    assert sum(map(is_held_out, texts)) == pytest.approx(len(texts) / HELD_OUT, rel=0.2)


def test_single_characters_are_nearly_all_trained_on():
    held_out = [character for character in string.ascii_lowercase + string.digits + "()" if is_held_out(character)]
    assert held_out == ["o", "6"]


@every_task
def test_texts_come_from_the_generator_alone(task):
    torch.manual_seed(0)
    first = some_texts(task, 50, seed=5)
    torch.manual_seed(1)
    assert some_texts(task, 50, seed=5) == first
    assert some_texts(task, 50, seed=6) != first


# Sequences.


@pytest.mark.parametrize(
    ("name", "text", "source", "target", "labels", "start"),
    [
        ("reverse", "abc", (3, 4, 5, EOS), (SOS, 5, 4, 3), (5, 4, 3, EOS), (SOS,)),
        ("remove_vowels", "a", (3, EOS), (SOS,), (EOS,), (SOS,)),
        ("repeat_block", "ab", (SOS, 3, 4, EOS, 3, 4), None, (PAD, PAD, PAD, 3, 4, EOS), (SOS, 3, 4, EOS)),
        ("match_brackets", "()", (3, 4, EOS), None, (6, 5, PAD), ()),
    ],
)
def test_sequences(name, text, source, target, labels, start):
    made = sequences(TASKS[name], text)
    assert (made.source, made.target, made.labels) == (source, target, labels)
    assert prompt(TASKS[name], text) == start


@given(any_task, seeds)
def test_a_decoder_is_to_write_the_answer_after_its_prompt(task, seed):
    (text,) = some_texts(task, 1, seed)
    made = sequences(task, text)
    start, answer = prompt(task, text), tuple(task.encode(task.joined(task.right_tokens(text))))
    read = made.source if made.target is None else made.target
    assert len(read) == len(made.labels)
    if task.architecture != "encoder":
        assert read == (*start, *answer)
        assert made.labels[len(start) - 1 :] == (*answer, EOS)
    if task.answer is None:
        assert made.labels == (*made.source[1:], EOS), "each token is to be written after those before it"


@pytest.mark.parametrize(
    ("name", "text", "keys"),
    [
        ("reverse", "abc", (2, 1, 0, NOWHERE)),
        ("sort", "312", (1, 2, 0, NOWHERE)),
        ("remove_vowels", "abec", (1, 3, NOWHERE)),
        ("add", "1+2", (NOWHERE, NOWHERE)),
        ("repeat_block", "ab", (NOWHERE, NOWHERE, NOWHERE, 1, 2, NOWHERE)),
        ("match_brackets", "())", (1, 0, NOWHERE, NOWHERE)),
        ("mark_repeats", "aa", (NOWHERE, NOWHERE, NOWHERE)),
    ],
)
def test_expected_keys(name, text, keys):
    assert expected_keys(TASKS[name], text) == keys


@given(any_task, seeds)
def test_an_expected_key_holds_what_is_to_be_written(task, seed):
    (text,) = some_texts(task, 1, seed)
    made, keys = sequences(task, text), expected_keys(task, text)
    assert len(keys) == len(made.labels)
    if task.name not in ("match_brackets", "small_translator"):
        for label, key in zip(made.labels, keys, strict=True):
            assert key == NOWHERE or made.source[key] == label


# Batches.


def cell(mask, *index):
    """One cell of a mask that is broadcast along its axes of size one."""
    return bool(mask[tuple(i if size > 1 else 0 for i, size in zip(index, mask.shape, strict=True))])


def assert_it_holds(ids, rows):
    """The rows, each followed by nothing but padding."""
    for row, wanted in zip(ids.tolist(), rows, strict=True):
        assert row == [*wanted, *[PAD] * (len(row) - len(wanted))]


def assert_it_shows(mask, queries, keys, *, later):
    """Every query that is no padding sees exactly the keys that are none, and not the later ones unless it may."""
    assert mask.dtype is torch.bool
    widest = max(map(len, keys))
    for b, (row_of_queries, row_of_keys) in enumerate(zip(queries, keys, strict=True)):
        for q, k in itertools.product(range(len(row_of_queries)), range(widest)):
            assert cell(mask, b, 0, q, k) == (k < len(row_of_keys) and (later or k <= q))


@given(any_task, seeds, st.booleans())
def test_batches_are_padded_sequences_with_their_masks(task, seed, is_causal):
    texts = some_texts(task, 3, seed)
    rows = [sequences(task, text) for text in texts]
    batch = make_batch(task, texts, is_causal=is_causal)
    sources, targets = [row.source for row in rows], [row.target for row in rows]
    assert_it_holds(batch.inputs[0], sources)
    assert_it_holds(batch.labels, [row.labels for row in rows])
    assert_it_shows(
        batch.masks["source_mask"], sources, sources, later=task.architecture != "decoder" or not is_causal
    )
    if task.architecture == "encoder-decoder":
        assert_it_holds(batch.inputs[1], targets)
        assert_it_shows(batch.masks["target_mask"], targets, targets, later=not is_causal)
        assert_it_shows(batch.masks["memory_mask"], targets, sources, later=True)
    else:
        assert len(batch.inputs) == len(batch.masks) == 1


@every_task
def test_a_model_takes_a_batch(task):
    config = TransformerConfig(task.architecture, len(task.vocabulary), d_model=8, n_heads=2, d_ff=8, n_layers=1)
    batch = make_batch(task, some_texts(task, 5))
    assert Transformer(config)(*batch.inputs, **batch.masks).shape == (*batch.labels.shape, len(task.vocabulary))
