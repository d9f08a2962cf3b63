"""The acts of the browser tests on a page of Headlight, and what they read from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Locator, Page, expect

PROBE = """
const probe = (window.probe = {
  ...{ painted: {}, finished: 0, sent: 0, acted: 0, asked: 0, answered: 0 },
  ...{ until, settled, afterAllElse },
});

for (const deed of ["pointerdown", "keydown", "input"]) {
  addEventListener(deed, () => (probe.acted = performance.now()), { capture: true });
}

addEventListener("headlight:painted", ({ detail }) => {
  probe.painted[detail.key] = (probe.painted[detail.key] ?? 0) + 1;
});

const RealSocket = window.WebSocket;
window.WebSocket = class extends RealSocket {
  constructor(...address) {
    super(...address);
    this.isOfStreamlit = this.url.includes("/_stcore/");
    this.addEventListener("message", ({ data }) => {
      if (!this.isOfStreamlit) return;
      if (fieldsOf(new Uint8Array(data)).get(6) !== SCRIPT_HAS_FINISHED) return;
      probe.finished += 1;
      probe.answered = performance.now();
    });
  }

  send(data) {
    if (!this.isOfStreamlit) return super.send(data);
    probe.sent += 1;
    if (fieldsOf(new Uint8Array(data)).has(RUN_THE_SCRIPT)) probe.asked = performance.now();
    return super.send(data);
  }
};

const SCRIPT_HAS_FINISHED = 0; // a value of field 6 of Streamlit's message
const RUN_THE_SCRIPT = 11; // the field of the message to Streamlit

/** The fields of a protocol buffer by number: the values of the whole numbers, the places of all others. */
function fieldsOf(bytes) {
  let place = 0;
  const wholeNumber = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[place++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  const fields = new Map();
  while (place < bytes.length) {
    const tag = wholeNumber();
    const value = wholeNumber();
    fields.set(tag >> 3, (tag & 7) === 0 ? value : null);
    if ((tag & 7) === 2) place += value;
  }
  return fields;
}

/** Fulfilled when the script has run for all that was asked, what it sent is painted, and a condition holds. */
async function settled(condition = () => true) {
  await until(() => isSettled() && condition(), condition);
  await afterAllElse();
}

const isSettled = () => whatIsUnsettled() === "";

/** The first thing that is still to come; nothing where all is there. */
function whatIsUnsettled() {
  if (probe.asked > probe.answered) return "the script has not answered";
  const state = document.querySelector("[data-testid=stApp]")?.dataset.testScriptState;
  if (state !== "notRunning") return `the script is ${state}`;
  if (document.querySelector("[data-testid=stSkeleton], [data-testid=stAppSkeleton]")) return "a skeleton is shown";
  const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")];
  const roots = hosts.map((host) => host.shadowRoot?.querySelector(".headlight"));
  const place = roots.findIndex((root) => !root?.childElementCount || root.ariaBusy === "true");
  return place < 0 ? "" : `not painted: ${hosts[place].closest("[class*=st-key-]")?.className}`;
}

/** Fulfilled when a condition holds. It is looked at now and then: each frame that is asked for would be drawn. */
function until(condition, named = condition) {
  const end = performance.now() + 120_000;
  return new Promise((done, fail) => {
    const look = () => {
      if (condition()) return done();
      if (performance.now() < end) return setTimeout(look, 10);
      const counted = JSON.stringify({ ...probe, now: performance.now() });
      fail(new Error(`not within two minutes: ${named} (${whatIsUnsettled() || "settled"}; ${counted})`));
    };
    look();
  });
}

function afterAllElse() {
  return new Promise((done) => {
    const whenNothingWaits = () => scheduler.postTask(done, { priority: "background" });
    requestAnimationFrame(() => requestAnimationFrame(whenNothingWaits));
  });
}
"""
"""The script that every page has as ``probe``: what is counted (pictures painted, by their key; finished runs of
the script; messages to the server), and what waits: the page does so itself, since a question from outside costs a
frame.
"""

# Waiting.


def settle(page: Page, condition: str = "() => true") -> None:
    """Wait until the script has run for all that was asked, what it sent is painted, and a condition holds."""
    page.evaluate(f"probe.settled({condition})")


@contextmanager
def rerun(page: Page, *painted: str) -> Iterator[None]:
    """Do something that runs the script, and wait for its result and for the pictures with the keys ``painted``."""
    counts = "({ finished: probe.finished, painted: keys.map((key) => probe.painted[key] ?? 0) })"
    before = page.evaluate(f"keys => {counts}", painted)
    yield
    page.evaluate(
        """([keys, { finished, painted }]) => probe.settled(() =>
          probe.finished > finished && keys.every((key, i) => (probe.painted[key] ?? 0) > painted[i]))""",
        [painted, before],
    )


def messages_sent(page: Page) -> int:
    """Return the number of messages that the page has sent to the server."""
    page.evaluate("probe.afterAllElse()")
    sent: int = page.evaluate("probe.sent")
    return sent


# What a person does.


def type_text(page: Page, text: str) -> None:
    """Replace the text and commit it."""
    area = page.locator("[class*='st-key-text'] textarea")
    area.fill(text)
    with rerun(page):
        area.press("Control+Enter")


def choose_view(page: Page, title: str) -> None:
    with rerun(page):
        page.get_by_role("radio", name=title, exact=True).click()
    expect(page.get_by_role("radio", name=title, exact=True)).to_have_attribute("aria-checked", "true")


def pill(page: Page, name: str, mask: str) -> Locator:
    """The pill of a mask among those of the control ``name``, which may be folded in a picture."""
    controls = page.locator(f".st-key-{name}, [class*='st-key-{name}-'], [data-dial={name}]")
    found = controls.get_by_role("button", name=mask, exact=True)
    expect(controls).to_be_visible()
    if not found.is_visible():
        controls.locator("summary").click()
    return found


def panels(page: Page, key: str) -> Locator:
    """The matrices of the component with this key."""
    return page.locator(f".st-key-{key} .matrix:visible")


def compared(page: Page, head: int) -> Locator:
    """The matrices A, B and B - A of one head, wherever it stands."""
    return page.locator(f".st-key-compare_grids .compare-head[data-head='{head}'] .matrix")


# What the page shows.


def link_of(page: Page) -> dict[str, str]:
    """The parameters of the address, which is the last that a run sends."""
    settle(page)
    return dict(parse_qsl(urlsplit(page.url).query))


def tokens(page: Page, sequence: str = "source") -> list[str]:
    """The tokens of the strip, exactly as it holds them."""
    return page.locator(f".st-key-token_strip .chip[data-sequence={sequence}] .token").all_text_contents()
