"""The way from a run to its numbers as files, and to plain code that computes them again."""

from __future__ import annotations

from html import escape

import streamlit as st

from model.texts import texts_of
from visualizer.routes.address import file_address, file_name, link_to_stage
from visualizer.runs.run import Run
from visualizer.stages.scripts import Library, script

say = texts_of(__name__)

_TITLES: dict[Library, str] = {"numpy": "NumPy", "torch": "PyTorch"}


def save_run(run: Run, path: str) -> None:
    """Draw the menu that saves a run and the stage at ``path``; nothing where no link carries the run.

    A file is written when its link is followed; the menu is drawn while it is open.
    """
    if run.interventions:
        st.caption(say("edited"))
        return
    if file_address("run.headlight", *run.subject) is None:
        return
    menu = st.expander(say("menu"), icon=":material/download:", key="save_menu", on_change="rerun")
    if not menu.open:
        return
    lines = [
        (say("recording"), {"run.headlight": ".headlight"}),
        (say("stage", path=path), {f"{path}.npy": ".npy", f"{path}.csv": ".csv"}),
    ]
    has_code = not run.attentions and run.seen is None
    if has_code:
        lines += [
            (say("whole"), {"run.npz": ".npz", "run.safetensors": ".safetensors"}),
            (say("code"), {f"{path}.numpy": "NumPy", f"{path}.torch": "PyTorch", f"{path}.ipynb": ".ipynb"}),
        ]
    with menu:
        st.html("".join(f"<p>{escape(title)} {_links(run, files)}</p>" for title, files in lines))
        if has_code:
            _code(run, path)


def _links(run: Run, files: dict[str, str]) -> str:
    """A link to each file, as HTML."""
    addresses = {file: file_address(file, *run.subject) or "" for file in files}
    return " · ".join(
        f'<a href="{escape(addresses[file])}" download="{escape(file_name(file))}">{escape(label)}</a>'
        for file, label in files.items()
    )


def _code(run: Run, path: str) -> None:
    """The scripts, to be copied."""
    link = link_to_stage(run.settings, path, run.subject.item)
    for tab, library in zip(st.tabs(list(_TITLES.values())), _TITLES, strict=True):
        tab.code(script(run, path, library, link), language="python", height=320)
