"""The command ``headlight``: opens the app, with a recording if one is named."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

_FOLDER = Path(__file__).parent
_APP = next(path for path in (_FOLDER / "app" / "app.py", _FOLDER.parent / "app.py") if path.exists())
"""Installed, the app stands in this folder; in the repository, beside it."""


def arguments(words: Sequence[str]) -> list[str]:
    """Return Streamlit's arguments for those that the command was called with.

    Raises:
        SystemExit: a recording that is named is not there, or the app's packages are not installed.
    """
    parser = argparse.ArgumentParser(
        prog="headlight",
        description="Open Headlight in the browser.",
        epilog="Any other option goes to Streamlit, such as --server.port 8502.",
    )
    parser.add_argument("recording", nargs="?", help="a file that trace.save wrote: run.headlight")
    chosen, others = parser.parse_known_args(words)
    if chosen.recording and not Path(chosen.recording).is_file():
        parser.error(f"there is no file {chosen.recording}")
    if find_spec("streamlit") is None:
        parser.error('the app needs more packages than torch: pip install "headlight[app]"')
    recording = [str(Path(chosen.recording).resolve())] if chosen.recording else []
    return ["run", str(_APP), *others, "--", *recording]


def main() -> None:
    """Run the command."""
    streamlit_arguments = arguments(sys.argv[1:])
    from streamlit.web import cli

    cli.main(streamlit_arguments, prog_name="streamlit")
