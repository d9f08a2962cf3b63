"""The mask as text for other libraries."""

from __future__ import annotations

import streamlit as st

from headlight.masks.language import parse
from headlight.masks.translations import TRANSLATIONS, MaskToTranslate, Translation
from model.texts import texts_of
from visualizer.runs.masks_in_force import are_one
from visualizer.runs.paths import of_every_layer
from visualizer.safe_text import markdown_safe
from visualizer.state import widgets
from visualizer.views.lab import export
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import padding_of

say = texts_of(__name__)
MOST_SHOWN = 300_000
"""The most characters of code that a page shows: a mask of 512 by 512, cell by cell."""


def render(case: Case) -> None:
    """Draw the choice of a library and the text to copy."""
    widgets.choice("library", help=None, label_visibility="collapsed")
    translation = TRANSLATIONS[case.selection.lab.library]
    st.caption(markdown_safe(translation.note))
    if not are_one(of_every_layer(case.run.promised, case.attention.path)):
        st.caption(say("of_layer", layer=case.selection.layer))
    mask = mask_to_translate(case)
    if mask.allowed.all():
        st.info(say("open"), icon=":material/info:")
    else:
        _show(translation, mask)
    export.render(mask, case.selection.layer)


def _show(translation: Translation, mask: MaskToTranslate) -> None:
    try:
        code = translation.write(mask)
    except ValueError as error:
        st.info(markdown_safe(say("not_for_this", error=error)), icon=":material/info:")
        return
    if len(code) <= MOST_SHOWN:
        st.code(code, language="python", wrap_lines=True)
    else:
        st.info(say("too_long", n_characters=len(code)), icon=":material/info:")


def mask_to_translate(case: Case) -> MaskToTranslate:
    """The mask of every head of the layer that is looked at."""
    query_is_padding, key_is_padding = padding_of(case.context)
    return MaskToTranslate(
        allowed=case.allowed_of_heads,
        query_is_padding=query_is_padding,
        key_is_padding=key_is_padding,
        n_heads=case.run.settings.n_heads,
        condition=_condition(case),
        facts=case.context,
        crosses=case.attention.crosses,
    )


def _condition(case: Case) -> str | None:
    """The masks of all heads as one line of code; None where heads differ or there is no expression."""
    if len(case.allowed_of_heads) > 1:
        return None
    expression = case.expression
    return parse(expression).torch_code() if expression else None
