"""The first picture of a page comes before all that stands around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from visualizer.page.warming import is_warming
from visualizer.session import drafts
from visualizer.session.asking import line_of_page
from visualizer.session.told_ahead import until_drawn

MOST = 0.8
"""Seconds to wait at most: some views have no picture, and some visitors no browser."""


@contextmanager
def alone() -> Iterator[None]:
    """On the first run of a session: wait until the browser has drawn what it has been sent in the context.

    It would draw whatever else has come by then in one go, which takes as long as all before.
    """
    if not is_warming() or drafts.put_by_before("has_picture"):
        yield
        return
    drafts.put_by("has_picture", True)
    with until_drawn(line_of_page(), MOST):
        yield
