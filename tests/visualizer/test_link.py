"""The link holds everything chosen, in controls and in pictures: whoever opens it is shown the same."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.test_app import assert_healthy, bytes_of, open_app
from tests.visualizer.told import dials_in, tell
from visualizer.components.packing import header_of
from visualizer.state import state

TEXT = "one two three one"
WRITING = {"view": "generate", "architecture": "decoder", "weights": "random", "text": TEXT}


def link_of(app: AppTest) -> dict[str, str]:
    """The parameters of the address."""
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def control(app: AppTest, key: str) -> Any:
    """The control with this key, of whatever kind."""
    return next(one for one in controls(app) if one.key == key)


def controls(app: AppTest) -> list[Any]:
    kinds = (
        "toggle",
        "segmented_control",
        "pills",
        "number_input",
        "slider",
        "select_slider",
        "selectbox",
        "text_area",
    )
    return [one for kind in kinds for one in getattr(app, kind)]


def brought_back(app: AppTest) -> AppTest:
    """The page that someone who was never there gets by the same link, where it is the same."""
    link = link_of(app)
    again = open_app(**link)
    assert_healthy(again)
    assert link_of(again) == link
    for shown, first in zip(everything_of(again), everything_of(app), strict=True):
        assert shown == first
    return again


def everything_of(app: AppTest) -> tuple[object, ...]:
    """Return the texts of the page, the values of its controls, and the data of its tables and its pictures."""
    return (
        [one.value for kind in ("caption", "markdown", "code", "warning", "info") for one in app.get(kind)],
        {one.key: one.value for one in controls(app)},
        [table.proto.arrow_data.data for table in app.dataframe],
        bytes_of(app),
    )


@pytest.mark.parametrize(
    ("link", "acts", "expected"),
    [
        ({"view": "compare"}, {"relative": True}, {"compare.relative": "on"}),
        ({}, {"numbers": True}, {"numbers": "on"}),
        ({"view": "lab"}, {"library": "flex_attention"}, {"lab.library": "flex_attention"}),
        ({"view": "lab"}, {"panel": "prove", "claim": "causal"}, {"lab.panel": "prove", "lab.claim": "causal"}),
        (
            WRITING,
            {"strategy": "sampling", "most_tokens": 6, "likely_tokens_left": 3, "draws": 5, "temperature": 3.0}
            | {"cached": True},
            {"generate.strategy": "sampling", "generate.limit": "6", "generate.top_k": "3", "generate.draws": "5"}
            | {"generate.temperature": "3", "generate.cached": "on"},
        ),
        (WRITING, {"strategy": "beam", "beams": 1}, {"generate.strategy": "beam", "generate.beams": "1"}),
        (
            {"view": "compare", "architecture": "decoder"},
            {"model": "random", "n_heads": 2},
            {"weights": "random", "n_heads": "2"},
        ),
    ],
)
def test_what_is_chosen_in_a_control_comes_back(link, acts, expected):
    app = open_app(**{"text": TEXT} | link)
    for key, value in acts.items():
        control(app, key).set_value(value).run()
    assert link_of(app) == {"text": TEXT} | link | expected
    again = brought_back(app)
    for key, value in acts.items():
        assert control(again, key).value == value
    assert again.dataframe or "numbers" not in acts


def test_a_cell_chosen_in_a_picture_comes_back_with_its_layer_and_head():
    key = "attention_heads_encoder_self_attention"
    app = open_app(view="heads", text=TEXT)
    tell(app, key, "select", {"layer": 1, "head": 3, "query": 3, "key": 2, "seq": 1})
    assert link_of(app) == {"view": "heads", "text": TEXT, "layer": "1", "head": "3", "query": "3", "key": "2"}
    (drawn,) = (one.proto.bytes for one in open_app(**link_of(app)).get("bidi_component") if key in one.proto.id)
    shown = {name: header_of(drawn)[name] for name in ("layer", "head", "selected")}
    assert shown == {"layer": 1, "head": 3, "selected": [3, 2]}


def test_the_opening_note_goes_with_what_it_speaks_of(monkeypatch):
    def is_said() -> bool:
        return any("gives half of its weight to the first" in caption.value for caption in app.caption)

    app = open_app()
    assert is_said()
    tell(app, "every_head", "select", {"index": 0, "row": 3, "column": 2, "seq": 1})
    assert not is_said()
    app.query_params.clear()
    app.query_params["view"] = "step"
    monkeypatch.setattr(state, "has_gone_back", lambda: True)
    app.run()
    assert is_said()


def test_bad_values_become_good_ones_and_all_are_told_until_something_is_chosen():
    app = open_app(n_heads="nan", norm="prr", mask="<img src=x>", view="hedas")
    told = app.warning[0].value.replace("\\", "").replace("\u2060", "")
    for part in (
        "n_heads=nan is not a number",
        "norm=prr is not one of",
        "mask=<img src=x> is not",
        "view=hedas is",
    ):
        assert part in told
    assert link_of(app) == {"norm": "pre", "mask": "none", "view": "heads"}
    key = "attention_heads_encoder_self_attention"
    assert dials_in(app, key)["n_heads"] == 4
    tell(app, key, "shown", turned={"mask": ["causal"]})
    assert not app.warning
