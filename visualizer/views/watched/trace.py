"""A trace of any model, wherever it came from: what is wrong with it, and each attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from headlight.attention import Attention
from headlight.masks.mask_case import Finding, Severity
from headlight.report import cells_of, named, said_once
from model.texts import texts_of
from visualizer.components.attention_heads.element import attention_heads
from visualizer.components.tensor_grid.element import tensor_grid
from visualizer.pictures.watched_heads import BLOCKED_BY, WatchedHeads
from visualizer.runs.watched import WatchedRun, n_items
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.server.mount import mount
from visualizer.settings.looks import looks_in, looks_of
from visualizer.settings.sources import Panel
from visualizer.state import state, widgets
from visualizer.state.state import Choices
from visualizer.views.watched import compare, way
from visualizer.views.watched.panels import panel_of
from visualizer.views.watched.window import choose_window, chosen_heads

say = texts_of(__name__)
_ICONS: dict[Severity, str] = {
    "error": ":red[:material/error:]",
    "warning": ":orange[:material/warning:]",
    "note": ":material/info:",
}
_FEW = 4
_OF_ONE_ATTENTION = ("heads", "compare")
_KEEPS_ALL = 'with headlight.watch(model, keep="all") as trace:\n    model(**batch)'


def show_trace(
    run: WatchedRun, choices: Choices, panels: Mapping[Panel, Callable[[WatchedRun, Choices], None]]
) -> None:
    """Draw a trace: what is wrong with it, the attention that is chosen, then the verdict and the list of all.

    Args:
        run: the trace, and what is known of its tokens. The same object gives what was computed of it before.
        choices: what is looked at in it is in ``choices.watched``, how heads are drawn in ``choices.selection``.
        panels: what draws a panel that is not of one attention.
    """
    panel = panel_of(choices)
    if not run.trace and panel != "operations":
        st.info(say("no_attention"), icon=":material/info:")
        _notes(run)
        return
    if missing := _missing(run, panel):
        st.info(missing, icon=":material/info:")
        st.code(_KEEPS_ALL, language="python")
        return
    attention = run.attention(choices.watched.watched_attention) if run.trace else None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="watched_panels"):
        if panel in _OF_ONE_ATTENTION and attention is not None:
            _pick(run, attention)
        elif panel == "way":
            way.choose(run, choices)
    if panel in panels:
        panels[panel](run, choices)
    elif attention is not None:
        _of_one_attention(run, attention, choices)


def _missing(run: WatchedRun, panel: Panel) -> str:
    """Say what a panel needs and the trace does not have; "" where it has all."""
    if panel == "operations" and not run.trace.stages:
        return say("no_operations")
    if panel == "compare" and all(attention.query is None for attention in run.trace):
        return say("no_queries")
    return ""


def _of_one_attention(run: WatchedRun, attention: Attention, choices: Choices) -> None:
    said = said_once(run.findings)
    errors = [each for each in said if each[1].severity == "error"][:_FEW]
    for paths, finding in errors:
        _finding(paths, finding)
    if panel_of(choices) == "compare":
        compare.render(run, attention, choices)
    else:
        _attention(run, attention, choices)
    _about(run, attention, choices)
    verdict, table = st.columns([2, 3], gap="medium")
    with verdict:
        _verdict(run, [each for each in said if each not in errors])
    with table:
        _table(run)


def _summary(run: WatchedRun) -> str:
    """Say what holds of all attentions, as a line of Markdown."""
    return f"**{attentions_that_look_ahead(len(run.looking_ahead), len(run.trace))}** {_counts(run)}"


def attentions_that_look_ahead(n_ahead: int, n_seen: int) -> str:
    """Say how many of ``n_seen`` attentions see later tokens."""
    if n_seen == 1:
        return say("it_sees_later") if n_ahead else say("it_sees_none")
    if n_ahead in (0, n_seen):
        return say("all_see_later", n_seen=n_seen) if n_ahead else say("none_sees_later", n_seen=n_seen)
    one, some = say("one_sees_later", n_seen=n_seen), say("some_see_later", n_ahead=n_ahead, n_seen=n_seen)
    return one if n_ahead == 1 else some


def _verdict(run: WatchedRun, said: Sequence[tuple[tuple[str, ...], Finding]]) -> None:
    """Say what holds of all attentions, then what was found and not said yet."""
    st.markdown(_summary(run))
    for paths, finding in said[:_FEW]:
        _finding(paths, finding)
    if n_more := len(said[_FEW:]) + len(run.notes):
        with st.expander(say("one_more") if n_more == 1 else say("more", n_more=n_more)):
            for paths, finding in said[_FEW:]:
                _finding(paths, finding)
            _notes(run)


def _counts(run: WatchedRun) -> str:
    found = [finding.severity for _, finding in run.findings]
    n_errors, n_warnings = found.count("error"), found.count("warning")
    errors = say("one_error") if n_errors == 1 else say("errors", n_errors=n_errors)
    warnings = say("one_warning") if n_warnings == 1 else say("warnings", n_warnings=n_warnings)
    parts = [part for part, count in ((errors, n_errors), (warnings, n_warnings)) if count]
    return f"{', '.join(parts)}." if parts else say("nothing_found")


def _finding(paths: tuple[str, ...], finding: Finding) -> None:
    head = f"{named(paths)}: {finding.title}"
    st.markdown(f"{_ICONS[finding.severity]} **{markdown_safe(head)}.** {markdown_safe(finding.why)}")
    st.caption(markdown_safe(finding.mend))


def _notes(run: WatchedRun) -> None:
    for note in run.notes:
        st.caption(f":material/info: {markdown_safe(note)}")


def _table(run: WatchedRun) -> None:
    """Every attention in words; a click on a line shows it."""
    paths, heads, sizes, masks, biases = zip(*map(cells_of, run.judged), strict=True)
    worst = [judged.findings[0].title if judged.findings else "" for judged in run.judged]
    columns = {
        say("attention"): [visible_whole(path) for path in paths],
        say("heads"): heads,
        say("sizes"): sizes,
        say("mask"): masks,
        say("bias"): biases,
        say("finding"): worst,
    }
    key = "watched_table"

    def choose(event: object) -> None:
        rows = getattr(getattr(event, "selection", None), "rows", ())
        if rows:
            state.watch(watched_attention=run.trace.paths[rows[0]])

    st.dataframe(
        {name: cells for name, cells in columns.items() if any(cells)},
        hide_index=True,
        height=min(38 + 35 * len(run.trace), 178),
        selection_mode="single-row",
        on_select=state.on_change(key, choose),
        key=key,
    )


def _pick(run: WatchedRun, attention: Attention) -> None:
    """The attention and, of a batch, the sequence."""
    paths = list(run.trace.paths)
    st.selectbox(
        say("attention"),
        paths,
        index=paths.index(attention.path),
        format_func=visible_whole,
        label_visibility="collapsed",
        width=300,
        **widgets.following("attention_of_trace", attention.path, lambda one: state.watch(watched_attention=one)),
    )
    if n_items(attention) > 1 and not run.item_is_chosen:
        widgets.number("watched_item", width=130)


def _about(run: WatchedRun, attention: Attention, choices: Choices) -> None:
    """The attention in words."""
    heads, sizes, mask, bias = cells_of(run.judged_of(attention))[1:]
    parts = [heads, sizes, say("its_mask", mask=mask), bias, _exactness(attention)]
    st.caption(" · ".join(markdown_safe(part) for part in parts if part))
    if choices.watched.watched_item >= n_items(attention):
        st.caption(say("last_sequence", n_sequences=n_items(attention)))


def _exactness(attention: Attention) -> str:
    """Say how far the weights that are drawn are from what the model went on with."""
    if attention.difference is None:
        return ""
    return say("within", difference=attention.difference) if attention.difference else say("exactly")


def _attention(run: WatchedRun, attention: Attention, choices: Choices) -> None:
    if attention.weights is None:
        st.info(say("no_weights"), icon=":material/info:")
        return
    picture = chosen_heads(run, attention.path, choices)
    head = min(choices.watched.watched_head, picture.weights.shape[1] - 1)
    choose_window(picture, head, choices)
    _heads(picture, head, choices)
    if panels := picture.panels(head):
        mount(tensor_grid(panels, layout="wrap", key="watched_mask"))


def _heads(picture: WatchedHeads, head: int, choices: Choices) -> None:
    watched = choices.watched

    def show(event: object) -> None:
        layer = min(state.index_in(event, "layer"), len(picture.drawn) - 1)
        state.watch(watched_attention=picture.drawn[layer].path, watched_head=state.index_in(event, "head"))
        state.select(**looks_in(event))

    def choose_cell(event: object) -> None:
        show(event)
        query, place = state.index_in(event, "query"), state.index_in(event, "key")
        state.watch(watched_query=picture.first_query + query, watched_key=picture.first_key + place)

    key = "watched_heads"
    _, _, n_queries, n_keys = picture.attention.shape
    cell = picture.cell(min(watched.watched_query, n_queries - 1), min(watched.watched_key, n_keys - 1))
    mount(
        attention_heads(
            picture.weights,
            blocked=picture.blocked,
            blocked_by=BLOCKED_BY,
            rows=picture.rows,
            columns=picture.columns,
            head_names=picture.head_names,
            layer_names=picture.names,
            layer=picture.layer,
            head=head,
            query=None if cell is None else cell[0],
            key_index=None if cell is None else cell[1],
            looks=looks_of(choices.selection),
            key=key,
            seq=state.last_seq(key),
        ),
        select=choose_cell,
        shown=show,
    )
