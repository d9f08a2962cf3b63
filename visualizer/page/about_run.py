"""The sentences on a run above its picture: its batch, its order, what was broken in it, how it was trained."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from headlight.masks.faults import FAULTS
from model.texts import listed, texts_of
from visualizer.runs.checkpoints import has_own_masks, own_mask_names
from visualizer.runs.masks_in_force import layer_left_out, names_of, promised_masks, same_masks
from visualizer.runs.padding import padding_is_seen
from visualizer.runs.run import Run
from visualizer.runs.trained import masks_of_training
from visualizer.settings.attentions import unpadded
from visualizer.settings.fields import PRETRAINED, TRAINED, WORKED_EXAMPLES
from visualizer.settings.fitting import usual_mask
from visualizer.settings.settings import Selection, Settings, mask_title
from visualizer.stages.check_line import check_line
from visualizer.stages.order import compare_orders
from visualizer.state import state
from visualizer.state.state import Choices
from visualizer.work.cache import cached_run

say = texts_of(__name__)


def broken_on_purpose(run: Run, choices: Choices) -> None:
    """Say what is wrong with the model, where a mask bug was chosen."""
    settings = run.settings
    if settings.fault == "none" or settings.weights in WORKED_EXAMPLES:
        return
    if settings.fault == "padding_counted":
        what = _padding_counted(run)
    elif not choices.masks:
        return
    elif settings.fault == "left_out":
        left_out, of_decoder = layer_left_out(settings.n_layers), layer_left_out(settings.depth)
        if left_out == of_decoder:
            what = say("layer_left_out", layer=left_out)
        elif "padding" in choices.masks:
            what = say("both_layers_left_out", layer=left_out, of_decoder=of_decoder)
        else:
            what = say("decoder_layer_left_out", layer=of_decoder)
    else:
        what = FAULTS[settings.fault].note
    st.warning(say("broken", what=what), icon=":material/bug_report:")


def _padding_counted(run: Run) -> str:
    n_before = max(sequence.is_padding.index(False) for sequence in run.tokens.values())
    if n_before == 0:
        return say("nothing_counted")
    if run.settings.positions == "none":
        return say("no_positions")
    return say("padding_counted", n_before=n_before)


def not_as_trained(run: Run, choices: Choices) -> None:
    """That a trained model runs under another mask than it learned with, and the way back."""
    settings = choices.settings
    if settings.weights not in (TRAINED, PRETRAINED) or choices.selection.compares_masks:
        return
    if _runs_as_trained(run):
        return
    as_trained = _with_masks_of_training(settings)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        learned, masks = _named(as_trained.mask), _named(settings.mask)
        bare = listed([one.called for one in unpadded(run.settings)])
        if settings.weights == PRETRAINED:
            learned = _named(run.once("own_masks", lambda: own_mask_names(run.settings)))
            sentence = say("of_checkpoint", learned=learned, here=_named(names_of(run.promised.values())))
        elif bare:
            sentence = say("other_masks_and_unpadded", learned=learned, here=masks, unpadded=bare)
        else:
            sentence = say("other_masks", learned=learned, here=masks)
        st.warning(sentence, icon=":material/model_training:")
        st.button(
            say("back", masks=learned),
            icon=":material/undo:",
            key="mask_of_training",
            on_click=state.callback(state.change_masks, as_trained),
            width="content",
        )


def _runs_as_trained(run: Run) -> bool:
    if run.settings.weights == PRETRAINED:
        return has_own_masks(run.settings)
    here = promised_masks(run.settings, run.batches)
    return same_masks(here, promised_masks(_with_masks_of_training(run.settings), run.batches))


def _with_masks_of_training(settings: Settings) -> Settings:
    masks = usual_mask(settings) if settings.weights == PRETRAINED else masks_of_training(settings)
    return replace(settings, mask=masks, encoder_padding=True, cross_padding=True)


def _named(masks: tuple[str, ...]) -> str:
    """``the causal and padding masks``, ``the causal mask`` or ``no mask``."""
    if len(masks) > 1:
        return say("several_masks", masks=mask_title(masks))
    return say("one_mask", mask=mask_title(masks)) if masks else say("no_mask")


def another_order(run: Run, choices: Choices) -> None:
    """Say that the tokens stand in another order, where they do, and compare the run with that of the typed one."""
    if run.settings.order == 0 or run.settings.weights == TRAINED or run.example is not None:
        return
    sentence = say("another_order")
    if choices.selection.view in ("step", "heads"):  # elsewhere other masks, or no whole text, are looked at
        typed = cached_run(replace(run.settings, order=0))
        compared = run.once("orders", lambda: compare_orders(typed, run))
        sentence = f"{sentence} {check_line(compared)}"
    st.caption(sentence)


def about_batch(run: Run, selection: Selection) -> None:
    """Say what brings the sequences to one length, and which mask hides it."""
    if run.settings.weights in WORKED_EXAMPLES:
        return
    if not any(any(sequence.is_padding) for sequence in run.batches["source"]):
        st.caption(say("batch", n_sequences=run.n_batch_items))
        return
    if selection.view == "generate" and run.settings.architecture == "decoder":
        about = say("continued")
    else:
        about = _who_hides_padding(run, selection)
    length = len(run.tokens["source"])
    st.caption(say("padded_batch", n_sequences=run.n_batch_items, length=length, about=about))


def _who_hides_padding(run: Run, selection: Selection) -> str:
    """Say whether a padding mask hides the padding; where two masks are compared, which of them does."""
    if selection.compares_masks:
        masks_of = {"A": selection.compare.mask_a, "B": selection.compare.mask_b}
        hiding = [name for name, masks in masks_of.items() if "padding" in masks]
        bare = listed([attention.called for attention in unpadded(replace(run.settings, mask=("padding",)))])
        if not hiding:
            return say("hidden_in_neither")
        sides = listed(hiding)
        return say("hidden_in_but", sides=sides, bare=bare) if bare else say("hidden_in", sides=sides)
    seen = padding_is_seen(run, without="padding")
    if switched_off := unpadded(run.settings):
        return say("switched_off", attentions=listed([attention.called for attention in switched_off]))
    if "padding" in run.settings.mask:
        return say("hides") if seen else say("hides_too")
    return say("off") if seen else say("off_but_hidden")
