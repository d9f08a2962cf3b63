"""The JavaScript of the pictures: its own tests, its types, its lint, and that it reads what Python packs.

Skipped, with the reason, where Node or the tools of ``package.json`` beside this file are not; ``npm install`` in
this folder installs them. Nobody who only runs Headlight needs them. Where ``CI`` is set they are needed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from visualizer.components.packing import Scaled, pack

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent
TOOLS = FOLDER / "node_modules" / ".bin"


def needs(path: str | None, install: str) -> pytest.MarkDecorator:
    """Skip a test without the tool at a path; in CI the test runs, and fails for want of it."""
    missing = path is None or not Path(path).exists()
    return pytest.mark.skipif(missing and "CI" not in os.environ, reason=f"{install} to test the JavaScript")


needs_node = needs(shutil.which("node"), "install Node")
needs_tools = needs(str(TOOLS / "tsc"), "run npm install in tests/javascript")


def run(*command: str | Path, given: bytes | None = None) -> str:
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()[-6000:]
    return done.stdout.decode()


@needs_node
def test_the_pure_parts():
    said = run("node", "--test", "--test-reporter=tap", *sorted(FOLDER.glob("*.test.js")))
    assert "\n# fail 0\n" in said
    assert int(said.partition("\n# pass ")[2].split()[0]) > 20


@needs_node
@needs_tools
def test_types():
    run(TOOLS / "tsc", "-p", FOLDER)


@needs_node
@needs_tools
def test_lint():
    run(TOOLS / "oxlint", "-c", FOLDER / "oxlint.json", "--deny-warnings", "visualizer", "tests/javascript")


_READ = """
import { readFileSync } from "node:fs";
import { floats, unpack } from "./visualizer/components/shared/payload.js";
const { text, arrays } = unpack(new Uint8Array(readFileSync(0)));
const numbers = Object.entries(arrays).map(([name, array]) => [name, [...floats(array)].map(String)]);
console.log(JSON.stringify({ text, numbers: Object.fromEntries(numbers) }));
"""


@needs_node
def test_what_python_packs_is_what_javascript_reads():
    arrays: dict[str, Any] = {
        "single": np.array([0.1, -np.inf, np.nan], np.float32),
        "half": np.array([0.5, -2.0, 65504.0, 6e-8], np.float16),
        "flags": np.array([True, False, True]),
        "steps": Scaled(np.array([0, 13107, 65535], np.uint16), 1 / 65535),
        "roots": Scaled(np.array([0, 17, 255], np.uint8), 0.02 / 255**2, power=2),
        "whole": np.array([-7, 2**31 - 1]),
    }
    read = json.loads(run("node", "--input-type=module", "-e", _READ, given=pack({"text": "é🙂"}, arrays)))
    assert read["text"] == "é🙂"
    for name, array in arrays.items():
        numbers = array.numbers if isinstance(array, Scaled) else array
        found = np.array([float(text.replace("Infinity", "inf")) for text in read["numbers"][name]])
        np.testing.assert_array_equal(found.astype(np.float32), numbers.astype(np.float32))
