"""The text of a mask for other libraries."""

from visualizer.views.lab import translate


def test_code_that_no_page_can_hold_is_named_and_not_shown(monkeypatch):
    """A browser stands still for seconds over the million cells of a mask of 1,024 by 1,024."""
    shown, said = [], []
    monkeypatch.setattr(translate.st, "code", lambda code, **_: shown.append(code))
    monkeypatch.setattr(translate.st, "info", lambda text, **_: said.append(text))
    translate._show("x" * translate.MOST_SHOWN)
    translate._show("x" * (translate.MOST_SHOWN + 1))
    assert shown == ["x" * translate.MOST_SHOWN]
    assert len(said) == 1
    assert "300,001 characters, too many to be shown" in said[0]
