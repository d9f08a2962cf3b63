"""A field that opens a file, and says in one sentence why it refused the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from visualizer.safe_text import markdown_safe
from visualizer.state import drafts, state


def file_field(label: str, *, key: str, most_bytes: int, take: Callable[[bytes], None]) -> None:
    """Draw the field.

    take: what is done with the bytes of a file; its ValueError is what the field says, and nothing else changes.
    """
    refused = f"{key}_refused"

    def hear(upload: Any) -> None:  # noqa: ANN401 - Streamlit's file, None when it was taken away
        drafts.put_by(refused, None)
        if upload is None:
            return
        try:
            take(upload.getvalue())
        except ValueError as error:
            drafts.put_by(refused, str(error))

    st.file_uploader(label, key=key, max_upload_size=most_bytes // 2**20, on_change=state.on_change(key, hear))
    if sentence := drafts.put_by_before(refused):
        st.error(markdown_safe(str(sentence)), icon=":material/error:")
