"""What stands around a picture waits for it once, and only where a server has sent it to a browser."""

from visualizer.page import first_picture
from visualizer.session import told_ahead


def test_only_the_first_run_of_a_session_on_a_server_waits(monkeypatch):
    kept, served = {}, []
    monkeypatch.setattr(first_picture, "is_warming", lambda: bool(served))
    monkeypatch.setattr(first_picture.drafts, "put_by_before", kept.get)
    monkeypatch.setattr(first_picture.drafts, "put_by", kept.__setitem__)
    with first_picture.alone():
        assert not told_ahead._undrawn
    served.append("by a server")
    with first_picture.alone():
        assert list(told_ahead._undrawn) == [kept["session_secret"]]
        told_ahead.is_drawn(kept["session_secret"])
    with first_picture.alone():
        assert not told_ahead._undrawn
