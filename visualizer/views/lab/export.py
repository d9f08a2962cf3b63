"""The mask as files: arrays, and every translation."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress

import numpy as np
import streamlit as st
from safetensors.torch import save
from torch import Tensor

from headlight.masks.translations import TRANSLATIONS, MaskToTranslate
from model.texts import texts_of

say = texts_of(__name__)
CONVENTION = "True = may attend"


def render(mask: MaskToTranslate, layer: int) -> None:
    """Draw the menu that saves the mask of a layer; the files are made while it is open."""
    shape = "(H, Tq, Tk)" if mask.is_per_head else "(Tq, Tk)"
    menu = st.popover(say("save"), key="export", on_change="rerun")
    if not menu.open:
        return
    with menu:
        st.caption(say("booleans", shape=shape, convention=CONVENTION))
        _button(".npy", as_npy(mask), f"mask_of_layer_{layer}.npy")
        _button(".safetensors", as_safetensors(mask), f"mask_of_layer_{layer}.safetensors")
        _button(say("translations"), as_scripts(mask), f"mask_of_layer_{layer}.zip")


def _button(title: str, data: bytes, name: str) -> None:
    st.download_button(
        title,
        data,
        file_name=name,
        key=f"export_{name.rpartition('.')[2]}",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )


def cells_of(mask: MaskToTranslate) -> Tensor:
    """(H, Tq, Tk), or (Tq, Tk) where all heads have the same mask."""
    return mask.allowed.contiguous() if mask.is_per_head else mask.allowed[0].contiguous()


def as_npy(mask: MaskToTranslate) -> bytes:
    """A .npy file."""
    file = io.BytesIO()
    np.save(file, cells_of(mask).numpy())
    return file.getvalue()


def as_safetensors(mask: MaskToTranslate) -> bytes:
    """A .safetensors file that says its convention."""
    return save({"mask": cells_of(mask)}, metadata={"convention": CONVENTION})


def as_scripts(mask: MaskToTranslate) -> bytes:
    """A .zip file with one piece of Python for each library that can say the mask."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, translation in TRANSLATIONS.items():
            with suppress(ValueError):  # a library that takes no mask over two sequences has no piece
                archive.writestr(zipfile.ZipInfo(f"{name}.py"), translation.write(mask))
    return file.getvalue()
