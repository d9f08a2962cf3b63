"""The menu of examples: each with a sentence that says what is to be seen, and a small picture of its weights."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import streamlit as st

from model.texts import texts_of
from visualizer.page.beginning import begin
from visualizer.page.file_field import file_field
from visualizer.safe_text import as_code, markdown_safe
from visualizer.settings.examples import EXAMPLES
from visualizer.settings.published import PUBLISHED
from visualizer.settings.settings import Selection, Settings
from visualizer.state import state
from visualizer.state.screen_file import MAX_BYTES, read_screen
from visualizer.state.widget_values import give, key_of

say = texts_of(__name__)

KEY = "examples_menu"
"""The key of the menu."""

_INK = (124, 58, 237)  # seen on a light and on a dark page
_SIDE = 44  # pixels


def examples_menu(*, offers_path: bool) -> None:
    """A button that opens the menu; what is in the menu is drawn when it opens: first the path, where offered."""
    menu = st.popover(say("examples"), key=key_of(KEY), on_change="rerun")
    if not menu.open:
        return
    with menu, st.container(key="examples", gap="small"):
        if offers_path:
            _entry("begin", say("path"), say("about_path"), "", begin)
        for example in EXAMPLES:
            _entry(
                f"example_{example.name}",
                example.title,
                example.what_to_see,
                thumbnail(example.settings, example.selection),
                partial(state.choose, example.settings, example.selection),
            )
        st.caption(say("published"))
        for published in PUBLISHED.values():
            opened = (Settings(weights=published.name), Selection())
            _entry(
                f"open_{published.name}",
                published.title,
                f"{markdown_safe(published.source)}  \n{as_code(published.recipe)}",
                thumbnail(*opened),
                partial(state.choose, *opened),
            )
    with menu:
        file_field(say("saved"), key="screen_file", most_bytes=MAX_BYTES, take=_open_screen)


def _open_screen(file: bytes) -> None:
    """Show the screen of a file; a bad one leaves what is shown."""
    state.show(read_screen(file))
    give(KEY, False)


def _entry(key: str, title: str, sentence: str, picture: str, act: Callable[[], None]) -> None:
    def open_it() -> None:
        act()
        give(KEY, False)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if picture:
            st.html(f'<img src="{picture}" height="{_SIDE}" width="{_SIDE}" alt="">', width="content")
        with st.container(gap="xxsmall"):
            st.button(markdown_safe(title), key=key, on_click=state.callback(open_it), type="tertiary")
            st.caption(sentence)


@lru_cache(maxsize=64)
def thumbnail(settings: Settings, selection: Selection) -> str:
    """The weights of the head that is looked at, as the address of a picture; "" where there is no attention."""
    from PIL import Image  # not needed for the first picture

    from visualizer.pictures.heads import attention_of
    from visualizer.runs.paths import attention_modules, with_layer
    from visualizer.work.cache import cached_run

    trace = cached_run(settings, is_passing=True).at(0).trace
    modules = attention_modules(trace)
    if not modules:
        return ""
    looked_at = with_layer(trace, f"{attention_of(modules, selection.stage)}.weights", selection.layer)
    weights = trace[looked_at].value[0].detach().numpy()
    head = weights[min(selection.head, len(weights) - 1)]
    ink = np.empty((*head.shape, 4), np.uint8)
    ink[..., :3] = _INK
    ink[..., 3] = np.round(25 + 230 * head.clip(0, 1))
    file = io.BytesIO()
    Image.fromarray(ink).resize((2 * _SIDE, 2 * _SIDE), Image.Resampling.NEAREST).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
