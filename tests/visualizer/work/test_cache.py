"""The caches of the rooms."""

import gc
import weakref
from threading import Event, Thread

from visualizer.settings.settings import Settings
from visualizer.work import cache
from visualizer.work.cache import Cache, cached_run


def test_what_does_not_fit_is_forgotten_but_for_the_newest():
    cache = Cache(room=5, size=len)
    for text in ("one", "four", "no", "much longer"):
        assert cache.put(text[0], text) is text
    assert [cache.get(key) for key in "ofnm"] == [None, None, None, "much longer"]


def test_the_newest_that_fit_are_kept():
    cache = Cache(room=2)
    for number in (1, 2, 1, 3):
        cache.put(number, -number)
    assert [cache.get(number) for number in (1, 2, 3)] == [-1, None, -3]


def test_runs_in_passing_push_out_none_that_a_page_shows():
    shown = [Settings(text="a b", d_model=8, n_heads=1, n_layers=1, seed=seed) for seed in range(2)]
    cache = [cached_run(settings) for settings in shown]
    passing = [Settings(text="a", d_model=8, n_heads=1, n_layers=1, seed=seed) for seed in range(30)]
    last = [cached_run(settings, is_passing=True) for settings in passing][-1]
    assert [cached_run(settings) for settings in shown] == cache
    assert cached_run(passing[-1]) is last


class Large:
    """Stands for a run that takes much memory."""

    n_bytes = 2**30


def test_large_runs_are_computed_one_after_the_other_when_there_is_room(monkeypatch):
    monkeypatch.setattr(cache, "SMALL_RUN", 0)
    monkeypatch.setattr(cache, "_LARGE_RUNS", Cache(room=2, size=lambda run: 1))
    monkeypatch.setattr(cache, "LARGE_RUN", 1)
    settings = [Settings(text="a", d_model=8, n_heads=1, n_layers=1, seed=seed) for seed in range(100, 104)]
    is_asked, is_beside, alive = Event(), Event(), []
    asking = Thread(target=lambda: (is_asked.set(), cached_run(settings[3])))

    def compute(prepared):
        if prepared.settings == settings[2]:
            asking.start()
            assert is_asked.wait(5)
            assert not is_beside.wait(0.05)
        elif prepared.settings == settings[3]:
            is_beside.set()
        gc.collect()
        alive.append(sum(one() is not None for one in made))
        made.append(weakref.ref(run := Large()))
        return run

    made = []
    monkeypatch.setattr(cache, "compute", compute)
    for one in settings[:3]:
        cached_run(one)
    asking.join(5)
    assert alive == [0, 1, 1, 1]
