"""What is said of a run above its picture: its batch, its order, what was broken in it, how it was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.mask_tools.faults import FAULTS
from model.mask_tools.mask_case import listed
from visualizer.runs.masks_in_force import layer_left_out, padding_is_seen, promised_masks, same_masks
from visualizer.runs.run import Run
from visualizer.runs.trained import masks_of_training
from visualizer.session import state
from visualizer.session.cache import cached_run
from visualizer.session.state import Choices
from visualizer.session.widgets import mask_title
from visualizer.settings.attentions import MaskedAttention, unpadded
from visualizer.settings.fields import TRAINED, WORKED_EXAMPLES
from visualizer.settings.settings import Selection, Settings
from visualizer.stages.check_line import check_line
from visualizer.stages.order import compare_orders


def broken_on_purpose(run: Run) -> None:
    """What is wrong with the model, where a mask bug was chosen."""
    settings = run.settings
    if settings.fault == "none" or settings.weights in WORKED_EXAMPLES:
        return
    if settings.fault == "padding_counted":
        what = _padding_counted(run)
    elif not settings.mask:
        return
    elif settings.fault == "left_out":
        left_out, of_decoder = layer_left_out(settings.n_layers), layer_left_out(settings.depth)
        what = f"Layer {left_out} has no mask."
        if left_out != of_decoder:
            what = f"Layer {of_decoder} of the decoder has no mask."
            if "padding" in settings.mask:
                what = f"Layer {left_out} of the encoder and layer {of_decoder} of the decoder have no mask."
    else:
        what = FAULTS[settings.fault].note
    st.warning(f"This model is broken on purpose (More, Mask bug). {what}", icon=":material/bug_report:")


def _padding_counted(run: Run) -> str:
    n_before = max(sequence.is_padding.index(False) for sequence in run.tokens.values())
    if n_before == 0:
        return "Positions count the padding on the left, but there is none, so nothing is wrong yet."
    if run.settings.positions == "none":
        return "Positions count the padding on the left, but this model has no positions."
    return (
        f"Positions count the padding: the text begins at position {n_before} instead of 0, so its words get other "
        "vectors than without padding."
    )


def not_as_trained(run: Run, choices: Choices) -> None:
    """That a trained model runs under another mask than it learned with, and the way back."""
    settings = choices.settings
    if settings.weights != TRAINED or choices.selection.view == "compare":
        return
    as_trained = _with_masks_of_training(settings)
    here = promised_masks(run.settings, run.batches)
    in_training = promised_masks(_with_masks_of_training(run.settings), run.batches)
    if same_masks(here, in_training):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.warning(
            f"This model learned its task with {_named(as_trained.mask)}; here it runs with "
            f"{_named(settings.mask)}{_but_not_in(unpadded(run.settings))}.",
            icon=":material/model_training:",
        )
        st.button(
            f"Back to {_named(as_trained.mask)}",
            icon=":material/undo:",
            key="mask_of_training",
            on_click=state.callback(state.change_masks, as_trained),
            width="content",
        )


def _with_masks_of_training(settings: Settings) -> Settings:
    masks = masks_of_training(settings)
    return replace(settings, mask=masks, encoder_padding=True, cross_padding=True)


def _but_not_in(attentions: Sequence[MaskedAttention]) -> str:
    """``, but without padding in the encoder``; "" where there is none."""
    return f", but without padding in {listed([one.called for one in attentions])}" if attentions else ""


def _named(masks: tuple[str, ...]) -> str:
    """``the causal and padding masks``, ``the causal mask`` or ``no mask``."""
    return f"the {mask_title(masks)} mask{'s' if len(masks) > 1 else ''}" if masks else "no mask"


def another_order(run: Run, choices: Choices) -> None:
    """What the model makes of the same tokens in another order, where they stand in one."""
    if run.settings.order == 0 or run.settings.weights == TRAINED or run.example is not None:
        return
    told = "The tokens are in another order than typed."
    if choices.selection.view in ("step", "heads"):  # elsewhere other masks, or no whole text, are looked at
        typed = cached_run(replace(run.settings, order=0))
        compared = run.once("orders", lambda: compare_orders(typed, run))
        told = f"{told} {check_line(compared)}"
    st.caption(told)


def about_batch(run: Run, selection: Selection) -> None:
    """What brings the sequences to one length, and who hides it."""
    if run.settings.weights in WORKED_EXAMPLES:
        return
    n_padded = sum(any(sequence.is_padding) for sequence in run.batches["source"])
    length = len(run.tokens["source"])
    if not n_padded:
        about = "They are equally long: no padding."
    elif selection.view == "generate" and run.settings.architecture == "decoder":
        about = "Each is continued without its padding."
    else:
        about = _who_hides_padding(run, selection)
    shorter = f", padded to {length} tokens" if n_padded else ""
    st.caption(f"A batch of {run.n_batch_items} sequences, one per line{shorter}. {about}")


def _who_hides_padding(run: Run, selection: Selection) -> str:
    """Whether a padding mask hides the padding; where two masks are compared, which of them does."""
    if selection.view == "compare":
        hiding = [name for name, masks in (("A", selection.mask_a), ("B", selection.mask_b)) if "padding" in masks]
        bare = listed([attention.called for attention in unpadded(replace(run.settings, mask=("padding",)))])
        but = f", but not in {bare}" if bare else ""
        return f"It is hidden in {' and '.join(hiding)}{but}." if hiding else "It is hidden in neither A nor B."
    seen = padding_is_seen(run.promised, run.batches)
    if switched_off := unpadded(run.settings):
        named = listed([attention.called for attention in switched_off])
        return f"The padding mask is switched off in {named}."
    if "padding" in run.settings.mask:
        without = "Take it off to see what goes wrong" if seen else "The other masks alone would hide it too"
        return f"The padding mask hides the padding. {without}."
    if seen:
        return "The padding mask is off: words see the padding too."
    return "The padding mask is off, but the other masks hide the padding from all words."
