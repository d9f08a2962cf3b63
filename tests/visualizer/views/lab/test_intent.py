"""The intention of a mask, as it is chosen in the Mask lab."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headlight.masks.intent_kinds import INTENT_KINDS
from tests.test_app import assert_healthy, in_link, open_app

ADDED = """
from headlight.masks.intent_kinds import INTENT_KINDS, IntentKind

def say(n, at):
    return f"stripes {n} apart"

INTENT_KINDS["stripes"] = IntentKind("Stripes", "Distance", say, "({q} - k) % {n} == 0", 2)

from tests.test_app import assert_healthy, in_link, open_app

app = open_app(view="lab", text="a b c d")
(menu,) = (box for box in app.selectbox if box.key.startswith("kind_of_intent"))
menu.set_value("stripes").run()
assert_healthy(app)
print(in_link(app, "intent"))
(number,) = (field for field in app.number_input if field.key.startswith("number_of_intent"))
number.set_value(3).run()
assert_healthy(app)
print(in_link(app, "intent"))
"""


def test_a_numbered_kind_that_is_added_can_be_chosen_and_its_number_said():
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", ADDED], cwd=root, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["stripes", "stripes:3"], done.stderr


@pytest.mark.parametrize("kind", [kind for kind, entry in INTENT_KINDS.items() if entry.number])
def test_every_numbered_kind_is_chosen_without_a_number(kind):
    app = open_app(view="lab", text="a b c d")
    (menu,) = (box for box in app.selectbox if box.key.startswith("kind_of_intent"))
    menu.set_value(kind).run()
    assert_healthy(app)
    assert in_link(app, "intent") == kind


def test_a_number_and_a_box_that_change_in_one_instant_both_count():
    app = open_app(view="lab", text="a b\nc d e f", mask="causal,padding", intent="window:3")
    (number,) = (field for field in app.number_input if field.key.startswith("number_of_intent"))
    (box,) = (one for one in app.checkbox if one.key.startswith("padding_of_intent"))
    number.set_value(2)
    box.check().run()
    assert_healthy(app)
    assert in_link(app, "intent") == "window:2+padding"


def test_the_comparison_with_the_intended_mask_is_of_what_was_chosen_right_before():
    app = open_app(view="lab", text="a b c d", mask="causal", intent="window:3")
    (number,) = (field for field in app.number_input if field.key.startswith("number_of_intent"))
    number.set_value(2)
    app.pills(key="mask").set_value(["causal", "strided"])
    app.button(key="compare_intent").click().run()
    assert_healthy(app)
    assert [in_link(app, name) for name in ("view", "intent", "mask_a")] == [
        "compare",
        "window:2",
        "causal,strided",
    ]
