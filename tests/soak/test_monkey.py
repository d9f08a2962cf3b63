"""A short life of the monkey; ``.ci/soak`` gives it a long one."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.conftest import APP, served
from tests.soak.monkey import Conditions, Options, run

ACTS = 20


def test_a_page_shows_what_its_address_shows_after_random_acts(browser: Browser, tmp_path: Path) -> None:
    log = tmp_path / "server.txt"
    with served(APP, log) as address:
        failed = run(Options(ACTS, seed=1), Conditions(browser, address, address, log))
    assert not failed, "what differed is printed above, with the acts that led to it"
