"""The positional encoding: its dimensions over the positions, and the likeness of two positions by distance."""

from __future__ import annotations

import numpy as np
import streamlit as st

from model.texts import texts_of
from visualizer.runs.run import Run
from visualizer.stages.derivations import Cell
from visualizer.stages.panels import is_text, matrix
from visualizer.state.theme import theme

say = texts_of(__name__)

ALIKE = 1e-4
"""The largest relative difference of dot products at one distance that still counts as one number."""


def draw(run: Run, cell: Cell) -> None:
    """Draw the chart for the stage ``positional_encoding``."""
    from visualizer.figures.position_curves import position_curves, product_curve, products_by_distance
    from visualizer.figures.styling import config  # figures bring Plotly, which no other chart waits for

    tokens, _ = run.axes(cell.path)
    encoding = matrix(run.trace[cell.path].value, head=cell.head, batch=cell.batch)
    if not encoding.any():
        st.caption(say("all_zero"))
        return
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption(say("dimensions", selected=cell.column))
        figure = position_curves(encoding, tokens.labels, selected=cell.column, theme=theme())
        alt = say("dimensions_alt", n_curves=len(figure.data), n_positions=len(encoding))
        st.plotly_chart(figure, key="chart_positions", config=config("positions"), alt=alt)
    with right:
        products = products_by_distance(encoding[is_text(run, cell.path)])
        st.caption(_said(*products))
        figure = product_curve(*products, theme=theme())
        st.plotly_chart(figure, key="chart_products", config=config("position-products"), alt=say("products_alt"))


def _said(mean: np.ndarray, least: np.ndarray, greatest: np.ndarray) -> str:
    if (greatest - least).max() <= ALIKE * np.abs(mean).max():
        return say("same_products")
    return say("other_products")
