"""Files that outlast a server: by name, in a folder that several servers may share.

The variable ``HEADLIGHT_STORE`` names it, as a path or any address that fsspec opens; without it, it is a folder
beside the temporary files of this machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from uuid import uuid4

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

MOST_FILES, MOST_BYTES = 512, 2**31
"""So many files of one ending, and bytes of them, are kept; what is saved next takes the place of the oldest."""

_BEGUN = ".part"
_DIGITS = 16
_DIGEST = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")


def save(name: str, content: bytes) -> None:
    """Keep a file. It is there at once as a whole, or not at all.

    Raises:
        OSError: the folder cannot be written to.
    """
    files, folder = _folder()
    files.makedirs(folder, exist_ok=True)
    _make_room(files, folder, name, len(content))
    begun = f"{folder}/{uuid4().hex}{_BEGUN}"
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


def put(content: bytes, ending: str) -> str:
    """Keep a file under a digest of its content, which it gives.

    Raises:
        OSError: as ``save``.
    """
    digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
    save(f"{digest}{ending}", content)
    return digest


def get(digest: str, ending: str) -> bytes | None:
    """Read what is kept under a digest; None where there is nothing, or something else."""
    content = load(f"{digest}{ending}") if _DIGEST.fullmatch(digest) else None
    is_whole = content is not None and hashlib.sha256(content).hexdigest().startswith(digest)
    return content if is_whole else None


def _make_room(files: AbstractFileSystem, folder: str, name: str, n_bytes: int) -> None:
    """Remove the oldest files that one of a name and a size leaves no room for."""
    found = {file["name"]: file["size"] for file in files.ls(folder, detail=True)}
    endings = (Path(name).suffix, _BEGUN)
    sizes = {path: size for path, size in found.items() if path.endswith(endings) and Path(path).name != name}
    while sizes and (len(sizes) >= MOST_FILES or sum(sizes.values()) + n_bytes > MOST_BYTES):
        oldest = min(sizes, key=files.modified)
        files.rm_file(oldest)
        del sizes[oldest]


def _folder() -> tuple[AbstractFileSystem, str]:
    address = os.environ.get("HEADLIGHT_STORE") or str(Path(tempfile.gettempdir(), "headlight"))
    files, folder = url_to_fs(address)
    return files, str(folder).rstrip("/")
