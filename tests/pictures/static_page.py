"""Pictures on a page without a server: bytes in; pixels, events and words out.

The page is the one that the app saves (``visualizer/components/page.py``). What its pictures fetch is answered in
the process of the test, by the function that answers it on a server.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import BrowserContext, Locator, Page, Route, WebSocketRoute
from streamlit.testing.v1 import AppTest

from tests.visualizer.told import tell
from visualizer.components.bundle import every_picture
from visualizer.components.page import page as page_text
from visualizer.components.picture import Picture
from visualizer.routes.address import read_picture_address
from visualizer.routes.answers import answer_picture
from visualizer.server.mount import component_of
from visualizer.views.computation import COMPUTATION
from visualizer.work.live import moving_at

APP = str(Path(__file__).parents[2] / "app.py")
ADDRESS = "http://localhost/"
USUAL = {"view": "step"}
LET_GO = "dial => dial.dispatchEvent(new Event('change'))"
"""A link to the usual settings: an address without parameters opens something else."""

_LEFT_OUT = ("headlight_page_keys",)
"""Components without a picture."""


def pictures_of(**query: object) -> list[Picture]:
    """The pictures of a link, in the order of the page, as the script hands them to Streamlit."""
    return pictures_in(run_of(**query))


def run_of(**query: object) -> AppTest:
    """The script, which has run for a link; the shapes and the code of a stage are open."""
    app = AppTest.from_file(APP, default_timeout=120)
    app.session_state[COMPUTATION] = True
    for name, value in (query or USUAL).items():
        app.query_params[name] = str(value)
    return app.run()


def pictures_in(app: AppTest) -> list[Picture]:
    """The pictures of the last run of the script."""
    assert not app.exception, app.exception
    drawn = (
        element.proto for element in app.get("bidi_component") if element.proto.component_name not in _LEFT_OUT
    )
    return [Picture(_MODULES[proto.component_name], proto.bytes, _key_of(proto.id)) for proto in drawn]


def lay_out(context: BrowserContext, pictures: Sequence[Picture], *, title: str = "Pictures") -> Page:
    """A page with these pictures, one below the other, drawn. What they fetch is answered."""
    page = context.new_page()
    text = page_text([(picture.key, picture) for picture in pictures], title=title)
    text = text.replace("default-src 'none';", "default-src 'none'; connect-src 'self' ws:;")
    text = text.replace("show(PICTURES", f"{_HEAR} window.drawn = show(PICTURES")
    page.route(f"{ADDRESS}**", _answer)
    page.route(ADDRESS, lambda route: route.fulfill(body=text, content_type="text/html"))
    page.route_web_socket("**/followed", _answer_each)
    page.goto(ADDRESS)
    wait_until_drawn(page)
    return page


def wait_until_drawn(page: Page) -> None:
    """Wait until every picture that is near the window is drawn, and none waits for numbers."""
    page.wait_for_function(
        """() => [...document.querySelectorAll(".picture")].every((section) => {
          const root = section.querySelector("div")?.shadowRoot?.querySelector(".headlight");
          return root?.childElementCount && root.ariaBusy !== "true";
        })"""
    )
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def update(page: Page, picture: Picture) -> None:
    """Hand the picture with this key other bytes, as the script does when it has run again."""
    page.evaluate(
        "([key, text]) => drawn.get(key).update(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)))",
        [picture.key, base64.b64encode(picture.data).decode()],
    )


def update_all(page: Page, app: AppTest) -> None:
    """Hand every picture of the page what the script has for it."""
    drawn = page.evaluate("() => [...drawn.keys()]")
    for picture in pictures_in(app):
        if picture.key in drawn:
            update(page, picture)


def let_answer(app: AppTest, page: Page, key: str) -> None:
    """Tell the script what the host heard last of the picture with this key, and hand the page its answer."""
    name, value = heard(page, key)[-1]
    tell(app, key, name, value)
    update_all(page, app)


def heard(page: Page, key: str | None = None) -> list[tuple[str, dict[str, object]]]:
    """The events that the host was told so far, by one picture or by all: name and value of each, in order."""
    events = page.evaluate("heard")
    return [(event["name"], event["value"]) for event in events if key in (None, event["key"])]


def wait_until_told(page: Page, key: str, **turned: object) -> None:
    """Wait until the host has heard, from the picture with this key, at what its dials rest."""
    told = "([key, turned]) => JSON.stringify(heard.findLast((one) => one.key === key)?.value.turned) === turned"
    page.wait_for_function(told, arg=[key, json.dumps(turned, separators=(",", ":"))])


def picture(page: Page, key: str) -> Locator:
    """The picture with this key."""
    return page.locator(f"[data-key='{key}']")


def panels(page: Page, key: str) -> Locator:
    """The matrices of the picture with this key."""
    return picture(page, key).locator(".matrix:visible")


def answer(address: str) -> bytes:
    """The bytes that the server answers to the address of a picture."""
    place = urlsplit(address)
    query = parse_qs(place.query, keep_blank_values=True)
    return answer_picture(read_picture_address(place.path.rpartition("/")[2], query)).body


_HEAR = """window.heard = [];
for (const name of ["headlight:send", "headlight:keep"]) addEventListener(name, ({ detail }) => heard.push(detail));
"""


def _answer(route: Route) -> None:
    url = route.request.url
    if "/jobs/" not in url:
        route.fulfill(body=answer(url), content_type="application/octet-stream")
    elif (moving := moving_at(url.rpartition("/")[2])) is not None and (drawn := moving.picture) is not None:
        route.fulfill(body=drawn.data, content_type="application/octet-stream")
    else:
        route.fulfill(status=204)


def _answer_each(line: WebSocketRoute) -> None:
    line.on_message(lambda address: line.send(answer(str(address))))


def _key_of(element_id: str) -> str:
    """``$$ID-<hash>-<key>`` -> ``<key>``."""
    return element_id.split("-", 2)[2]


_MODULES = {component_of(module): module for module in every_picture()}
"""The modules of pictures by the names under which the app mounts them."""
