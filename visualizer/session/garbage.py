"""What Streamlit's garbage collections pass over.

Streamlit collects after every run of the script, while it holds the interpreter. With all that was imported,
PyTorch among it, a collection takes longer than the run itself.
"""

from __future__ import annotations

import gc
import sys

_imported = {"modules": 0}


def freeze_imports() -> None:
    """Leave what was imported since out of the collections. For the end of a run, when the page has left."""
    n_modules = len(sys.modules)
    if n_modules > _imported["modules"]:
        _imported["modules"] = n_modules
        gc.collect()
        gc.freeze()
