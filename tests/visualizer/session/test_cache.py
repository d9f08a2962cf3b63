"""What the rooms keep for themselves."""

from visualizer.session.cache import Kept


def test_what_does_not_fit_is_forgotten_but_for_the_newest():
    kept = Kept(room=5, size=len)
    for text in ("one", "four", "no", "much longer"):
        assert kept.keep(text[0], text) is text
    assert [kept.get(key) for key in "ofnm"] == [None, None, None, "much longer"]


def test_the_newest_that_fit_are_kept():
    kept = Kept(room=2)
    for number in (1, 2, 1, 3):
        kept.keep(number, -number)
    assert [kept.get(number) for number in (1, 2, 3)] == [-1, None, -3]
