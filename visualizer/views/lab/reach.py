"""Reach: which token can influence which after each layer, beside what is measured."""

from __future__ import annotations

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.analysis.reach import first_layer_reached, reach
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.paths import without_layer
from visualizer.safe_text import markdown_safe
from visualizer.session.mount import mount
from visualizer.views.lab.case import Case
from visualizer.views.lab.measure import measurement_of
from visualizer.views.lab.outputs import influence_panel


def render(case: Case) -> None:
    """Draw after how many layers each token is reached, and for one layer what may pass and what does."""
    kind = without_layer(case.module)
    masks = [mask.allowed for path, mask in case.run.promised.items() if without_layer(path) == kind]
    reached = reach(masks, len(case.tokens))
    _in_words(case, reached[case.selection.layer].numpy(), len(masks))
    panels = [_steps_panel(case, first_layer_reached(reached).numpy(), len(masks))]
    measurement = measurement_of(case, case.sequence)
    if measurement is not None:
        layer = case.selection.layer
        may = reached[layer].numpy()
        norms = measurement.influence.norms[layer].numpy()
        panels.append(
            influence_panel(
                case.run,
                f"Measured after layer {layer}",
                norms,
                ~may & (norms == 0),
                "the masks: no way leads here",
                sequence=case.sequence,
                subtitle="norm of the Jacobian",
            )
        )
    mount(tensor_grid(panels, key="reach", layout="wrap"))
    if measurement is not None:
        _agreement(may, norms)


def _in_words(case: Case, may: NDArray[np.bool_], n_layers: int) -> None:
    selection = case.selection
    row = may[selection.query]
    label = markdown_safe(case.tokens.labels[selection.query])
    tokens = np.flatnonzero(row)
    st.markdown(
        f"After layer {selection.layer} (of {n_layers}), query {selection.query} “{label}” can depend on "
        f"**{len(tokens)} of {len(row)}** tokens, the furthest {int(np.abs(tokens - selection.query).max())} away."
    )


def _steps_panel(case: Case, steps: NDArray[np.int64], n_layers: int) -> Panel:
    rows, columns = case.axes
    return Panel(
        name="layers",
        title="Layers until it is reached",
        subtitle="0 is the token itself",
        array=np.maximum(steps, 0).astype(np.float32),
        rows=rows,
        columns=columns,
        role="residual",
        palette="sequential",
        bounds=(0.0, float(n_layers)),
        blocked=(steps < 0).astype(np.uint8),
        blocked_by=("the masks: no way leads here",),
    )


def _agreement(may: NDArray[np.bool_], norms: NDArray[np.floating]) -> None:
    """Whether the measured influence stays within the reach."""
    outside, n_passing = int((norms[~may] != 0).sum()), int((norms[may] != 0).sum())
    n_inside = int(may.sum())
    if outside:
        st.error(f"{outside:,} cells without a way are not zero: the masks are not what the model was given.")
        return
    st.caption(
        f":material/check: Every cell without a way measures exactly 0; of the {n_inside:,} with one, "
        f"{n_passing:,} measure more than 0."
    )
