"""Files that outlast a server: as a whole or not at all, and no more of them than there is room for."""

from pathlib import Path

import pytest

from visualizer import store


@pytest.fixture(params=["folder", "memory"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "new" / "store") if request.param == "folder" else f"memory://{tmp_path.name}"
    monkeypatch.setenv("HEADLIGHT_STORE", address)


@pytest.mark.usefixtures("somewhere")
def test_what_was_saved_is_found_and_the_last_of_a_name_counts():
    assert store.load("one") is None
    store.save("one", b"1")
    store.save("two", b"2")
    store.save("one", b"other")
    assert (store.load("one"), store.load("two"), store.load("three")) == (b"other", b"2", None)


@pytest.mark.usefixtures("somewhere")
def test_the_oldest_makes_room(monkeypatch):
    monkeypatch.setattr(store, "MOST_FILES", 3)
    for name in ("a", "b", "c", "c", "d"):
        store.save(name, name.encode())
    assert [store.load(name) for name in "abcd"] == [None, b"b", b"c", b"d"]


@pytest.mark.usefixtures("somewhere")
def test_files_of_one_ending_have_so_many_bytes_together(monkeypatch):
    monkeypatch.setattr(store, "MOST_BYTES", 10)
    for name in ("a.one", "b.one", "a.other", "c.one", "d.one"):
        store.save(name, name[0].encode() * 4)
    assert [store.load(f"{name}.one") for name in "abcd"] == [None, None, b"cccc", b"dddd"]
    assert store.load("a.other") == b"aaaa"


def test_a_folder_that_cannot_be_written_to_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HEADLIGHT_STORE", str(tmp_path / "file" / "store"))
    with pytest.raises(NotADirectoryError):
        store.save("one", b"1")


def test_it_is_a_folder_of_this_machine_by_itself(tmp_path, monkeypatch):
    monkeypatch.delenv("HEADLIGHT_STORE")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store.save("one", b"1")
    assert (tmp_path / "headlight" / "one").read_bytes() == b"1"
    assert list((tmp_path / "headlight").glob("*.part")) == []
