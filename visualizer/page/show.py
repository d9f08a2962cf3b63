"""The finished run in the chosen view, or one sentence on why there is none."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from model.texts import texts_of
from visualizer.page import header
from visualizer.page.about_run import about_batch, another_order, broken_on_purpose, not_as_trained
from visualizer.page.hints import hints
from visualizer.page.path_card import walk, walk_nowhere, way_out
from visualizer.pictures.compare import baseline_of
from visualizer.runs.paths import with_layer
from visualizer.runs.refusals import RefusedError
from visualizer.runs.run import Run
from visualizer.runs.writer import prompt_tokens
from visualizer.safe_text import markdown_safe, visible, visible_whole
from visualizer.settings.attentions import attention_named, paintings_in
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.settings import Selection
from visualizer.settings.sources import has_run
from visualizer.settings.views import VIEWS
from visualizer.stages.sizes import sizes_of
from visualizer.state import drafts, places, state, widgets
from visualizer.state.state import Choices
from visualizer.views import RENDER
from visualizer.views.citation import citation
from visualizer.views.edit_menu import edit_menu, edits_made
from visualizer.views.predict.covered import covered
from visualizer.views.watched import recordings
from visualizer.views.watched.judged_trace import show_operations, show_trace
from visualizer.views.watched.pretrained import door
from visualizer.work.cache import cached_run, prepare_process
from visualizer.work.cached_operations import cached_operations

say = texts_of(__name__)


def show(choices: Choices) -> None:
    """Compute and draw what is chosen."""
    prepare_process()
    name = choices.selection.view
    view, render = VIEWS[name], RENDER[name]
    source = choices.selection.source
    if source == "pretrained":
        checkpoint = door.open_or_offer(choices.settings, header.glossary_alone)
        if checkpoint is None:
            if header.is_walked(choices.selection):
                way_out()
            return
        choices = state.fit_to_checkpoint(checkpoint.part)
    if source == "recording":
        recorded = recordings.render(choices, header.on_top, header.glossary_alone)
        if recorded is not None:
            show_trace(recorded, replace(choices, selection=replace(choices.selection, hidden=False)))
        return
    if not view.has_run:
        header.glossary_alone()
        render(choices)
        return
    try:
        run = cached_run(choices.settings)
    except ValueError as error:
        header.glossary_alone()
        if header.is_walked(choices.selection):
            walk_nowhere(choices.selection, partial(_refused, error))
        else:
            _refused(error)
        return
    choices = _found_in(run, _with_readable_painting(run, choices))
    run = run.at(choices.selection.batch)
    path = with_layer(run.trace, choices.selection.stage, choices.selection.layer)
    choices = _off_padding(run, path, choices)
    writes = name == "generate"
    header.strip(
        prompt_tokens(run) if writes else run.tokens,
        choices,
        queried=None if writes else run.axes(path)[0].sequence or "source",
        sizes=sizes_of(run),
        edit=partial(edit_menu, run, path, choices.selection),
    )
    if is_walked := header.is_walked(choices.selection):
        walk(run, choices.selection)
    citation(run)
    if source == "pretrained" and not is_walked:
        door.about(choices)
    if run.n_batch_items > 1:
        header.batch_items(_beginnings(run))
        about_batch(run, choices.selection)
    another_order(run, choices)
    edits_made(run, is_compared=name == "compare")
    if not view.draws_heads:  # notes above would move the masks under the hand
        _notes(run, choices)
    _back_to_the_way(choices.selection)
    if source == "pretrained" and not has_run(source, name):
        if choices.selection.hidden:
            covered(say("operations"), ask=say("ask"), there={"view": "heads"})
        else:
            _operations(run, choices)
    else:
        render(run if view.shows_batch else run.alone(), choices.selection)
    if view.draws_heads:
        _notes(run, choices)


def _operations(run: Run, choices: Choices) -> None:
    try:
        operations = cached_operations(run)
    except ValueError as error:
        _refused(error)
    else:
        alone, watched = replace(choices.selection, batch=0), replace(choices.watched, watched_first_query=0)
        show_operations(operations, replace(choices, selection=alone, watched=watched))


def _notes(run: Run, choices: Choices) -> None:
    """Say where the settings do not do what their names promise."""
    hints(run, choices)
    broken_on_purpose(run, choices)
    not_as_trained(run, choices)
    _where_to_paint(choices)


def _refused(error: ValueError) -> None:
    """Say why there is nothing to draw and, where one click can do something about it, the button for it."""
    st.error(markdown_safe(visible_whole(str(error))), icon=":material/error:")
    if not isinstance(error, RefusedError) or error.way_out is None:
        return
    st.button(
        error.way_out.label,
        icon=":material/auto_fix_high:",
        key="way_out",
        on_click=state.callback(state.change, **error.way_out.changes),
    )


def _with_readable_painting(run: Run, choices: Choices) -> Choices:
    """The choices without those expressions and edits of a link that cannot be made."""
    if not run.complaints:
        return choices
    widgets.notices(run.complaints)
    readable: dict[str, Any] = {**paintings_in(run.settings), "score": run.settings.score}
    found = replace(choices, settings=replace(choices.settings, edits=run.settings.edits, **readable))
    state.save(found)
    return found


def _beginnings(run: Run) -> list[str]:
    """Return the beginning of each sequence of the batch; nothing where they have no words."""
    if run.settings.weights in WORKED_EXAMPLES:
        return [""] * run.n_batch_items
    return [visible(line.strip()) for line in run.settings.lines]


def _where_to_paint(choices: Choices) -> None:
    """The way to the painter, wherever the painted mask is in force and the painter is not in sight."""
    selection, painted = choices.selection, paintings_in(choices.settings)
    if selection.view == "lab" or "custom" not in choices.masks or choices.settings.weights in WORKED_EXAMPLES:
        return
    st.button(
        say("paint") if any(painted.values()) else say("paint_first"),
        icon=":material/brush:",
        key="to_the_lab",
        on_click=state.callback(state.select, view="lab"),
        type="tertiary",
    )


def _back_to_the_way(selection: Selection) -> None:
    """The way back for who came to a stage by a click in Follow a token."""
    if selection.view not in ("step", "heads"):
        places.forget_visit()
    elif places.is_visit() and not header.is_walked(selection):
        st.button(
            say("back"),
            icon=":material/arrow_back:",
            key="back_to_the_way",
            on_click=state.callback(state.select, view="way"),
            type="tertiary",
        )


def _off_padding(run: Run, path: str, choices: Choices) -> Choices:
    """The choices with a token of the text in focus when another text comes into sight; later any may be chosen.

    Padding that was chosen stands in the link also where it is at the usual place.
    """
    selection, settings = choices.selection, choices.settings
    text = (settings.text, settings.target, settings.pad, settings.pad_side, settings.weights, selection.batch)
    in_sight = (*text, state.examples_opened())
    is_known = drafts.put_by_before("text_in_sight") == in_sight
    drafts.put_by("text_in_sight", in_sight)
    sequence = run.axes(path)[0].sequence
    is_padding = run.tokens[sequence].is_padding if sequence else (False,)
    query = min(selection.query, len(is_padding) - 1)
    is_chosen = is_known or "query" in choices.named
    found = replace(choices, says_query=is_chosen and is_padding[query])
    if is_padding[query] and not is_chosen and not all(is_padding):
        real = (i for i, padding in enumerate(is_padding) if not padding)
        found = replace(found, selection=replace(selection, query=min(real, key=lambda i: abs(i - query))))
    if found != choices:
        state.save(found)
    return found


def _nearest(run: Run, selection: Selection) -> Selection:
    """The nearest places that this run has; in the Mask lab those of the attention whose mask is edited.

    In Compare the run that was kept may have more layers and heads.
    """
    nearest = run.nearest(selection)
    baseline = baseline_of(selection) if selection.view == "compare" else None
    if baseline is not None:
        with suppress(ValueError):  # the view says why it is not computed
            there = cached_run(baseline).nearest(selection)
            return replace(nearest, layer=max(nearest.layer, there.layer), head=max(nearest.head, there.head))
    if selection.view != "lab" or run.settings.weights in WORKED_EXAMPLES:
        return nearest
    attention = attention_named(selection.lab.attention, run.settings.architecture)
    return replace(run.nearest(replace(selection, stage=f"{attention.path}.weights")), stage=nearest.stage)


def _found_in(run: Run, choices: Choices) -> Choices:
    """The choices with a place that this run has, which the address then names."""
    found, notices = in_run(run, choices)
    widgets.notices(notices)
    if found != choices:
        state.save(found)
    return found


def in_run(run: Run, choices: Choices) -> tuple[Choices, list[str]]:
    """The choices with the nearest place that a run has, and a sentence for each part that a link named in vain.

    A part that no link says, since it is the usual one, stays: a longer text has it again. Where operations are
    drawn, other places are those of another run.
    """
    before, nearest = choices.selection, _nearest(run, choices.selection)
    said = {*choices.link, *choices.named}
    changes = {
        name: getattr(nearest, name)
        for name in sorted(said if has_run(before.source, before.view) else said & {"batch"})
        if getattr(nearest, name, None) != getattr(before, name, None)
    }
    notices = [
        say("not_in_run", name=name, asked=getattr(before, name), shown=shown)
        for name, shown in changes.items()
        if name in choices.named
    ]
    return replace(choices, selection=replace(before, **changes)), notices
