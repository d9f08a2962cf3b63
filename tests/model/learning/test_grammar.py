"""The small languages: what the grammar draws it also accepts, and its German is German."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.learning.checkpoints import shipped
from model.learning.grammar import (
    END,
    NOWHERE,
    draw_sentences,
    english_words,
    german_words,
    next_words,
    sentence_of,
)
from model.learning.tasks import TASKS, allowed_words, expected_keys, held_out_texts, make_batch
from model.learning.training import model_with
from model.tracing import record

sentences = st.integers(0, 2**32 - 1).map(lambda seed: draw_sentences(1, torch.Generator().manual_seed(seed))[0])


@given(sentences)
def test_each_word_of_a_drawn_sentence_may_come_there_and_its_end_at_the_end(sentence):
    for place, word in enumerate(sentence.english):
        assert word in next_words(sentence.english[:place])
    assert END in next_words(sentence.english)
    assert sentence_of(sentence.english) == sentence


@given(sentences, st.randoms(use_true_random=False))
def test_a_walk_along_the_words_that_may_come_ends_in_a_sentence(sentence, random):
    words = list(sentence.english[: random.randrange(len(sentence.english))])
    while (options := sorted(next_words(words))) != [END]:
        words.append(random.choice(options))
    assert words[-1] == "."
    assert sentence_of(words) is not None


@pytest.mark.parametrize(
    ("english", "german", "read_from"),
    [
        (
            "the cat sat on the mat because it was tired .",
            "die Katze saß auf der Matte , weil sie müde war .",
            "cat cat sat on mat mat - because cat tired was -",
        ),
        (
            "the dogs have stolen the cake .",
            "die Hunde haben den Kuchen gestohlen .",
            "dogs dogs have cake cake stolen -",
        ),
        (
            "Mary gave the children a ring .",
            "Mary gab den Kindern einen Ring .",
            "Mary gave children children ring ring -",
        ),
        (
            "when Tom and Eva went to the school , Eva gave a book to Tom .",
            "als Tom und Eva zur Schule gingen , gab Eva Tom ein Buch .",
            "when Tom and Eva school school went - gave Eva Tom book book -",
        ),
        (
            "the girl that stood under the tree was proud .",
            "das Mädchen , das unter dem Baum stand , war stolz .",
            "girl girl - girl under tree tree stood - was proud -",
        ),
    ],
)
def test_translations_and_the_words_that_decide_them(english, german, read_from):
    sentence = sentence_of(english.split())
    assert " ".join(sentence.german) == german
    assert " ".join("-" if i == NOWHERE else sentence.english[i] for i in sentence.read_from) == read_from


@pytest.mark.parametrize(
    "english", ["the cat", "the cat were tired .", "the frog that waited near the wall was hungry ."]
)
def test_what_the_grammar_does_not_make_has_no_translation(english):
    assert sentence_of(english.split()) is None


def test_the_words_are_some_two_hundred_and_each_is_drawn():
    drawn = draw_sentences(4_000, torch.Generator().manual_seed(0))
    assert {word for sentence in drawn for word in sentence.english} == set(english_words())
    assert {word for sentence in drawn for word in sentence.german} <= set(german_words())
    assert 180 <= len(english_words()) <= 220


def test_a_slot_never_disagrees():
    for sentence in draw_sentences(500, torch.Generator().manual_seed(1)):
        words = sentence.english
        for place, word in enumerate(words):
            if word in ("it", "he", "she") and words[place - 1] == "because":
                assert words[place + 1] == "was"
            if word == "they":
                assert words[place + 1] == "were"


def test_the_shipped_model_goes_on_as_the_grammar_allows():
    task, checkpoint = TASKS["small_english"], shipped("small_english")
    model = model_with(checkpoint.recipe, checkpoint.weights)
    texts = held_out_texts(task, 300, torch.Generator().manual_seed(3))
    batch = make_batch(task, texts)
    with torch.inference_mode():
        likeliest = model(*batch.inputs, **batch.masks).argmax(-1)
    is_asked = batch.labels != 0
    right = allowed_words(task, texts).gather(-1, likeliest[..., None])[..., 0][is_asked]
    assert right.double().mean() >= 0.98


def test_some_head_of_the_shipped_translator_looks_at_the_word_that_decides_the_next():
    task, checkpoint = TASKS["small_translator"], shipped("small_translator")
    model = model_with(checkpoint.recipe, checkpoint.weights)
    found = []
    for text in held_out_texts(task, 100, torch.Generator().manual_seed(9)):
        batch = make_batch(task, [text])
        with torch.inference_mode(), record(model) as trace:
            model(*batch.inputs, **batch.masks)
        heads = [stage.value[0] for path, stage in trace.items() if path.endswith("cross_attention.weights")]
        strongest = torch.cat(heads).argmax(-1)
        keys = expected_keys(task, text)
        found += [key in strongest[:, query] for query, key in enumerate(keys) if key != NOWHERE]
    assert sum(found) >= 0.9 * len(found)
