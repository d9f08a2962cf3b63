"""Pages of their own for the tests of pictures; none may log an error or ask for what is not answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page

from tests.pages import HEIGHT, fresh_context, watched
from tests.pictures.static_page import ADDRESS, lay_out, pictures_of
from visualizer.components.picture import Picture

Show = Callable[..., Page]
ShowLink = Callable[..., Page]


@pytest.fixture
def show(browser: Browser) -> Iterator[Show]:
    """Draws pictures on a page of their own, in place of the page before."""
    with ExitStack() as opened:

        def show_pictures(
            pictures: Sequence[Picture], *, dark: bool = False, width: int = 1280, height: int = HEIGHT
        ) -> Page:
            opened.close()  # a page that is slowed keeps the processor busy, also where it does nothing
            context = opened.enter_context(fresh_context(browser, dark=dark, width=width, height=height))
            context.on("page", lambda page: opened.enter_context(watched(page, ADDRESS)))
            return lay_out(context, pictures)

        yield show_pictures


@pytest.fixture
def show_link(show: Show) -> ShowLink:
    """Draws the pictures of a link."""

    def show_pictures_of(*, dark: bool = False, width: int = 1280, **query: object) -> Page:
        return show(pictures_of(**query), dark=dark, width=width)

    return show_pictures_of
