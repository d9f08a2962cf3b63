"""The acts of the monkey: one act after the other, each of which can be written down and done again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Literal

from playwright.sync_api import Page

Kind = Literal[
    "click", "double_click", "hover", "drag", "type", "key", "wheel", "back", "forward", "reload", "open"
]

WEIGHTS: dict[Kind, int] = {
    "click": 110,
    "double_click": 8,
    "hover": 10,
    "drag": 12,
    "type": 16,
    "key": 24,
    "wheel": 4,
    "back": 9,
    "forward": 5,
    "reload": 1,
    "open": 1,
}

LEFT_ALONE = {
    "[data-testid=stSidebarCollapseButton], [data-testid=stExpandSidebarButton], [data-testid=stToolbar]": (
        "Streamlit's own, and in no link"
    ),
    "[data-testid=stDataFrame], [data-testid=stElementToolbar]": "the order of a table's rows is in no link",
    ".modebar-container, .js-plotly-plot .legend": "what is zoomed or left out in a chart is in no link",
    "[data-testid=stFileUploader]": "opens a window of the operating system",
    ".st-key-begin_pretrained_load, .st-key-pretrained_look": "would fetch a checkpoint from the network",
}
"""The places that the monkey does not touch, and why."""

KEYS = (
    *(
        "ArrowLeft",
        "ArrowRight",
        "ArrowUp",
        "ArrowDown",
        "PageUp",
        "PageDown",
        "Home",
        "End",
        "Tab",
        "Enter",
        "Space",
    ),
    *("Escape", "v", "V", "t", "T", "l", "L", "h", "H", "x", "r", "p", "?", "f", "Control+z", "Control+y"),
)
TEXTS = (
    *("the cat", "a b c d e f", "one two three one", "ä 猫 🙂 é", "<b>x</b> $y$ :red[z]", "a b\nc d e", ""),
    *("0", "1", "3", "7", "-1", "1e9", "k <= q", "abs(q - k) < 2", "q % 2 == k % 2", "score * 0.5", "so so " * 15),
)
COMMITS = ("Enter", "Control+Enter", "Tab", "")
LONGEST_PAUSE = 500  # milliseconds

_MODELS = (
    "architecture=encoder&n_heads=2",
    "architecture=decoder&weights=random&n_layers=1",
    "architecture=encoder-decoder&target=a+b+c",
    "architecture=attention&mask=causal",
)
LINKS = (
    *(
        f"view={view}&{model}&text=a+b+c"
        for view in ("way", "step", "heads", "compare", "lab")
        for model in _MODELS
    ),
    *(f"view={view}&text=the+dog+saw+the+cat+and+the+cat" for view in ("way", "step", "heads", "compare", "lab")),
    *(f"view=generate&{model}" for model in _MODELS[1:3]),
    *("view=train", "source=recording", "", "view=heads&weights=trained"),
    *(f"view={view}&source=recording&watched_source=example" for view in ("way", "step", "heads", "compare")),
)
"""Links that somebody else may have sent."""


@dataclass(frozen=True)
class Act:
    """One thing that is done on one page.

    Attributes:
        page: the number of the page.
        kind: what is done.
        target: what it is done to, as the page names it; None for the page itself.
        at: where in the target, each way from 0 to 1, and where a drag ends.
        text: what is typed, the key or the link.
        commit: the key after what is typed.
        pause: milliseconds until the next act.
    """

    page: int
    kind: Kind
    target: dict[str, Any] | None = None
    at: tuple[float, float, float, float] = (0.5, 0.5, 0.5, 0.5)
    text: str = ""
    commit: str = ""
    pause: int = 0

    def to_json(self) -> dict[str, Any]:
        """All that is not as usual."""
        usual = asdict(Act(self.page, self.kind))
        return {
            name: value for name, value in asdict(self).items() if name in ("page", "kind") or value != usual[name]
        }


def choose(random: Random, number: int, page: Page) -> Act:
    """Choose what is done next on a page, among what it offers at this moment."""
    kind = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    spot = random.random(), random.random(), random.random(), random.random()
    at = random.choice(((0.5, 0.5, *spot[2:]), spot))
    pause = random.choice((0, random.randint(0, LONGEST_PAUSE)))
    text, key, commit, link = (random.choice(offered) for offered in (TEXTS, KEYS, COMMITS, LINKS))
    group, place = random.random(), random.random()
    if kind in ("back", "forward", "reload", "wheel"):
        return Act(number, kind, at=at, pause=pause)
    if kind in ("open", "key"):
        return Act(number, kind, text=link if kind == "open" else key, pause=pause)
    targets = page.evaluate("leftAlone => monkey.targets(leftAlone)", ", ".join(LEFT_ALONE))
    if kind == "type":
        targets = [target for target in targets if target["name"].startswith(("input", "textarea", "combobox"))]
    if kind == "drag":  # it would zoom a chart, which is in no link
        targets = [target for target in targets if not target["group"].startswith("chart_")]
    groups = sorted({target["group"] for target in targets})
    if not groups:
        return Act(number, "key", text=key, pause=pause)
    chosen = groups[int(group * len(groups))]
    members = [target for target in targets if target["group"] == chosen]
    target = members[int(place * len(members))]
    typed = {"text": text, "commit": commit} if kind == "type" else {}
    return Act(number, kind, target, at, pause=pause, **typed)


def perform(act: Act, page: Page, app_url: str) -> None:
    """Do it as a person would: at once, on what stands there by then."""
    match act.kind:
        case "key":
            page.keyboard.press(act.text)
        case "wheel":
            page.mouse.wheel(0, round((act.at[1] - 0.5) * 3000))
        case "back" | "forward":
            able, go = ("canGoBack", "back") if act.kind == "back" else ("canGoForward", "forward")
            page.evaluate(f"navigation.{able} && history.{go}()")
        case "reload":
            page.reload(wait_until="commit")
        case "open":
            page.goto(f"{app_url}/?{act.text}", wait_until="commit")
        case _:
            box = page.evaluate(
                "([target, leftAlone]) => monkey.boxOf(target, leftAlone)", [act.target, ", ".join(LEFT_ALONE)]
            )
            if box is not None:
                _perform_at(act, page, box)
    page.wait_for_timeout(act.pause)


def _perform_at(act: Act, page: Page, box: list[float]) -> None:
    left, top, width, height = box
    x, y = left + act.at[0] * width, top + act.at[1] * height
    match act.kind:
        case "hover":
            page.mouse.move(x, y)
        case "double_click":
            page.mouse.dblclick(x, y)
        case "drag":
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(left + act.at[2] * width, top + act.at[3] * height, steps=4)
            page.mouse.up()
        case "type":
            page.mouse.click(x, y)
            page.keyboard.press("Control+a")
            page.keyboard.insert_text(act.text)
            if act.commit:
                page.keyboard.press(act.commit)
        case _:
            page.mouse.click(x, y)
