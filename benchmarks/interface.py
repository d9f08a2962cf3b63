"""How fast it is: ratios measured side by side, and times from a changed control to the painted picture.

    python benchmarks/interface.py            everything that the machine has what it takes for
    python benchmarks/interface.py model      without a browser

TransformerLens and BertViz are measured beside it where they are installed (``pip install transformer-lens bertviz
ipython``); nothing else needs them.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from urllib.parse import urlencode

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from model import TransformerConfig, build_masks, record  # noqa: E402 - the project is not installed
from model.masks import MaskInputs  # noqa: E402
from model.sources.weights import build_model  # noqa: E402

N_TOKENS, N_HEADS, N_LAYERS, D_MODEL = 128, 8, 4, 128
CONFIG = TransformerConfig(
    "encoder", vocab_size=256, d_model=D_MODEL, n_heads=N_HEADS, n_layers=N_LAYERS, d_ff=4 * D_MODEL
)
PAIRS = 150
LENGTHS = (16, 64, 128, 256, 512)
CHANGES = 12
PICTURES = {"heads": "attention_heads", "step": "tensor_grid", "compare": "compare_grids"}
"""The component whose picture is waited for in each view."""

WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "saw", "that", "every", "other", "one", "had", "gone")


def main() -> None:
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)  # as the app does
    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, {os.cpu_count()} cores\n")
    print(f"One forward pass, T={N_TOKENS}, d_model={D_MODEL}, {N_HEADS} heads, {N_LAYERS} layers, causal mask")
    measure_model()
    measure_transformer_lens()
    measure_bertviz()
    if "model" not in sys.argv[1:]:
        measure_browser()


# The model.


def measure_model() -> None:
    model = build_model(CONFIG, "random", seed=0)
    plain = untapped_copy(model)
    ids = torch.arange(N_TOKENS)[None]
    no_padding = torch.zeros(1, N_TOKENS, dtype=torch.bool)
    mask = build_masks(["causal"], MaskInputs(N_TOKENS, N_TOKENS, no_padding)).allowed
    if not torch.equal(model(ids, source_mask=mask), plain(ids, source_mask=mask)):
        raise RuntimeError("the copy without taps computes something else")

    def recorded() -> None:
        with record(model):
            model(ids, source_mask=mask)

    def tapped() -> None:
        model(ids, source_mask=mask)

    def untapped() -> None:
        plain(ids, source_mask=mask)

    report_ratio("with taps, nobody recording / without taps", tapped, untapped, target=1.05)
    report_ratio("recording every stage / not recording", recorded, tapped, target=1.15)


def untapped_copy(model: torch.nn.Module) -> torch.nn.Module:
    """The same weights in the same sources, in which ``tap(name, value, ...)`` stands as ``value`` alone."""
    package = untapped_package()
    config = package.TransformerConfig(**vars(CONFIG))
    copy: torch.nn.Module = package.Transformer(config).eval()
    copy.load_state_dict(model.state_dict())
    return copy


def untapped_package() -> ModuleType:
    folder = Path(tempfile.mkdtemp(prefix="untapped-"))
    (folder / "untapped_model").mkdir()
    for file in (ROOT / "model").glob("*.py"):
        source = file.read_text(encoding="utf-8").replace("from model", "from untapped_model")
        tree = ast.fix_missing_locations(WithoutTaps().visit(ast.parse(source)))
        (folder / "untapped_model" / file.name).write_text(ast.unparse(tree), encoding="utf-8")
    sys.path.insert(0, str(folder))
    return importlib.import_module("untapped_model")


class WithoutTaps(ast.NodeTransformer):
    """Replaces each call of a tap by the value that it names."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        return node.args[1] if name == "tap" and len(node.args) >= 3 else node


def report_ratio(
    name: str, first: Callable[[], None], second: Callable[[], None], target: float | None = None
) -> None:
    """Print first / second, timed in turn so that a change of the machine's speed meets both."""
    for _ in range(10):
        first()
        second()
    times = [(seconds(first), seconds(second)) for _ in range(PAIRS)]
    ratio = statistics.median(a for a, _ in times) / statistics.median(b for _, b in times)
    low, _, high = statistics.quantiles([a / b for a, b in times], n=4)
    milliseconds = 1000 * statistics.median(b for _, b in times)
    aim = f", to reach {target:.2f}" if target else ""
    print(f"  {name:<52} {ratio:5.2f}   (quartiles of pairs {low:.2f} to {high:.2f}; {milliseconds:.2f} ms{aim})")


def seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# The tools beside it.


def measure_transformer_lens() -> None:
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:
        print("  TransformerLens is not installed")
        return
    model = HookedTransformer(
        HookedTransformerConfig(
            n_layers=N_LAYERS,
            d_model=D_MODEL,
            n_ctx=N_TOKENS,
            d_head=D_MODEL // N_HEADS,
            n_heads=N_HEADS,
            d_mlp=4 * D_MODEL,
            d_vocab=256,
            act_fn="relu",
            device="cpu",
        )
    )
    ids = torch.arange(N_TOKENS)[None]
    name = "TransformerLens run_with_cache / its forward"
    report_ratio(name, lambda: model.run_with_cache(ids), lambda: model(ids))


def measure_bertviz() -> None:
    try:
        from bertviz import head_view
    except ImportError:
        print("  BertViz is not installed")
        return
    attention = [torch.rand(1, N_HEADS, N_TOKENS, N_TOKENS).softmax(-1) for _ in range(N_LAYERS)]
    tokens = [f"token{i}" for i in range(N_TOKENS)]
    start = time.perf_counter()
    page = head_view(attention, tokens, html_action="return").data
    took = time.perf_counter() - start
    print(f"  BertViz head_view: {len(page) / 1e6:.1f} MB of HTML made in {took:.1f} s")


# The browser.

PROBE = """
window.probe = {acted: 0, painted: {}, sent: 0};
const RealSocket = window.WebSocket;
window.WebSocket = class extends RealSocket {
  send(data) { window.probe.sent += 1; return super.send(data); }
};
addEventListener("pointerdown", () => { window.probe.acted = performance.now(); }, true);
addEventListener("headlight:painted", (event) => {
  const name = event.detail.component;
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => { window.probe.painted[name] = performance.now(); };
    channel.port2.postMessage(0);
  });
});
"""


def measure_browser() -> None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("\nPlaywright is not installed: nothing is measured in the browser")
        return
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if executable is None:
        print("\nno browser: nothing is measured in it")
        return
    from devtools import server  # needs websockets, which the model's part does without

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with sync_playwright() as playwright, server() as address:
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        print("\nIn the browser, whole app")
        first = [first_picture(browser, address) for _ in range(6)]
        print(f"  first picture, first visitor of a new server   {first[0]:7.0f} ms   (to reach 2500)")
        print(f"  first picture, later visitors                  {spread(first[1:])}")
        for (view, component), n_tokens in itertools.product(PICTURES.items(), LENGTHS):
            times, megabytes = changes(browser, address, view, component, n_tokens)
            target = {128: ", to reach 100", 512: ", to reach 250"}.get(n_tokens, "")
            print(f"  {view:<8} T={n_tokens:<4} new seed to painted  {spread(times)}{target}; {megabytes:.1f} MB")
        sent = messages_while_looking(browser, address)
        print(f"  messages sent while hovering 40 cells and changing the layer 6 times: {sent}")
        browser.close()


def first_picture(browser: object, address: str) -> float:
    """Milliseconds from opening the page to the painted picture."""
    page = new_page(browser)
    page.goto(address)
    page.wait_for_function("window.probe.painted.tensor_grid", timeout=60_000)
    milliseconds: float = page.evaluate("window.probe.painted.tensor_grid")
    page.context.close()
    return milliseconds


def changes(browser: object, address: str, view: str, component: str, n_tokens: int) -> tuple[list[float], float]:
    """Milliseconds from a pressed button to the painted picture, and the megabytes that the server sent for it."""
    page = new_page(browser)
    received: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    text = " ".join(itertools.islice(itertools.cycle(WORDS), n_tokens))
    settings = {"text": text, "n_heads": 8, "d_model": D_MODEL, "weights": "random", "view": view}
    page.goto(f"{address}/?{urlencode(settings)}")
    page.wait_for_function(f"window.probe.painted.{component}", timeout=60_000)
    page.get_by_text("More", exact=True).click()
    plus = page.locator(".st-key-seed [data-testid=stNumberInputStepUp]")
    plus.wait_for()
    page.wait_for_timeout(800)
    times = []
    for _ in range(CHANGES):
        received.clear()
        page.evaluate("window.probe.painted = {}")
        plus.click()
        page.wait_for_function(f"window.probe.painted.{component}", timeout=60_000)
        page.wait_for_timeout(400)
        times.append(page.evaluate(f"window.probe.painted.{component} - window.probe.acted"))
    page.context.close()
    return times[2:], sum(received) / 1e6


def messages_while_looking(browser: object, address: str) -> int:
    page = new_page(browser)
    page.goto(f"{address}/?{urlencode({'view': 'heads', 'n_layers': 4})}")
    page.wait_for_function("window.probe.painted.attention_heads", timeout=60_000)
    page.wait_for_timeout(1000)
    page.evaluate("window.probe.sent = 0")
    slider = page.locator(".st-key-attention_heads_encoder_self_attention input.layer-slider")
    slider.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    grid = page.locator(".st-key-attention_heads_encoder_self_attention canvas:visible").last
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    for i in range(40):
        page.mouse.move(box["x"] + (i * 13) % box["width"], box["y"] + (i * 29) % box["height"])
    page.wait_for_timeout(500)
    sent: int = page.evaluate("window.probe.sent")
    page.context.close()
    return sent


def new_page(browser: object):
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
    context.add_init_script(PROBE)
    return context.new_page()


def spread(times: Sequence[float]) -> str:
    return f"{statistics.median(times):7.0f} ms (min {min(times):.0f}, max {max(times):.0f})"


if __name__ == "__main__":
    main()
