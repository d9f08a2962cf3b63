"""Property tests draw the same examples on every run, and none fails for being slow on a busy machine."""

from __future__ import annotations

import functools
import gc
import logging
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, started for the first test that needs it."""
    from tests.pages import chromium

    with chromium() as launched:
        yield launched


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, else as drawn: none is left for one worker while the others are done."""
    items.sort(key=lambda item: not {"browser", "soak"} & set(item.path.parts))


def pytest_configure(config: pytest.Config) -> None:
    """Prepare this process for tests, unless it only hands them out."""
    hands_out = config.getoption("dist") != "no" and not hasattr(config, "workerinput")
    if not hands_out or config.getoption("hypothesis_profile"):
        register_profiles()
    if not hands_out:
        prepare()


def pytest_sessionstart(session: pytest.Session) -> None:
    """The seed of the order, which ``-q`` leaves out."""
    if terminal := session.config.pluginmanager.get_plugin("terminalreporter"):
        terminal.write_line(f"--randomly-seed={session.config.getoption('randomly_seed')}")


def register_profiles() -> None:
    """Set the number of examples that are drawn: few while one works, many where ``.ci/run`` asks for them."""
    from hypothesis import settings

    settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
    settings.register_profile("thorough", settings.get_profile("repeatable"), max_examples=200)
    settings.load_profile("repeatable")


def prepare() -> None:
    """Import what nearly all tests import, and set what holds for all."""
    gc.disable()  # all that is imported and collected stays to the end
    import torch
    from streamlit.components.v2 import manifest_scanner
    from streamlit.testing.v1.element_tree import ElementList

    from tests.controls import control_named

    os.environ["HEADLIGHT_STORE"] = "memory://store"  # nothing is left behind, and nothing is found from before
    torch.set_num_threads(1)  # the tensors are small: threads that wait for each other cost more than they save
    ElementList.__call__ = control_named
    # every AppTest reads what is said of every installed package, in search of components: once is enough
    manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def pytest_collection_finish() -> None:
    """Later garbage collections pass over what has been imported and collected, and are seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 1_000)
    gc.enable()


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """Yield the list of what the page logs about what fails."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("visualizer.state.state")
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def nothing_failed(logged: list[logging.LogRecord]) -> Iterator[None]:
    """Let a test fail where the page logged a failure and stayed; a module that expects one has its own."""
    yield
    assert not logged, logged[0].exc_info
