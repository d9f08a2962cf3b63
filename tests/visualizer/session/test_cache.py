"""What the rooms keep for themselves."""

from visualizer.session.cache import Kept, cached_run
from visualizer.settings.settings import Settings


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


def test_runs_in_passing_push_out_none_that_a_page_shows():
    shown = [Settings(text="a b", d_model=8, n_heads=1, n_layers=1, seed=seed) for seed in range(2)]
    kept = [cached_run(settings) for settings in shown]
    passing = [Settings(text="a", d_model=8, n_heads=1, n_layers=1, seed=seed) for seed in range(30)]
    last = [cached_run(settings, is_passing=True) for settings in passing][-1]
    assert [cached_run(settings) for settings in shown] == kept
    assert cached_run(passing[-1]) is last
