"""The content of a wheel: all packages and the app under ``headlight``, and imports that find them there.

A project may have a ``model.py`` or a ``visualizer`` of its own. Installed, ours must neither hide them nor be
hidden by them, while the repository keeps its packages at the top, where they are read.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_OURS = re.compile(r"^(\s*(?:>>> )?(?:from|import) )(?=(?:model|visualizer)\b)", re.MULTILINE)


class WheelHook(BuildHookInterface):
    """Adds every file of ours to the wheel, at its place there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds; an editable installation takes the repository as it is."""
        if version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp())
        for source, place in _places(Path(self.root)):
            written = self._folder / place
            written.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".py":
                written.write_text(_OURS.sub(r"\1headlight.", source.read_text(encoding="utf-8")), encoding="utf-8")
            else:
                shutil.copy(source, written)
            build_data["force_include"][str(written)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called by hatchling when the wheel is written."""
        if version != "editable":
            shutil.rmtree(self._folder)


def _places(root: Path) -> Iterator[tuple[Path, str]]:
    """Every file with its place in the wheel; the app in a folder alone, since Streamlit puts it on the path."""
    for package in ("headlight", "model", "visualizer"):
        for source in sorted((root / package).rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                within = source.relative_to(root).as_posix()
                yield source, within if package == "headlight" else f"headlight/{within}"
    for name in ("app.py", ".streamlit/config.toml"):
        yield root / name, f"headlight/app/{name}"
