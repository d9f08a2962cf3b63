"""Principal directions against the eigenvectors of the covariance."""

import numpy as np
import pytest

from visualizer.figures.principal_directions import Directions, direction_map, principal_directions

RANDOM = np.random.default_rng(3)
QUERIES, KEYS = RANDOM.normal(size=(6, 8)) + 2, RANDOM.normal(size=(9, 8)) * np.arange(1, 9)
WEIGHTS = np.arange(9) / 36


def test_shares_and_places_are_those_of_the_covariance():
    found = principal_directions(QUERIES, KEYS)
    together = np.concatenate([QUERIES, KEYS])
    values, vectors = np.linalg.eigh(np.cov(together.T))
    order = np.argsort(-values)[:2]
    assert found.shares == pytest.approx(values[order] / values.sum())
    places = (together - together.mean(0)) @ vectors[:, order]
    ours = np.concatenate([found.queries, found.keys])
    assert abs(ours) == pytest.approx(abs(places))
    assert abs(found.origin) == pytest.approx(abs(-together.mean(0) @ vectors[:, order]))


def test_in_two_dimensions_nothing_is_lost():
    queries, keys = QUERIES[:, :2], KEYS[:, :2]
    found = principal_directions(queries, keys)
    assert found.shares.sum() == pytest.approx(1)
    scores = (found.queries - found.origin) @ (found.keys - found.origin).T
    assert scores == pytest.approx(queries @ keys.T), "seen from zero, the points give the scores"


@pytest.mark.parametrize(("queries", "keys"), [(np.ones((1, 4)), np.ones((1, 4))), (QUERIES[:, :1], KEYS[:, :1])])
def test_directions_that_there_are_not_hold_nothing(queries, keys):
    found = principal_directions(queries, keys)
    assert found.shares[1] == 0
    assert np.isfinite(found.queries).all()


def test_the_map_draws_every_query_and_key_and_states_the_variance():
    found = principal_directions(QUERIES, KEYS)
    figure = direction_map(found, ["q<"] * 6, ["k"] * 9, weights=WEIGHTS, query=2, theme="light")
    traces = {trace.name: trace for trace in figure.data}
    assert np.array_equal(np.stack([traces["queries"].x, traces["queries"].y], 1), found.queries)
    assert np.array_equal(np.stack([traces["keys"].x, traces["keys"].y], 1), found.keys)
    assert (traces["the selected query"].x[0], traces["the selected query"].y[0]) == tuple(found.queries[2])
    assert list(np.argsort(traces["keys"].marker.size)) == list(range(9))
    assert f"{found.shares[0]:.1%}" in figure.layout.xaxis.title.text
    assert f"{found.shares[1]:.1%}" in figure.layout.yaxis.title.text
    assert set(traces["queries"].text) - {""} == {"q&lt;"}


def test_no_label_of_the_map_lies_on_another():
    places = np.array([[0.0, 0.0], [0.001, 0.001], [9.0, 0.0], [0.0, 5.0]])
    found = Directions(places, places, np.zeros(2), np.ones(2) / 2)
    labels = ["one", "two", "three", "four"]
    figure = direction_map(found, labels, labels, weights=np.full(4, 0.25), query=0, theme="light")
    keys, queries = figure.data[:2]
    assert list(keys.text) == list(queries.text) == ["one", "", "three", "four"]
    assert [label for label, _ in queries.customdata] == ["0 “one”", "1 “two”", "2 “three”", "3 “four”"]
