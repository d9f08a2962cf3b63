"""What stands around a picture waits for it once, and only where a server has sent it to a browser."""

from visualizer.page import first_picture


def test_only_the_first_run_of_a_session_on_a_server_waits(monkeypatch):
    kept, waited, served = {}, [], []
    monkeypatch.setattr(first_picture, "is_warming", lambda: bool(served))
    monkeypatch.setattr(first_picture.drafts, "put_by_before", kept.get)
    monkeypatch.setattr(first_picture.drafts, "put_by", kept.__setitem__)
    monkeypatch.setattr(first_picture, "wait_until_drawn", lambda line, seconds: waited.append(line))
    first_picture.wait()
    assert waited == []
    served.append("by a server")
    first_picture.wait()
    first_picture.wait()
    assert waited == [kept["session_secret"]]
