"""What a mask should be, as it is chosen in the Mask lab."""

from __future__ import annotations

import pytest

from model.mask_tools.intent_kinds import INTENT_KINDS, IntentKind
from tests.test_app import assert_healthy, in_link, open_app


@pytest.mark.parametrize("least", [0, 2, 9])
def test_a_numbered_kind_that_is_added_can_be_chosen_and_its_number_said(monkeypatch, least):
    words, expression = (lambda n: f"stripes {n} apart"), (lambda n, q: f"({q} - k) % {n} == 0")
    monkeypatch.setitem(INTENT_KINDS, "stripes", IntentKind("Stripes", "Distance", words, expression, least))
    app = open_app(view="lab", text="a b c d")
    (menu,) = (box for box in app.selectbox if box.key.startswith("intent_"))
    menu.set_value("stripes").run()
    assert_healthy(app)
    assert in_link(app, "intent") == "stripes"
    (number,) = (field for field in app.number_input if field.key.startswith("intent_number"))
    number.set_value(least + 1).run()
    assert_healthy(app)
    assert in_link(app, "intent") == f"stripes:{least + 1}"


@pytest.mark.parametrize("kind", [kind for kind, entry in INTENT_KINDS.items() if entry.number])
def test_every_numbered_kind_is_chosen_without_a_number(kind):
    app = open_app(view="lab", text="a b c d")
    (menu,) = (box for box in app.selectbox if box.key.startswith("intent_"))
    menu.set_value(kind).run()
    assert_healthy(app)
    assert in_link(app, "intent") == kind
