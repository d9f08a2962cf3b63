"""Make the picture that the page opens with again, after a change of the model or of the opening.

python -m visualizer.page.remake_opening
"""

from __future__ import annotations

import json
from dataclasses import asdict

from visualizer.components.token_way.element import token_way
from visualizer.page.opening_picture import FILE, TOKENS
from visualizer.pictures.token_way import stack_of, taken_at
from visualizer.runs.compute import compute_run
from visualizer.state.state import FIRST


def opening_data() -> bytes:
    """Compute the picture that the page opens with."""
    run, selection = compute_run(FIRST.settings).alone(), FIRST.selection
    stack = stack_of(run, selection.stage)
    if stack is None:
        raise ValueError("what the page opens with has no residual stream")
    way = taken_at(run, stack, selection.query).way
    return token_way(way, selected=selection.query, seq=0, key=f"token_way_{stack}").data


def opening_tokens() -> str:
    """The tokens that stand above it."""
    return json.dumps(asdict(compute_run(FIRST.settings).tokens["source"]), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_bytes(opening_data())
    TOKENS.write_text(opening_tokens(), encoding="utf-8")
