import gc
import sys
from types import ModuleType

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
