"""Reach: which token can influence which after each layer, beside what is measured."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from torch import Tensor

from model.analysis.reach import first_layer_reached, reach
from model.texts import texts_of
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.paths import of_every_layer
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.fields import FAULTS_OF_MASKS
from visualizer.views.lab import measure_checkpoint as of_checkpoint
from visualizer.views.lab.case import Case
from visualizer.views.lab.measure import measurement_of
from visualizer.views.lab.outputs import influence_panel

say = texts_of(__name__)


def render(case: Case) -> None:
    """Draw after how many layers each token is reached, and for one layer what may pass and what does."""
    is_checkpoint = bool(case.run.attentions)
    if is_checkpoint:
        case = of_checkpoint.in_its_line(case, case.attention)
    if case.attention.crosses and not of_every_layer(case.run.promised, "encoder.self_attention"):
        st.info(say("encoder_unknown"))
        return
    layer, reached = case.selection.layer, reached_in(case)
    _in_words(case, reached[layer].numpy(), len(reached))
    steps = first_layer_reached(reached, begins_with_itself=not case.attention.crosses)
    panels = [_steps_panel(case, steps.numpy())]
    if not is_checkpoint:
        measurement = measurement_of(case, case.attention.keys)
    else:  # it is measured by the tokens that the layer has rows of: never by those of the source
        measurement = None if case.attention.crosses else of_checkpoint.measurement_of(case, of_layer=True)
    if measurement is not None:
        may = reached[layer][measurement.measured].numpy()
        norms = measurement.influence.norms[0 if is_checkpoint else layer].numpy()
        panels.append(
            influence_panel(
                case,
                measurement.rows,
                say("measured", layer=layer),
                norms,
                ~may & (norms == 0),
                say("blocked_by"),
                sequence=case.attention.keys,
                subtitle=say("in_a_direction") if is_checkpoint else say("norm"),
            )
        )
    mount(tensor_grid(panels, key="reach", layout="wrap"))
    if measurement is not None:
        _agreement(case.run, may, norms)


def reached_in(case: Case) -> Tensor:
    """Return the rows that can depend on each token after each layer, (L, Tq, Tk) bool, as far as the masks allow.

    Of self-attention by its masks alone; of cross-attention which tokens of the source, by its masks, the encoder's
    and those of the decoder's own attention.
    """
    masks = {path: mask.allowed for path, mask in case.run.promised.items()}
    if not case.attention.crosses:
        return reach(of_every_layer(masks, case.attention.path), case.size[0])
    of_source, own = (of_every_layer(masks, f"{stack}.self_attention") for stack in ("encoder", "decoder"))
    n_target, n_source = case.size
    of_keys, cross = reach(of_source, n_source)[-1], of_every_layer(masks, case.attention.path)
    return reach(own, n_target, cross=cross, of_keys=of_keys)


def _in_words(case: Case, may: NDArray[np.bool_], n_layers: int) -> None:
    selection = case.selection
    row = may[selection.query]
    tokens = np.flatnonzero(row)
    st.markdown(
        say(
            "depends",
            layer=selection.layer,
            n_layers=n_layers,
            query=selection.query,
            label=markdown_safe(case.queries.labels[selection.query]),
            n_reached=len(tokens),
            n_tokens=len(row),
            what=say("of_source")
            if case.attention.crosses
            else say("of_text", furthest=int(np.abs(tokens - selection.query).max())),
        )
    )


def _steps_panel(case: Case, steps: NDArray[np.int64]) -> Panel:
    rows, columns = case.axes
    return Panel(
        name="layers",
        title=say("steps"),
        subtitle=say("of_decoder") if case.attention.crosses else say("of_itself"),
        array=np.maximum(steps, 0).astype(np.float32),
        rows=rows,
        columns=columns,
        role="residual",
        palette="sequential",
        bounds=(0.0, float(max(1, steps.max()))),
        blocked=(steps < 0).astype(np.uint8),
        blocked_by=(say("blocked_by"),),
    )


def _agreement(run: Run, may: NDArray[np.bool_], norms: NDArray[np.floating]) -> None:
    """Say whether the measured influence stays within the reach."""
    outside, n_passing = int((norms[~may] != 0).sum()), int((norms[may] != 0).sum())
    if outside:
        is_edit = bool(run.interventions) and run.settings.fault not in FAULTS_OF_MASKS
        st.error(say("disagrees", n_cells=outside, why=say("by_edit") if is_edit else say("by_masks")))
        return
    st.caption(say("agrees", n_inside=int(may.sum()), n_passing=n_passing))
