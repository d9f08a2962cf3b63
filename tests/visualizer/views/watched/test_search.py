"""Find heads: every measure of every head against its definition in NumPy, and what a click on the map shows."""

from __future__ import annotations

import numpy as np
import pytest

from headlight.pretrained.checkpoint import load
from headlight.pretrained.opening import cost_of, open_checkpoint
from headlight.pretrained.passes import run
from headlight.pretrained.tokens import Words, tokenized
from tests.headlight.pretrained.tiny_checkpoints import FAMILIES, saved
from tests.visualizer.told import tell
from tests.visualizer.views.watched.test_watched_view import headers, link_of, open_app
from visualizer.runs.watched import WatchedRun
from visualizer.settings.watched_settings import MEASURES
from visualizer.views.watched.search import measured

TEXT = "the cat the cat un the"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("headlight.pretrained.places.sites", lambda: ())


def mean_weight(weights, texts, is_wanted):
    """The mean, over the queries that have a wanted key, of the weight on their wanted keys."""
    n_tokens = len(texts)
    wanted = np.array([[is_wanted(query, key) for key in range(n_tokens)] for query in range(n_tokens)])
    return (weights * wanted).sum(-1)[wanted.any(-1)].mean()


def reference(measure, weights, texts):
    """Return a measure of one head, (Tq, Tk), as its definition says."""
    queries, keys = np.indices(weights.shape)
    match measure:
        case "entropy":
            return -np.sum(weights * np.log2(np.where(weights > 0, weights, 1)), -1).mean()
        case "mean_distance":
            return (weights * abs(queries - keys)).sum(-1).mean()
    wanted = {
        "previous_token": lambda query, key: key == query - 1,
        "first_token": lambda query, key: key == 0,
        "own_position": lambda query, key: key == query,
        "same_token": lambda query, key: texts[key] == texts[query],
        "induction": lambda query, key: 0 < key <= query and texts[key - 1] == texts[query],
    }
    return mean_weight(weights, texts, wanted[measure])


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_measure_is_its_definition(family, measure, tmp_path):
    checkpoint = load(family, saved(family, tmp_path))
    words = Words(TEXT) if checkpoint.part == "decoder" else Words(TEXT, "un the")
    watched = WatchedRun(run(checkpoint, tokenized(checkpoint, words, 64)).trace, family)
    kind = watched.kinds[0]
    texts = watched.labels(kind[0], 0)[0]
    assert len(set(texts)) < len(texts), "the text repeats a token"
    expected = [
        [reference(measure, head.double().numpy(), texts) for head in attention.weights[0]] for attention in kind
    ]
    np.testing.assert_allclose(measured(watched, kind, measure), expected, atol=1e-5)


def test_the_map_shows_the_head_that_is_clicked(tmp_path):
    folder = str(saved("gpt2", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    link = {"watched_door": "pretrained", "pretrained_model": folder, "watched_panel": "search"}
    app = open_app(**link, pretrained_text=TEXT, watched_measure="previous_token")
    assert not app.exception
    grid = grid_of(app)
    assert [panel["title"] for panel in grid["panels"]] == ["On the previous token", "Weights of the chosen head"]
    tell(app, "head_map", "select", index=0, row=1, column=2)
    assert not app.exception
    assert link_of(app)["watched_head"] == "2"
    assert link_of(app)["watched_attention"] == "transformer.h.1.attn"
    weights = grid_of(app)["panels"][1]
    assert weights["subtitle"] == "transformer.h.1.attn, head 2"
    app.button(key="to_edits").click().run()
    assert link_of(app)["watched_panel"] == "edits"
    assert not app.exception


def test_a_measure_that_says_nothing_of_a_text_has_a_sentence(tmp_path):
    folder = str(saved("gpt2", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    link = {"watched_door": "pretrained", "pretrained_model": folder, "watched_panel": "search"}
    app = open_app(**link, pretrained_text="the cat")
    assert "induction asks about a token that comes twice" in app.info[0].value


def grid_of(app):
    """Return the header of the map."""
    return next(header for _, header in headers(app) if header.get("key") == "head_map")
