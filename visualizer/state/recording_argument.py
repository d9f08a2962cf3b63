"""The recording that the app was started with: ``streamlit run app.py -- run.headlight``."""

from __future__ import annotations

import sys
from pathlib import Path


def recording_argument() -> Path | None:
    """The file named behind ``--``, whether or not it exists; None where none was."""
    named = [argument for argument in sys.argv[1:] if argument.endswith(".headlight")]
    return Path(named[0]) if named else None
