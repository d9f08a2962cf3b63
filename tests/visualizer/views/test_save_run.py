"""The button that saves a run as a recording."""

import gc
import weakref

from visualizer.runs.compute import compute_run
from visualizer.runs.saved import as_file
from visualizer.settings.settings import Settings
from visualizer.views import save_run


def test_a_page_that_offers_a_recording_does_not_keep_the_run(monkeypatch):
    """A page stays open for hours, and its run may take a gibibyte."""
    offered = {}
    monkeypatch.setattr(save_run.st, "download_button", lambda _label, **given: offered.update(given))
    run = compute_run(Settings(text="a b\nc", mask=("causal", "padding"), d_model=8, d_ff=8, n_heads=1)).at(1)
    wanted, held = as_file(run).getvalue(), weakref.ref(run.trace)
    save_run.save_run(run)
    del run
    gc.collect()
    assert held() is None
    assert offered["data"]().getvalue() == wanted
