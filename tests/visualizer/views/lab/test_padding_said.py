"""Under Prove stands whether padding changes the outputs, and why."""

from __future__ import annotations

import pytest

from tests.test_app import open_app

LINK = {"view": "lab", "panel": "prove", "architecture": "decoder", "text": "a b", "weights": "random", "pad": 2}


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ({"mask": "causal"}, "the masks let tokens see it"),
        ({"mask": "causal,padding", "fault": "padding_counted"}, "positions count the padding"),
        ({"mask": "causal", "fault": "padding_counted", "positions": "none"}, "the masks let tokens see it"),
        ({"mask": "none", "fault": "before_softmax"}, "the masks let tokens see it"),
        ({"mask": "causal", "score": "score / 2"}, "the masks let tokens see it"),
        ({"mask": "causal,padding", "score": "score * (q + 1)"}, "the change of scores counts it"),
    ],
)
def test_why_padding_changes_the_outputs_is_said(link, why):
    app = open_app(**LINK, pad_side="left", **link)
    assert any("Padding changes the logits" in error.value and why in error.value for error in app.error)


def test_padding_that_changes_nothing_is_said():
    app = open_app(**LINK, mask="causal,padding")
    assert any("Padding changes nothing" in success.value for success in app.success)
