"""Edits of a run: the menu that makes them at a place, and the line that says which there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from model.texts import capitalized, texts_of
from visualizer.pictures.heads import attention_of, modules_of
from visualizer.runs.paths import attention_modules, layer_of, without_layer
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.settings.interventions import (
    MOST,
    Becomes,
    Intervention,
    read_interventions,
    write_interventions,
)
from visualizer.settings.settings import Selection
from visualizer.settings.views import VIEWS
from visualizer.stages.registry import entry_of
from visualizer.state import state, widgets
from visualizer.state.widget_values import give, key_of

say = texts_of(__name__)

_MENU = "edit_menu"
_LABELS: Mapping[Becomes, str] = {"zero": say("zero"), "mean": say("mean"), "other": say("other")}
_BECAME: Mapping[Becomes, str] = {
    "zero": say("became_zero"),
    "mean": say("became_mean"),
    "other": say("became_other"),
}


def edit_menu(run: Run, path: str, selection: Selection) -> None:
    """A button that opens what can be put in the place of a stage, of one head or of one row of it."""
    of_heads = VIEWS[selection.view].draws_heads or (run.attentions and selection.view in ("step", "way"))
    if of_heads:  # a head stands for what it found, its context
        if not (modules := attention_modules(run.trace)):
            return
        layers = modules_of(run, attention_of(modules, selection.stage))
        path = f"{layers[min(selection.layer, len(layers) - 1)]}.context"
    elif selection.view != "step":
        return
    if path not in run.trace:
        return
    if selection.hidden or run.example is not None or not run.trace[path].value.is_floating_point():
        return
    menu = st.popover(
        say("menu"),
        icon=":material/content_cut:",
        type="tertiary",
        width="content",
        key=key_of(_MENU),
        on_change="rerun",
    )
    if menu.open:
        with menu:
            _offer(run, _parts(run, path, selection))


def _offer(run: Run, parts: Mapping[str, Intervention]) -> None:
    """The parts, by names of their own, and a button for each thing that can be put in the place of one."""

    def add(intervention: Intervention) -> None:
        give(_MENU, False)
        _make((*_others(intervention), intervention))

    chosen = st.radio(
        say("what"),
        list(parts),
        format_func=lambda part: _said(run, parts[part]),
        key=f"edited_part_{'_'.join(parts)}",
    )
    for becomes, label in _LABELS.items():
        has_text = becomes != "other" or bool(widgets.line("other_text", placeholder=run.text))
        st.button(
            label,
            key=f"edit_{becomes}",
            on_click=state.callback(add, replace(parts[chosen], becomes=becomes)),
            disabled=len(run.interventions) >= MOST or not has_text,
            width="stretch",
        )


def edits_made(run: Run, *, is_compared: bool) -> None:
    """Each edit, with a button that takes it back, and the way to the run without them beside this one."""
    if not run.interventions:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="edits_made"):
        for each in dict.fromkeys(run.interventions):
            st.button(
                say("made", what=_said(run, each), became=_BECAME[each.becomes]),
                icon=":material/close:",
                key=f"take_back_{each}",
                help=say("take_back"),
                on_click=state.callback(_take_back, each),
            )
        if not is_compared:
            masks = run.settings.mask
            without_edits = {"baseline": "", "mask_a": masks, "mask_b": masks, **_where_it_shows(run)}
            st.button(
                say("compare"),
                key="compare_edits",
                on_click=state.callback(state.select, view="compare", **without_edits),
                type="tertiary",
            )


def _where_it_shows(run: Run) -> dict[str, str | int]:
    """The first attention after the first edit, whose weights may be others; none where there is none."""
    paths = list(run.trace)
    first = min(paths.index(each.path) for each in run.interventions)
    after = [module for module in attention_modules(run.trace) if paths.index(f"{module}.weights") >= first]
    return {"stage": f"{without_layer(after[0])}.weights", "layer": layer_of(after[0])} if after else {}


def _said(run: Run, intervention: Intervention) -> str:
    """The subject of an edit, as the beginning of a sentence."""
    return capitalized(markdown_safe(said_of(run, intervention)))


def said_of(run: Run, intervention: Intervention) -> str:
    """``head 1 of layer 0``, or ``token 3 “on” of “Layer norm 1”, layer 0``."""
    path, head, row = intervention.path, intervention.head, intervention.row
    what = say("stage", title=entry_of(run, path).title)
    if "layers." in path:
        what = say("in_layer", what=what, layer=layer_of(path))
    if without_layer(path).endswith("attention.context") and head is not None:
        what = say("head_of_layer", layer=layer_of(path), head=head)
    elif head is not None:
        what = say("head_of", what=what, head=head)
    if row is None:
        return what
    rows, _ = run.axes(path)
    name = say("row", row=row) if rows.sequence is None else say("token", row=row, label=rows.labels[row])
    return say("row_of", row=name, what=what)


def _parts(run: Run, path: str, selection: Selection) -> dict[str, Intervention]:
    """Return the parts that can be edited at a place, the smallest that is usual first."""
    whole = Intervention(path, "zero")
    row = min(selection.query, run.trace[path].value.shape[-2] - 1)
    if (n_heads := run.n_heads(path)) is None:
        return {"all": whole, "row": replace(whole, row=row)}
    one = replace(whole, head=min(selection.head, n_heads - 1))
    return {"head": one, "row_of_head": replace(one, row=row), "all": whole}


def _others(intervention: Intervention) -> tuple[Intervention, ...]:
    """The edits beside one, as a callback finds them."""
    return tuple(one for one in read_interventions(state.now().settings.edits) if one != intervention)


def _take_back(intervention: Intervention) -> None:
    _make(_others(intervention))


def _make(interventions: tuple[Intervention, ...]) -> None:
    before = state.chosen()
    state.change(edits=write_interventions(interventions))
    if not before.settings.edits and before.selection.view != "compare":  # A and B then differ by the edits alone
        state.select(mask_a=before.settings.mask, mask_b=before.settings.mask)
