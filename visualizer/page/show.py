"""The finished run in the chosen view, or one sentence on why there is none."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from model.mask_tools.faults import FAULTS
from visualizer.page import header
from visualizer.page.hints import hints
from visualizer.runs.attention_masks import (
    layer_left_out,
    padding_is_seen,
    promised_masks,
    same_masks,
)
from visualizer.runs.paths import with_layer
from visualizer.runs.refusals import RefusedError
from visualizer.runs.run import Run
from visualizer.runs.trained import masks_of_training
from visualizer.runs.writer import tokens_given
from visualizer.safe_text import markdown_safe, visible
from visualizer.session import state, widgets
from visualizer.session.cache import cached_run, prepare_process
from visualizer.session.citation import citation
from visualizer.session.state import Choices
from visualizer.settings.fields import FIELDS, TRAINED, WORKED_EXAMPLES
from visualizer.settings.lines import lines_of
from visualizer.settings.settings import Selection
from visualizer.stages.check_line import check_line
from visualizer.stages.order import compare_orders
from visualizer.stages.sizes import sizes_of
from visualizer.views import VIEWS, VIEWS_OF_BATCH, VIEWS_WITHOUT_RUN


def show(choices: Choices) -> None:
    """Compute and draw what is chosen."""
    prepare_process()
    if choices.selection.view in VIEWS_WITHOUT_RUN:
        header.glossary_alone()
        VIEWS_WITHOUT_RUN[choices.selection.view](choices.training)
        return
    try:
        run = cached_run(choices.settings)
    except ValueError as error:
        header.glossary_alone()
        _refused(error)
        return
    choices = _found_in(run, _with_readable_painting(run, choices))
    run = run.at(choices.selection.batch)
    choices = _at(run.item, choices)
    path = with_layer(run.trace, choices.selection.stage, choices.selection.layer)
    if choices.selection.view == "generate":
        header.strip(tokens_given(run), choices, queried=None, sizes=sizes_of(run))
    else:
        header.strip(run.tokens, choices, queried=run.axes(path)[0].sequence or "source", sizes=sizes_of(run))
    citation(run)
    if run.n_batch_items > 1:
        header.batch_items(_beginnings(run))
        _about_batch(run, choices.selection)
    _another_order(run, choices)
    hints(run, choices)
    _broken_on_purpose(run)
    _not_as_trained(run, choices)
    _where_to_paint(choices)
    seen = run if choices.selection.view in VIEWS_OF_BATCH else run.alone()
    VIEWS[choices.selection.view](seen, choices.selection)


def _refused(error: ValueError) -> None:
    """Why there is nothing to draw and, where one click can do something about it, the button for it."""
    st.error(markdown_safe(str(error)), icon=":material/error:")
    if not isinstance(error, RefusedError) or error.way_out is None:
        return
    changes = error.way_out.changes

    def take() -> None:
        state.change(**changes)
        state.redraw_page()

    st.button(error.way_out.label, icon=":material/content_cut:", key="way_out", on_click=take)


def _with_readable_painting(run: Run, choices: Choices) -> Choices:
    """The choices without those expressions of a link that are none."""
    if not run.complaints:
        return choices
    widgets.notices(run.complaints)
    found = replace(choices, settings=replace(choices.settings, custom=run.settings.custom))
    state.save(found)
    return found


def _broken_on_purpose(run: Run) -> None:
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
        what = f"Layer {left_out} goes without its mask."
        if left_out != of_decoder:
            what = f"Layer {of_decoder} of the decoder goes without its mask."
            if "padding" in settings.mask:
                what = (
                    f"Layer {left_out} of the encoder and layer {of_decoder} of the decoder go without their masks."
                )
    else:
        what = FAULTS[settings.fault].note
    st.warning(f"This model is broken on purpose (More, Mask bug). {what}", icon=":material/bug_report:")


def _padding_counted(run: Run) -> str:
    n_before = max(sequence.is_padding.index(False) for sequence in run.tokens.values())
    if n_before == 0:
        return "It counts the padding on the left as positions, but there is none here, so nothing is wrong yet."
    if run.settings.positions == "none":
        return "It counts the padding on the left as positions, but without positions nothing is counted."
    return (
        f"Positions count the padding: the text begins at position {n_before} instead of 0, so the same words get "
        "other vectors than without padding, whatever the masks hide."
    )


def _not_as_trained(run: Run, choices: Choices) -> None:
    """That a trained model runs under another mask than it learned with, and the way back."""
    settings = choices.settings
    if settings.weights != TRAINED or choices.selection.view == "compare":
        return
    as_trained = replace(settings, mask=masks_of_training(settings))
    here = promised_masks(run.settings, run.batches)
    in_training = promised_masks(replace(run.settings, mask=as_trained.mask), run.batches)
    if same_masks(here, in_training):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.warning(
            f"This model learned its task with {_named(as_trained.mask)}; here it runs with "
            f"{_named(settings.mask)}, which it was not trained for.",
            icon=":material/model_training:",
        )
        st.button(
            f"Back to {_named(as_trained.mask)}",
            icon=":material/undo:",
            key="mask_of_training",
            on_click=state.change_masks,
            args=(as_trained,),
            width="content",
        )


def _named(masks: tuple[str, ...]) -> str:
    """``the causal and padding masks``, ``the causal mask`` or ``no mask``."""
    names = " and ".join(FIELDS["mask"].choices[mask].lower() for mask in masks)
    return f"the {names} mask{'s' if len(masks) > 1 else ''}" if masks else "no mask"


def _at(item: int, choices: Choices) -> Choices:
    """The choices, with the last sequence of a batch that has become smaller."""
    if choices.selection.batch == item:
        return choices
    found = replace(choices, selection=replace(choices.selection, batch=item))
    state.save(found)
    return found


def _another_order(run: Run, choices: Choices) -> None:
    """What the model makes of the same tokens in another order, where they stand in one."""
    if run.settings.order == 0 or run.settings.weights == TRAINED or run.example is not None:
        return
    told = "The tokens stand in another order than typed."
    if choices.selection.view in ("step", "heads"):  # elsewhere other masks, or no whole text, are looked at
        typed = cached_run(replace(run.settings, order=0))
        told = f"{told} {check_line(compare_orders(typed, run))}"
    st.caption(told)


def _beginnings(run: Run) -> list[str]:
    """How each sequence of the batch begins; nothing where they have no words."""
    if run.settings.weights in WORKED_EXAMPLES:
        return [""] * run.n_batch_items
    return [visible(line.strip()) for line in lines_of(run.settings.text)]


def _about_batch(run: Run, selection: Selection) -> None:
    """What brings the sequences to one length, and who hides it."""
    if run.settings.weights in WORKED_EXAMPLES:
        return
    n_padded = sum(any(sequence.is_padding) for sequence in run.batches["source"])
    length = len(run.tokens["source"])
    if not n_padded:
        about = "They are equally long, so that there is no padding."
    elif selection.view == "generate" and run.settings.architecture == "decoder":
        about = "Each is continued without its padding."
    else:
        about = _who_hides_padding(run, selection)
    shorter = f", padded to {length} tokens" if n_padded else ""
    st.caption(f"{run.n_batch_items} lines are a batch of {run.n_batch_items} sequences{shorter}. {about}")


def _who_hides_padding(run: Run, selection: Selection) -> str:
    """Whether a padding mask hides the padding; where two masks are compared, which of them does."""
    if selection.view == "compare":
        hiding = [name for name, masks in (("A", selection.mask_a), ("B", selection.mask_b)) if "padding" in masks]
        return f"It is hidden in {' and '.join(hiding)}." if hiding else "It is hidden in neither A nor B."
    seen = padding_is_seen(run.promised, run.batches)
    if "padding" in run.settings.mask:
        without = (
            "take it off to see what goes wrong" if seen else "the other masks alone would hide it from all words"
        )
        return f"The padding mask follows from the lengths and hides it: {without}."
    if seen:
        return "The padding mask is off: words see the padding too, and take something from it."
    return "The padding mask is off, but the other masks hide the padding from all words."


def _where_to_paint(choices: Choices) -> None:
    """The way to the painter, wherever the painted mask is in force and the painter is not in sight."""
    selection = choices.selection
    in_use = {*selection.mask_a, *selection.mask_b} if selection.view == "compare" else {*choices.settings.mask}
    if selection.view == "lab" or "custom" not in in_use or choices.settings.weights in WORKED_EXAMPLES:
        return
    st.button(
        "Paint the mask" if choices.settings.custom else "Nothing is painted yet: paint the mask",
        icon=":material/brush:",
        key="to_the_lab",
        on_click=state.change_view,
        args=("lab",),
        type="tertiary",
    )


def _found_in(run: Run, choices: Choices) -> Choices:
    """The choices, where a link names a place that this run does not have with the nearest that it has."""
    selection = run.nearest(choices.selection)
    wrong = [
        name for name in choices.given if getattr(selection, name, None) != getattr(choices.selection, name, None)
    ]
    if not wrong:
        return choices
    widgets.notices(
        [
            f"{name}={getattr(choices.selection, name)} is not in this run: {getattr(selection, name)} is shown."
            for name in sorted(wrong)
        ]
    )
    found = replace(choices, selection=selection)
    state.save(found)
    return found
