"""Compare: two runs beside each other, which differ in their masks, an edit or anything else, and what that did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from headlight.masks.intent_kinds import CELLS_OF_THEIR_OWN
from headlight.masks.intents import Intent
from model.sources.worked_examples import WorkedExample
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.dials import Dial, Pressed
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.pictures.compare import (
    ComparePicture,
    baseline_of,
    compared_settings,
    draw_compared,
    intent_of_b,
    title_of_side,
)
from visualizer.pictures.heads import attention_of, draw_heads, heads_picture
from visualizer.routes.address import picture_address
from visualizer.runs.intended import chosen_intent
from visualizer.runs.paths import attention_modules, layer_of, without_layer
from visualizer.runs.recorded import token_of, under
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.attentions import attention_named
from visualizer.settings.dials import MASKS_OF_BOTH, before_turning, dials_of, pressed_masks, turned
from visualizer.settings.link import MAX_URL_TEXT, left_out_of_link, write_query
from visualizer.settings.looks import looks_in, looks_of
from visualizer.settings.published import PUBLISHED
from visualizer.settings.settings import Selection, Settings, default_stage, in_mask_order
from visualizer.shares import percent
from visualizer.stages.attention import agreement
from visualizer.stages.check_line import check_line
from visualizer.stages.panels import bounds, stage_panel
from visualizer.state import state, widgets
from visualizer.state.expectations import is_covered
from visualizer.views.attention_picker import attention_kind
from visualizer.views.comparison import (
    Downstream,
    differences,
    downstream,
    has_same_rows,
    has_same_shapes,
    predictions,
)
from visualizer.views.outcome import outcome
from visualizer.views.predict.ask import ask_cells, asked_bar, is_revealed
from visualizer.views.predict.questions import asked_of_layers
from visualizer.views.what_changed import account_of, place_of, say_opened, what_changed
from visualizer.work.cache import cached_run

say = texts_of(__name__)

MOST_ROWS_WHOLE = 16
"""Tables of up to so many rows are drawn whole; longer ones are scrolled in."""


def render(run: Run, selection: Selection) -> None:
    """Draw the view."""
    if run.example is not None and run.example.mask is None:
        _nothing_to_compare(run.example)
        return
    if baseline_of(selection) is not None and run.repeat is None:
        _with_baseline(run, selection)
        return
    _about_masks(run, selection)
    if run.repeat is not None:
        st.caption(say("of_recording"), width="content")
        a, b = run, under(run, selection.compare.mask_b)
    else:
        settings = compared_settings(run.settings, selection)
        try:
            a, b = (cached_run(each).at(run.item).alone() for each in settings)
        except ValueError as error:  # a checkpoint that takes no other mask
            st.info(f"{markdown_safe(str(error))} {say('another_way')}")
            _keep(run, kind="secondary")
            return
    kind = attention_kind(attention_modules(a.trace), selection.stage)
    picture = ComparePicture(heads_picture(a, kind, selection), heads_picture(b, kind, selection))
    same, batch = picture.a.modules, picture.a.batch
    module = same[min(selection.layer, len(same) - 1)]
    if selection.hidden:
        if _is_revealed(a, b, same, selection):
            say_opened(a, b, module, batch, selection.head)
            st.markdown(account_of(a, b, module, place_of(a, module, selection), batch))
        return
    if b.interventions:  # what comes of an edit says more than the weights of one attention
        outcome(a, b, batch, selection)
    titles = (
        say("as_recorded") if run.repeat else title_of_side("a", picture.a.blocked_by),
        _title_of_b(b, picture.b.blocked_by, intent_of_b(run.settings, selection)),
    )
    _grids(run, picture, selection, titles, dials_of_both(run, picture, selection))
    if not b.interventions:
        outcome(a, b, batch, selection)
    what_changed(a, b, module, selection, batch)
    with st.container(horizontal=True, key="agreement", gap="medium"):
        for name, compared in (("A", a), ("B", b)) if run.repeat is None else (("A", a),):
            line = check_line(agreement(compared, module))
            st.caption(say("agreement", name=name, layer=layer_of(module), check=line), width="content")
    if run.repeat is None and run.example is None:
        _keep(run)
    _downstream(a, b, kind, batch, selection)
    if "probabilities" in a.trace:
        _predictions(a, b, batch)


def _with_baseline(b: Run, selection: Selection) -> None:
    """Compare the run with the one that was kept, whatever differs between them."""
    drop = state.callback(state.select, baseline="")
    try:
        a = _kept(b, selection)
    except ValueError as error:
        st.error(markdown_safe(str(error)), icon=":material/error:")
        st.button(say("drop"), key="drop_baseline", on_click=drop)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="baseline"):
        st.markdown(markdown_safe(differences(a.settings, b.settings)), width="content")
        st.button(say("drop"), key="drop_baseline", on_click=drop, type="tertiary")
    _say_renumbered(a, b)
    kind = attention_kind(attention_modules(b.trace), selection.stage)
    titles = (say("kept"), say("chosen"))
    if not has_same_shapes(a, b, kind):
        _beside(((titles[0], a), (titles[1], b)), selection)
        return
    picture = ComparePicture(heads_picture(a, kind, selection), heads_picture(b, kind, selection))
    batch = picture.a.batch
    if a.vocabulary == b.vocabulary and has_same_rows(a, b, "logits"):
        outcome(a, b, batch, selection)
    _grids(b, picture, selection, titles)
    _downstream(a, b, kind, batch, selection)
    if has_same_rows(a, b, "probabilities"):
        _predictions(a, b, batch)


def _kept(b: Run, selection: Selection) -> Run:
    """The run that was kept.

    Raises:
        ValueError: it cannot be had, or has no attention.
    """
    a = cached_run(compared_settings(b.settings, selection)[0]).at(b.item).alone()
    if not attention_modules(a.trace):
        raise ValueError(say("without_attention"))
    return a


def _say_renumbered(a: Run, b: Run) -> None:
    """Say where another token has the same id in both, and so the same vector: words are numbered by each text."""
    if a.settings.weights != b.settings.weights or a.vocabulary == b.vocabulary:
        return
    for name in a.tokens.keys() & b.tokens.keys():
        of_a, of_b = a.tokens[name], b.tokens[name]
        for before, after, *ids in zip(of_a.labels, of_b.labels, of_a.ids, of_b.ids, strict=False):
            if before != after and ids[0] == ids[1]:
                st.caption(say("renumbered", before=markdown_safe(before), after=markdown_safe(after), id=ids[0]))
                return


def _beside(runs: Sequence[tuple[str, Run]], selection: Selection) -> None:
    """Draw the heads of runs that have other shapes, each as it is."""
    pictures = [
        (title, heads_picture(run, attention_of(attention_modules(run.trace), selection.stage), selection))
        for title, run in runs
    ]
    n_queries = min(len(picture.rows.labels) for _, picture in pictures)
    n_keys = min(len(picture.columns.labels) for _, picture in pictures)

    def show(event: object) -> None:
        layer, head = state.index_in(event, "layer"), state.index_in(event, "head")
        state.select(layer=layer, head=head, **looks_in(event))

    def select(event: object) -> None:
        show(event)
        query, key = state.index_in(event, "query"), state.index_in(event, "key")
        if query < n_queries and key < n_keys:  # both have this cell
            state.select_cell(query, key)

    for number, (title, picture) in enumerate(pictures):
        st.markdown(f"## {title}")
        layer = min(selection.layer, len(picture.modules) - 1)
        shown = replace(selection, stage=f"{picture.kind}.weights", layer=layer)
        key = f"beside_{number}"
        heads = draw_heads(
            picture,
            selection,
            address=picture_address("heads", picture.run.settings, shown, picture.n_weights),
            query=min(selection.query, n_queries - 1),
            key_index=min(selection.key, n_keys - 1),
            looks=looks_of(selection),
            key=key,
            seq=state.last_seq(key),
        )
        mount(heads, select=select, shown=show)


def _nothing_to_compare(example: WorkedExample) -> None:
    """Say why there are no two runs, and offer the examples that have two."""
    st.info(say("without_mask") if example.attends else say("without_attention"))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples_with_a_mask"):
        st.caption(say("with_mask"), width="content")
        for other in PUBLISHED.values():
            if other.has_mask:
                st.button(
                    markdown_safe(other.title),
                    key=f"compare_{other.name}",
                    on_click=state.callback(state.change, weights=other.name, mask=Settings().mask),
                    type="tertiary",
                )


def _about_masks(run: Run, selection: Selection) -> None:
    if run.repeat is not None:
        return
    if run.example is not None:
        st.caption(say("of_example"), width="content")
        return
    meant = chosen_intent(selection, attention_named(selection.lab.attention, run.settings.architecture))
    if meant is None or meant.kind in CELLS_OF_THEIR_OWN:
        return
    widgets.switch("against_intent", width="content")
    st.caption(markdown_safe(meant.words), width="content")


def _keep(run: Run, kind: Literal["secondary", "tertiary"] = "tertiary") -> None:
    """The way to compare with what is run now, whatever is changed next; none where no link can carry it."""
    selection = Selection(stage=default_stage(run.settings.architecture))
    link = urlencode(write_query(run.settings, selection) or {"text": run.settings.text})  # "" would keep nothing
    if left_out_of_link(run.settings) or len(link) > MAX_URL_TEXT:
        return
    keep = state.callback(state.select, baseline=link)
    st.button(say("keep"), key="keep_baseline", help=say("keep_help"), on_click=keep, type=kind)


def _is_revealed(a: Run, b: Run, modules: Sequence[str], selection: Selection) -> bool:
    """Ask for what is expected of B in one head, beside A; whether both are in sight."""
    asked = asked_of_layers(b, modules, selection, masks_first=True)
    panel_b = asked.question.panel
    question = replace(asked.question, panel=replace(panel_b, title=title_of_side("b", panel_b.blocked_by)))
    asked_bar(question, b.subject, kinds=asked.kinds, places=asked.places)
    without_a = is_covered(a.subject, question.result)
    has_more = bool(selection.class_code) or is_revealed(question, b.subject)
    left, right = st.columns([1, 2] if has_more else 2, gap="medium")
    with left:
        if without_a:
            st.caption(say("covered_as_b") if a.subject == b.subject else say("covered_elsewhere"))
        else:
            panel_a = stage_panel(a, asked.path, head=asked.head, batch=asked.batch)
            title = title_of_side("a", panel_a.blocked_by)
            mount(tensor_grid([replace(panel_a, title=title, subtitle="")], key="covered_a"))
    with right:
        return not ask_cells(question, b.subject) and not without_a


def _grids(
    run: Run,
    picture: ComparePicture,
    selection: Selection,
    titles: tuple[str, str],
    dials: Sequence[Dial | Pressed] = (),
) -> None:
    a, b = picture.a, picture.b
    layer = min(selection.layer, len(a.modules) - 1)
    shown = replace(selection, stage=f"{a.kind}.weights", layer=layer)
    numbers = a.n_weights + b.n_weights
    recorded = token_of(run)
    address = picture_address("compare", run.settings, shown, numbers, recorded=recorded)
    unturned = picture_address("compare", *before_turning(run.settings, shown, dials), numbers, recorded=recorded)

    def show(event: object) -> None:
        changes = turned(event, dials)
        masks = {name: changes.pop(name) for name in MASKS_OF_BOTH if name in changes}
        state.select(layer=state.index_in(event, "layer"), **masks, **looks_in(event))
        if changes:
            state.change(**changes)

    def select(event: object) -> None:
        show(event)
        state.select(**{name: state.index_in(event, name) for name in ("head", "query", "key")})

    key = "compare_grids"
    mount(
        draw_compared(
            picture,
            selection,
            titles,
            address=address,
            looks=looks_of(selection),
            key=key,
            seq=state.last_seq(key),
            dials=dials,
            dial_address=unturned or "",
        ),
        select=select,
        shown=show,
    )


def dials_of_both(run: Run, picture: ComparePicture, selection: Selection) -> tuple[Dial | Pressed, ...]:
    """The masks of A and B, and what can be turned for both at once; what a mask should be has its own."""
    if run.example is not None:
        return ()
    if run.repeat is not None:
        pressed = pressed_masks("mask_b", selection.compare.mask_b)
        positional = {name: label for name, label in pressed.offered.items() if name not in ("padding", "custom")}
        return (replace(pressed, offered=positional),)
    is_meant = intent_of_b(run.settings, selection) is not None
    of_b = () if is_meant else selection.compare.mask_b
    sides = {name: getattr(selection.compare, name) for name in MASKS_OF_BOTH[: 1 if is_meant else 2]}
    masks = [pressed_masks(name, chosen, is_folded=True) for name, chosen in sides.items()]
    rows, columns = picture.a.axes
    both = replace(run.settings, mask=in_mask_order((*selection.compare.mask_a, *of_b)))
    sizes = (len(rows.labels), len(columns.labels))
    found = dials_of(both, picture.a.kind, *sizes, asked_width=selection.asked_width)
    return (*masks, *(replace(dial, is_foremost=False) for dial in found if dial.name != "mask"))


def _title_of_b(b: Run, names: tuple[str, ...], intent: Intent | None) -> str:
    if intent is not None:
        return say("side_b", title=say("as_it_should_be", words=intent.words))
    if b.example is not None:
        return say("side_b", title=say("as_published"))
    return title_of_side("b", names, is_edited=bool(b.interventions))


def _downstream(a: Run, b: Run, kind: str, batch: int, selection: Selection) -> None:
    prefix = "" if kind == "attention" or "." not in kind else kind.partition(".")[0]
    found = downstream(a, b, batch=batch, prefix=prefix)
    if found is None:
        return
    st.markdown(say("downstream"))
    st.caption(say("distance"))
    widgets.switch("relative")
    panel = _downstream_panel(a, found, found.relative if selection.compare.relative else found.norms)
    key = "downstream"

    def select(event: object) -> None:
        path = found.paths[min(state.index_in(event, "row"), len(found.paths) - 1)]
        state.select(stage=without_layer(path), layer=layer_of(path), query=state.index_in(event, "column"))

    mount(tensor_grid([panel], key=key, layout="row"), select=select)


def _downstream_panel(run: Run, found: Downstream, values: np.ndarray) -> Panel:
    tokens, _ = run.axes(found.paths[0])
    return Panel(
        name="downstream",
        title="‖B − A‖",
        subtitle="",
        array=values,
        rows=Axis("stage", tuple(stage_title(path) for path in found.paths), None),
        columns=tokens,
        role="residual",
        palette="sequential",
        bounds=bounds(values, "distribution"),
    )


def stage_title(path: str) -> str:
    """``0 attention`` for a stage of layer 0, ``logits`` for one outside the layers."""
    module, _, name = path.rpartition(".")
    is_of_module = name in ("output", "context")
    title = module.rpartition(".")[2].replace("_", "-").removeprefix("self-") if is_of_module else name
    return f"{layer_of(path)} {title}" if "layers." in path else title


def _predictions(a: Run, b: Run, batch: int) -> None:
    st.markdown(say("likely"))
    found = predictions(a, b, batch=batch)
    rows, _ = a.axes("probabilities")
    changed = sum(prediction.changed for prediction in found)
    st.caption(
        say("n_changed", count=changed, total=len(found)) if changed else say("none_changed", total=len(found))
    )
    widgets.table(
        {
            say("token"): [f"{i} {label}" for i, label in enumerate(rows.labels)],
            "A": [_listed(prediction.before) for prediction in found],
            "B": [_listed(prediction.after) for prediction in found],
            say("is_changed"): [say("yes") if prediction.changed else "" for prediction in found],
        },
        height="content" if len(found) <= MOST_ROWS_WHOLE else "auto",
    )


def _listed(likely: tuple[tuple[str, float], ...]) -> str:
    return ",  ".join(f"{label} {percent(share, 1)}" for label, share in likely)
