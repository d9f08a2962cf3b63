"""The dial's temperature and the change of the scores that it stands for."""

import pytest

from visualizer.settings.temperature import at_temperature, temperature_of


@pytest.mark.parametrize(
    ("temperature", "score"), [(1, ""), (2, "score / 2"), (0.1, "score / 0.1"), (1.26, "score / 1.26")]
)
def test_a_temperature_is_a_change_of_the_scores_and_is_read_back(temperature, score):
    assert at_temperature(temperature) == score
    assert temperature_of(score) == temperature


@pytest.mark.parametrize("sent", [0, -1, 11, float("nan"), float("inf"), True, "2", None, [2]])
def test_what_is_no_temperature_changes_nothing(sent):
    assert at_temperature(sent) is None


@pytest.mark.parametrize("score", ["score * 2", "score / 0", "score / 50", "score / q", "score / 2 + 1"])
def test_another_change_of_the_scores_has_no_temperature(score):
    assert temperature_of(score) is None
