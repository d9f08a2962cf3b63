"""The row of one query under every way of masking: what the picture is sent, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest

from headlight.masks.application import APPLICATIONS
from tests.test_app import in_link, open_app
from tests.visualizer.unpacking import unpacked
from visualizer.settings.settings import Settings
from visualizer.work.cache import cached_run

QUERY, KEYS = 1, 4
MODEL = {"architecture": "decoder", "text": "a b c d", "weights": "random"}


def opened():
    return open_app(**MODEL, view="lab", panel="apply", head="0", query=str(QUERY))


def pictures(app):
    """The header and the arrays of both pictures: the row as it is masked, and with no key left."""
    parts = [each.proto for each in app.get("bidi_component")]
    grids = [each for each in parts if each.component_name == "headlight_tensor_grid"]
    assert len(grids) == 2
    return [unpacked(each.bytes) for each in grids]


def softmax(scores):
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()


@pytest.fixture(scope="module")
def scores():
    run = cached_run(Settings(**MODEL))
    return run.trace["decoder.layers.0.self_attention.scaled_scores"].value[0, 0, QUERY].double().numpy()


def test_each_way_has_its_row_and_a_blocked_key_with_weight_is_outlined(scores):
    app = opened()
    (header, arrays), (_, without_key) = pictures(app)
    ways = [way.title for way in APPLICATIONS.values()]
    assert header["axes"][header["panels"][0]["rows"]]["labels"] == ways
    allowed = np.arange(KEYS) <= QUERY
    weights = dict(zip(ways, arrays["values0"], strict=True))
    right = np.append(softmax(scores[allowed]), [0, 0])
    np.testing.assert_allclose(weights["−∞"], right, rtol=1e-5)
    np.testing.assert_allclose(weights["times scores"], softmax(scores * allowed), rtol=1e-5)
    np.testing.assert_allclose(weights["times weights"], softmax(scores) * allowed, rtol=1e-5)
    outlined = dict(zip(ways, arrays["marked0"].astype(bool), strict=True))
    assert [way for way in ways if outlined[way].any()] == ["times scores"]
    assert (outlined["times scores"] == ~allowed).all()
    np.testing.assert_array_equal(arrays["blocked0"].astype(bool), ~allowed & (arrays["values0"] == 0))
    assert np.isnan(without_key["values0"][ways.index("−∞")]).all()
    np.testing.assert_array_equal(without_key["values0"][ways.index("−1e9")], np.full(KEYS, 0.25))


def test_another_type_of_number_has_its_own_weights_and_its_own_faults():
    app = opened()
    refused = "masked_fill refuses it"
    assert not any(refused in said.value for said in app.caption)
    before = pictures(app)[0][1]["values0"]
    app.segmented_control("number_type").set_value("float16").run()
    assert any(refused in said.value for said in app.caption)
    assert in_link(app, "number_type") == "float16"
    after = pictures(app)[0][1]["values0"]
    assert not np.array_equal(before, after)
    np.testing.assert_allclose(before, after, atol=2e-3)
