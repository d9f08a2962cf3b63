"""Files that outlast a server: by name, in a folder that several servers may share.

The variable ``HEADLIGHT_STORE`` names it, as a path or any address that fsspec opens; without it, it is a folder
beside the temporary files of this machine.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from uuid import uuid4

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

MOST_FILES = 512
"""The largest number of files that are kept; one more takes the place of the oldest."""


def save(name: str, content: bytes) -> None:
    """Keep a file. It is there at once as a whole, or not at all.

    Raises:
        OSError: the folder cannot be written to.
    """
    files, folder = _folder()
    files.makedirs(folder, exist_ok=True)
    kept = [path for path in files.ls(folder, detail=False) if not path.endswith(f"/{name}")]
    if len(kept) >= MOST_FILES:
        files.rm_file(min(kept, key=files.modified))
    begun = f"{folder}/{uuid4().hex}.part"
    files.pipe_file(begun, content)
    files.mv(begun, f"{folder}/{name}")


def load(name: str) -> bytes | None:
    """Read the file kept under a name; None where there is none."""
    files, folder = _folder()
    try:
        content: bytes = files.cat_file(f"{folder}/{name}")
    except FileNotFoundError:
        return None
    return content


def _folder() -> tuple[AbstractFileSystem, str]:
    address = os.environ.get("HEADLIGHT_STORE") or str(Path(tempfile.gettempdir(), "headlight"))
    files, folder = url_to_fs(address)
    return files, str(folder).rstrip("/")
