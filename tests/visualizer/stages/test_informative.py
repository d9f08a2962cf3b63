"""The number of a row that is looked at where nobody has chosen one."""

import pytest

from tests.test_app import open_app
from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings
from visualizer.stages.informative import informative_column
from visualizer.stages.panels import matrix

ATTENTION = "encoder.layers.0.self_attention"


@pytest.fixture(scope="module")
def run():
    return compute_run(Settings(architecture="encoder", mask=()))


def column_of(run, path, row, column, head=1):
    return informative_column(run, path, batch=0, head=head, row=row, column=column)


@pytest.mark.parametrize("name", ["scores", "scaled_scores", "masked_scores", "weights"])
def test_from_the_scores_to_the_weights_the_same_key_is_looked_at(run, name):
    largest = run.trace[f"{ATTENTION}.weights"].value[0, 1].argmax(-1).tolist()
    found = [column_of(run, f"{ATTENTION}.{name}", row, (key + 3) % 11) for row, key in enumerate(largest)]
    assert found == largest


def test_a_number_that_says_as_much_stays(run):
    row = matrix(run.trace[f"{ATTENTION}.weights"].value, head=2, batch=0)[8]
    alike = [key for key, weight in enumerate(row) if weight > 0.6 * row.max()]
    assert len(alike) > 1
    assert [column_of(run, f"{ATTENTION}.weights", 8, key, head=2) for key in alike] == alike


def test_of_probabilities_the_winner_and_elsewhere_what_is_furthest_from_zero(run):
    winners = run.trace["probabilities"].value[0].argmax(-1).tolist()
    assert [column_of(run, "probabilities", row, 1) for row in range(11)] == winners
    query = run.trace[f"{ATTENTION}.q"].value[0, 1, 4].abs()
    least, most = int(query.argmin()), int(query.argmax())
    assert column_of(run, f"{ATTENTION}.q", 4, least) == most


def test_a_key_that_was_chosen_is_looked_at_whatever_it_says():
    def looked_at(**link: str) -> str:
        app = open_app(stage="encoder.self_attention.weights", query="3", head="1", **link)
        return next(each.proto.bytes for each in app.get("bidi_component") if "tensor" in each.proto.component_name)

    unnamed, named, other = looked_at(), looked_at(cell="on"), looked_at(key="5")
    assert b'"selected":["weights",3,3]' in unnamed
    assert b'"selected":["weights",3,1]' in named
    assert b'"selected":["weights",3,5]' in other
