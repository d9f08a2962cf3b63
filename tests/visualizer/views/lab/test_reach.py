"""Reach: what is said where more passes than the masks let through."""

from __future__ import annotations

import pytest

from tests.test_app import open_app

LINK = {"view": "lab", "panel": "reach", "architecture": "decoder", "weights": "random", "text": "a b c d"}
MEAN = {"edits": "decoder.layers.0.self_attention.weights-mean"}


@pytest.mark.parametrize(
    ("link", "why"),
    [
        (MEAN, "an edit puts in numbers that depend on other tokens"),
        ({"fault": "before_softmax"}, "the masks are not what the model was given"),
        ({"fault": "before_softmax", **MEAN}, "the masks are not what the model was given"),
    ],
)
def test_what_goes_around_the_masks_is_named(link, why):
    (said,) = [each.value for each in open_app(**LINK, mask="causal", **link).error]
    assert said.endswith(f"cells without a way are not zero: {why}.")


def test_within_the_masks_nothing_is_wrong():
    app = open_app(**LINK, mask="causal")
    assert not app.error
    assert any("10 of the 10 cells with one measure more than 0" in each.value for each in app.caption)
