"""What the browser tests do on a page of Headlight, and what they read from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Locator, Page, expect

PROBE = """
(() => {
  const probe = (window.probe = { painted: {}, changes: 0, sent: 0 });
  addEventListener("headlight:painted", ({ detail }) => {
    probe.painted[detail.key] = (probe.painted[detail.key] ?? 0) + 1;
    probe.changes += 1;
  });
  const states = new MutationObserver((mutations) => (probe.changes += mutations.length));
  states.observe(document, { subtree: true, attributeFilter: ["data-test-script-state"] });
  const RealSocket = window.WebSocket;
  window.WebSocket = class extends RealSocket {
    send(data) {
      probe.sent += 1;
      return super.send(data);
    }
  };
})();
"""
"""Counts, in the page: pictures painted by key, changes that a run of the script brings, messages to the server."""

_IS_STILL = """() => {
  const roots = [...document.querySelectorAll("[data-testid=stBidiComponentRegular], [data-testid=stBidiComponentIsolated]")]
    .map((host) => (host.shadowRoot ?? host.firstElementChild?.shadowRoot ?? host).querySelector(".headlight"));
  return roots.every((root) => root && root.childElementCount > 0);
}"""


def settle(page: Page) -> None:
    """Wait until the script has finished and everything that it sent is painted."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(timeout=30_000)
    expect(page.locator("[data-testid=stSkeleton], [data-testid=stAppSkeleton]")).to_have_count(0, timeout=30_000)
    page.evaluate("() => new Promise((done) => requestIdleCallback(() => requestIdleCallback(done)))")
