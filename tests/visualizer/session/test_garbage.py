import gc
import sys
from types import ModuleType

from visualizer.session import garbage
from visualizer.session.garbage import freeze_imports


def test_collections_pass_over_what_was_imported_each_time_that_there_is_more(monkeypatch):
    frozen = []
    monkeypatch.setattr(gc, "collect", lambda: 0)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(len(sys.modules)))
    freeze_imports()
    frozen.clear()
    freeze_imports()
    assert frozen == []
    monkeypatch.setitem(sys.modules, "imported_late", ModuleType("imported_late"))
    freeze_imports()
    freeze_imports()
    assert frozen == [len(sys.modules)]


def test_a_server_collects_after_a_pause_with_runs_and_gives_memory_back_after_one_without(
    monkeypatch,
):
    done = []
    monkeypatch.setattr(gc, "collect", lambda: done.append("collected"))
    monkeypatch.setattr(garbage, "give_back_freed_memory", lambda: done.append("given back"))
    freeze_imports()
    done.clear()
    pauses = iter([False, False, False, True])
    garbage._collect_again_and_again(lambda seconds: next(pauses))
    assert done == ["collected", "given back"]
