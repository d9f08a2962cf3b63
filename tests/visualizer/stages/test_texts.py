"""The texts about a stage: at two depths, and nothing that this run does not have."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import get_args

import pytest

from tests.visualizer.sample_runs import BASE, VARIANTS, run_of, unmarked
from visualizer.glossary import GLOSSARY
from visualizer.masks import MASK_NAMES
from visualizer.runs.compute import compute_run
from visualizer.runs.run import Run
from visualizer.settings.fields import TRAINED, WORKED_EXAMPLES
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import FIELDS, Settings
from visualizer.stages.explanations import TEXTS, Fact, sentences
from visualizer.stages.registry import ENTRIES, explanation, facts_of

DEPTHS = tuple(FIELDS["depth"].choices)

MORE = {
    "trained encoder": fitted(Settings(weights=TRAINED, task="match_brackets", text="(())")),
    "trained encoder-decoder": fitted(Settings(weights=TRAINED, task="reverse", text="abc")),
    "mask bug before": replace(BASE, fault="before_softmax"),
    "mask bug after": replace(BASE, fault="after_softmax"),
    "a mask that blocks nothing": replace(BASE, mask=("padding",), pad=0),
    "hand-built, learned positions": replace(BASE, weights="hand_built", d_model=32, positions="learned"),
    "hand-built encoder-decoder": replace(BASE, weights="hand_built", d_model=32, architecture="encoder-decoder"),
}
EVERY = [*VARIANTS, *WORKED_EXAMPLES, *MORE]


@cache
def run_named(name: str) -> Run:
    return compute_run(MORE[name]) if name in MORE else run_of(name)


@pytest.mark.parametrize("name", EVERY)
def test_every_stage_has_a_plain_and_an_exact_text(name):
    run = run_named(name)
    for path in run.trace:
        plain, exact = (unmarked(explanation(run, path, depth)) for depth in DEPTHS)
        assert plain != exact
        for text in (plain, exact):
            assert text.endswith("."), (path, text)
            assert len(text) > 30
            assert not set("[]{}") & set(text), (path, text)
            assert len(text.split()) < 75 or run.settings.mask == MASK_NAMES, (
                path,
                text,
            )  # a sentence for each mask


def module_of(path: str) -> str:
    return path.rpartition(".")[0]


def weights_come_from(*sources: str) -> Callable[[Run, str], bool]:
    return lambda run, path: run.settings.weights in sources


def has_mask(run: Run, path: str) -> bool:
    return f"{module_of(path)}.mask" in run.trace


def is_under(mask: str) -> Callable[[Run, str], bool]:
    return lambda run, path: mask in run.mask_of(module_of(path)).names


def has_fault(run: Run, path: str) -> bool:
    return run.settings.fault != "none" and has_mask(run, path)


SAYS_ONLY_WHERE: dict[str, Callable[[Run, str], bool]] = {
    r"[Dd]ropout": lambda run, path: run.settings.dropout > 0 and run.example is None,
    r"(?<!no )\bmask\b|\bblock(s|ed)\b|hatched": has_mask,
    r"no mask": lambda run, path: not has_mask(run, path),
    r"[Cc]ausal": is_under("causal"),
    r"(?<!key_)[Pp]adding": lambda run, path: is_under("padding")(run, path) or run.settings.pad_side == "left",
    r"[Ss]liding": is_under("sliding_window"),
    r"[Ss]trided": is_under("strided"),
    r"[Pp]refix": is_under("prefix"),
    r"[Pp]ainted": is_under("custom"),
    r"minus infinity": has_mask,
    r"mask bug|mistake": has_fault,
    r"\bsource\b|\btarget\b|[Cc]ross-attention": lambda run, path: (
        (run.is_cross_attention(module_of(path)) or run.trace[path].name == "residual2") and "target" in run.tokens
    ),
    r"[Ss]elf-attention": lambda run, path: (
        "self_attention" in path
        or run.trace[path].name == "residual1"
        or run.settings.architecture == "attention"
        or run.example is not None
    ),
    r"residual stream|all layers": lambda run, path: any("residual" in stage for stage in run.trace),
    r"\bencoder\b": lambda run, path: run.settings.architecture == "encoder-decoder",
    r"\bheads\b": lambda run, path: run.trace[f"{module_of(path)}.q"].value.shape[1] > 1,
    r"one head": lambda run, path: run.trace[f"{module_of(path)}.q"].value.shape[1] == 1,
    r"ReLU": lambda run, path: run.activation(path) == "relu",
    r"GELU|fade": lambda run, path: run.activation(path) == "gelu",
    r"pre-norm|makes a copy|only copies": lambda run, path: run.settings.norm == "pre" and run.example is None,
    r"to one scale before|nn\.Transformer\.": lambda run, path: run.settings.norm == "post",
    r"sines|waves, fast": lambda run, path: run.settings.positions == "sinusoidal",
    r"table with one vector|[Tt]hese vectors": lambda run, path: run.settings.positions == "learned",
    r"(but it is|\) is|Scaling is) off": lambda run, path: not run.settings.scale_scores,
    r"Dividing by": lambda run, path: run.settings.scale_scores,
    r"[Tt]raining wrote|(?<!nothing )was learned|trained on": weights_come_from(TRAINED),
    r"not trained": weights_come_from("random", "hand_built"),
    r"by hand": weights_come_from("hand_built"),
    r"table is random|drawn at random|still random": weights_come_from("random"),
    r"given as they are|It is given": lambda run, path: f"{module_of(path)}.q_proj" not in run.trace,
    r"has no output projection": lambda run, path: (
        run.trace[path].value is run.trace[f"{module_of(path)}.concat"].value
    ),
}
"""The sentences that are true only where something holds: seen in the settings and the trace, not in the facts."""


@pytest.mark.parametrize("name", EVERY)
def test_no_text_names_what_the_run_does_not_have(name):
    run = run_named(name)
    for path in run.trace:
        for depth in DEPTHS:
            text = unmarked(explanation(run, path, depth))
            for words, is_true in SAYS_ONLY_WHERE.items():
                assert not re.search(words, text) or is_true(run, path), (path, depth, words, text)


def test_what_may_be_said_is_said_somewhere():
    """Else the words above guard nothing."""
    texts = " ".join(
        unmarked(explanation(run_named(name), path, depth))
        for name in EVERY
        for path in run_named(name).trace
        for depth in DEPTHS
    )
    assert [words for words in SAYS_ONLY_WHERE if not re.search(words, texts)] == []


def test_every_text_of_the_file_is_that_of_an_entry_and_says_no_fact_in_vain():
    entries = [entry for entries in ENTRIES.values() for entry in entries]
    used = {text for entry in entries for text in (entry.plain, entry.exact)}
    written = [text for part in TEXTS.values() for stage in part.values() for text in stage.values()]
    assert [text for text in written if text not in used] == []
    assert [entry.name for entry in entries if not (entry.plain and entry.exact)] == []
    said = {fact for text in written for sentence in sentences(text) for fact in sentence.facts}
    assert said == {fact for facts in get_args(Fact) for fact in get_args(facts)}


def test_the_plain_text_of_a_model_is_shorter_than_the_exact_one():
    for name in EVERY:
        run = run_named(name)
        plain, exact = (sum(len(explanation(run, path, depth).split()) for path in run.trace) for depth in DEPTHS)
        assert plain < exact, name


def test_no_text_is_an_allegory():
    """The library of readers and books stands once, at query, key and value in the glossary."""
    words = re.compile(r"\b(librar(y|ian)|reader|slip|spine|shelf|book|card|stamp)s?\b", re.IGNORECASE)
    assert not [
        text for part in TEXTS.values() for stage in part.values() for text in stage.values() if words.search(text)
    ]
    assert [entry.name for entry in GLOSSARY.values() if words.search(entry.text)] == ["query", "key", "value"]


@pytest.mark.parametrize(
    ("name", "path", "says"),
    [
        ("dropout", "encoder.layers.0.self_attention.dropped_weights", "0.3"),
        ("encoder", "encoder.layers.0.self_attention.scaled_scores", "√4 = 2"),
        ("encoder", "encoder.layers.0.feed_forward.hidden", "24 "),
        ("one_head", "attention.scaled_scores", "√6 ≈ 2.449"),
        ("every mask", "encoder.layers.0.self_attention.weights", "no key left"),
        ("trained encoder-decoder", "probabilities", "trained on “Reverse”"),
        ("padding on the left", "encoder.inputs.positional_encoding", "count from the first token"),
        ("unembedding bias", "logits", "bias"),
    ],
)
def test_the_numbers_and_facts_told_are_those_of_the_run(name, path, says):
    assert says in unmarked(explanation(run_named(name), path, "exact"))


def test_a_mask_bug_is_told_where_it_works():
    for name, zeroed in (("mask bug before", True), ("mask bug after", False)):
        run = run_named(name)
        facts = facts_of(run, "encoder.layers.0.self_attention.weights").holding
        assert ("scores_zeroed" in facts, "masked_late" in facts, "masked" in facts) == (zeroed, not zeroed, False)
        for stage in ("masked_scores", "weights"):
            assert "mask bug" in explanation(run, f"encoder.layers.0.self_attention.{stage}", "exact")
