"""Keys for the whole page and their overview, how long a text may be, and what the browser keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from model.texts import texts_of
from visualizer.components.packing import pack
from visualizer.components.picture import Picture

say = texts_of(__name__)

Act = Literal[
    "view_next",
    "view_back",
    "layer_next",
    "layer_back",
    "head_next",
    "head_back",
    "token_next",
    "token_back",
    "present",
    "hide",
    "reveal",
]

KEYS: Mapping[str, Act] = {
    "v": "view_next",
    "V": "view_back",
    "l": "layer_next",
    "L": "layer_back",
    "h": "head_next",
    "H": "head_back",
    "t": "token_next",
    "T": "token_back",
    "p": "present",
    "x": "hide",
    "r": "reveal",
}
"""The act of each key; besides, in the browser alone, ``?`` opens the overview, ``f`` fills the screen and ``c``
copies the link."""

OVERVIEW: tuple[tuple[str, str], ...] = (
    ("?", say("overview")),
    ("V", say("view")),
    ("T", say("token")),
    ("L", say("layer")),
    ("H", say("head")),
    ("← →", say("arrows")),
    ("Page ↑ ↓", say("page")),
    ("Enter", say("enter")),
    ("X", say("hide")),
    ("R", say("reveal")),
    ("S", say("save")),
    ("C", say("copy")),
    ("Ctrl Z", say("undo")),
    ("P", say("present")),
    ("F", say("full_screen")),
    ("Esc", say("close")),
)
"""The keys and what they do, as the overview lists them."""

MOST_ACTS = 50
"""An event holds no more acts than this."""


def page_keys(
    *,
    longest: Mapping[str, int],
    seq: int,
    key: str,
    run: str = "",
    cookie: str = "",
    screen: str = "",
    addresses: Sequence[Mapping[str, str]] = (),
) -> Picture:
    """The overview of the keys; keys pressed, and texts put in, anywhere on the page.

    longest: how many characters a field takes, by its key; those of all others under "".
    seq: the number of the last act that was done. ``act`` is {"acts": [[number, act], ...], "seq"} with every act
    that the browser does not know to be done.
    cookie: what the browser is to keep; "" for nothing.
    screen: the text of a file, where the address does not carry the screen; "" where it does.
    ``went`` is {"search", "seq"}: the address's parameters after a person went Back or Forward.
    addresses: the parameters of those that say what is drawn; another one, at first, is told by ``went`` too, with
    these as "drawn".
    run: another text for each run of the script, which lets the browser know that the whole page is drawn.
    """
    counted = {"key": key, "seq": seq, "run": run, "cookie": cookie, "screen": screen, "addresses": list(addresses)}
    header = {**counted, "keys": KEYS, "overview": OVERVIEW, "longest": dict(longest)}
    return Picture("page_keys/element.js", pack(header, {}), key, ("act", "went"))


def acts_in(event: object, done: int) -> tuple[Act, ...]:
    """The acts of an event that are not done yet, in their order; what is none is left out."""
    acts = event.get("acts") if isinstance(event, Mapping) else None
    pairs = acts[:MOST_ACTS] if isinstance(acts, list) else []
    known = {act: act for act in KEYS.values()}
    return tuple(
        known[act]
        for number, act in (pair for pair in pairs if isinstance(pair, list) and len(pair) == 2)
        if isinstance(number, int) and isinstance(act, str) and number > done and act in known
    )
