"""The screen of a page, as a value, so that two pages can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import unified_diff
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Error, Page

from model.texts import texts_of
from tests.browser.headlight_page import settle
from visualizer.views.lab import in_words

IN_WORDS = texts_of(in_words.__name__)
MOST_PAGES = 5  # that come one after the other while a page is waited for

NOT_COMPARED = {
    ".st-key-class_answers": "whether the poll is open is a choice of one page",
    ".st-key-tally": "what a class has answered is counted anew with every page that opens",
    ".tools > :is([aria-label=Undo], [aria-label=Redo])": "what can be undone is the history of one page",
    ".painted-message": "what is said of the last stroke is the history of one page",
    ".tools > [aria-label=Look]": "whether a page paints or only looks is its own",
    ".st-key-also_under": "which masks a painting took the place of is the history of one page",
    ".st-key-how_it_was_written": "what was computed anew for a text is the history of one page",
    ".st-key-back_to_the_way": "where a person came from is the history of one page",
}
"""The parts that are left out of a screen, and why."""

EXPECTED = "[data-testid=stMainBlockContainer]"
"""Left out while results are hidden: expectations, and what was revealed, are a person's own."""


@dataclass(frozen=True)
class Screen:
    """The screen of a page.

    Attributes:
        address: the parameters of its address.
        words: all words and the states of all controls, as a screen reader meets them.
        controls: the values of all fields and sliders.
        tables: the rows of all tables.
        canvases: of each canvas where it stands, its size, and what tells its pixels from others.
    """

    address: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    controls: tuple[str, ...]
    tables: tuple[str, ...]
    canvases: tuple[tuple[str, str, str], ...]

    def differences(self, other: Screen) -> list[str]:
        """One line for each difference from another screen; pixels are compared where canvases have one size."""
        lines = [*_differences(map(str, self.address), map(str, other.address))]
        lines += _differences(self.words, other.words)
        lines += _differences(self.controls, other.controls)
        lines += _differences(*_columns_of_both(self.tables, other.tables))
        if len(self.canvases) != len(other.canvases):
            return [*lines, f"{len(self.canvases)} canvases, and {len(other.canvases)} on the other page"]
        for mine, theirs in zip(self.canvases, other.canvases, strict=True):
            if mine[:2] == theirs[:2] and mine != theirs:
                lines.append(f"other pixels in {mine[0]}, {mine[1]}")
        return lines


def _columns_of_both(mine: Sequence[str], theirs: Sequence[str]) -> tuple[list[str], list[str]]:
    """The rows of tables with the columns that are in sight on both pages: a table holds no others."""
    if len(mine) != len(theirs):
        return [*mine], [*theirs]
    pairs = [(a.split(" | "), b.split(" | ")) for a, b in zip(mine, theirs, strict=True)]
    common = [(" | ".join(a[: len(b)]), " | ".join(b[: len(a)])) for a, b in pairs]
    return [a for a, _ in common], [b for _, b in common]


def _differences(mine: Iterable[str], theirs: Iterable[str]) -> Iterator[str]:
    for line in unified_diff(list(mine), list(theirs), n=1, lineterm=""):
        if not line.startswith(("---", "+++")):
            yield line


@contextmanager
def unless_left() -> Iterator[None]:
    """Ignore an act on a page that is loaded anew at the same moment."""
    try:
        yield
    except Error as error:
        if "navigation" not in error.message and "context was destroyed" not in error.message:
            raise


def bring_to_rest(page: Page) -> None:
    """Wait until the page has taken all that was done, with nothing open and nothing pointed at.

    Another page may come meanwhile, as after Back on a slow line.
    """
    for _ in range(MOST_PAGES):
        with unless_left():
            _bring_to_rest(page)
            return


def _bring_to_rest(page: Page) -> None:
    page.mouse.move(1, 1)
    page.mouse.up()
    page.evaluate("monkey.tidy()")
    page.keyboard.press("Escape")
    settle(page)
    page.evaluate("monkey.tidy()")  # what came meanwhile
    _take_refused_numbers_away(page)
    _take_refused_expression_away(page)
    settle(page)
    page.evaluate("monkey.scrollThrough()")


def _take_refused_numbers_away(page: Page) -> None:
    """Put the least in the place of a number that its field refuses: it stays there, and is in no link."""
    refused = page.locator("input[type=number][aria-invalid=true]:visible")
    while refused.count():
        refused.first.fill(refused.first.get_attribute("min") or "0")
        page.keyboard.press("Enter")


def _take_refused_expression_away(page: Page) -> None:
    """Empty the field of the mask where what was written there is none: it stays there, and is in no link."""
    if page.get_by_text(IN_WORDS("stays")).count():
        field = page.get_by_label(IN_WORDS("allowed_where"), exact=True)
        field.fill("")
        field.press("Enter")


def read(page: Page, server: str) -> Screen:
    """The screen of a page that rests; ``server`` is what its addresses begin with."""
    address = tuple(sorted(parse_qsl(urlsplit(page.url).query, keep_blank_values=True)))
    left_out = [*NOT_COMPARED, *([EXPECTED] if ("hidden", "on") in address else [])]
    page.evaluate("selector => monkey.hide(selector)", ", ".join(left_out))
    words = page.get_by_test_id("stApp").aria_snapshot().replace(server, "")
    controls, tables, canvases = page.evaluate(
        "async () => [monkey.controls(), monkey.tables(), await monkey.canvases()]"
    )
    page.evaluate("monkey.showAgain()")
    return Screen(address, tuple(words.splitlines()), tuple(controls), tuple(tables), tuple(map(tuple, canvases)))
