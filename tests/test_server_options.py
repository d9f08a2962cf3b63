"""What ``.streamlit/config.toml`` tells the server, wherever the app is started from its folder."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def options() -> dict[str, dict[str, object]]:
    return tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())


def test_files_are_not_watched_and_contributing_says_how_they_are():
    assert options()["server"]["fileWatcherType"] == "none"
    assert "streamlit run app.py --server.fileWatcherType auto" in (ROOT / "CONTRIBUTING.md").read_text()


def test_what_is_done_while_the_script_runs_is_not_lost():
    assert options()["runner"]["fastReruns"] is False


def test_garbage_is_collected_for_all_sessions_at_once_and_not_after_every_run():
    assert options()["runner"]["postScriptGC"] is False


def test_the_browser_keeps_the_messages_that_the_server_may_name():
    assert options()["global"]["maxCachedMessageAge"] == 1000
