"""Uploads: found by what a link calls them, as long as they are what they were."""

from __future__ import annotations

import pytest

from visualizer import store
from visualizer.work.uploads import Upload, find, keep


def test_a_file_is_found_by_its_link_and_by_no_other():
    kept = keep("a/b.npy", b"content")
    assert find(kept.called) == kept == Upload("a/b.npy", b"content", kept.called)
    digest = kept.called.partition("/")[0]
    for called in ("", "a/b.npy", f"{digest[1:]}/a/b.npy", f"../{kept.called}", kept.called.upper()):
        assert find(called) is None
    store.save(f"{digest}.upload", b"another")
    assert find(kept.called) is None


@pytest.mark.parametrize("why", ["too long", "no place"])
def test_what_cannot_be_kept_is_in_its_session_alone(tmp_path, monkeypatch, why):
    if why == "too long":
        monkeypatch.setattr("visualizer.work.uploads.MOST_BYTES", 3)
    else:
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("HEADLIGHT_STORE", str(tmp_path / "file" / "store"))
    assert keep("a.npy", b"long") == Upload("a.npy", b"long", "")
