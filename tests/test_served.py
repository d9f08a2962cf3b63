"""The server of the app, for whoever opens a page, seen in a process that ``served.py`` starts."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
OPTIONS = {
    f"{section}.{name}": value
    for section, options in tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text()).items()
    for name, value in options.items()
    if not isinstance(value, dict)  # of a theme in the light and in the dark
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    written = tmp_path_factory.mktemp("served") / "seen.json"
    command = [sys.executable, "-m", "tests.served", json.dumps(list(OPTIONS)), str(written)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    found: dict[str, Any] = json.loads(written.read_text())
    return found


def test_a_page_is_drawn_by_the_server(seen):
    assert seen["health"] == "ok"
    assert {"headlight_attention_heads", "headlight_token_strip"} <= set(seen["components"])


def test_what_takes_long_to_load_is_loaded_beside_the_server_and_not_before_it(seen):
    assert not seen["torch is imported with the app"]
    assert seen["is warm"]


def test_garbage_is_collected_for_all_pages_at_once_without_what_was_imported(seen):
    assert seen["frozen"] > 100_000
    assert seen["garbage is freed"]
    assert seen["threads that collect"] == ["garbage"], "and no run of the script does it too"


def test_streamlit_knows_every_option_and_the_browser_hears_of_its_own(seen):
    assert seen["options"] == OPTIONS
    assert seen["messages kept"] == OPTIONS["global.maxCachedMessageAge"]
