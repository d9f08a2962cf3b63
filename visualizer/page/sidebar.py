"""The controls: five for a newcomer, the rest under "More". What cannot be combined is not offered."""

from __future__ import annotations

from typing import Any

import streamlit as st

from model.names import MASK_NAMES
from visualizer.components.words import words
from visualizer.glossary import Piece, mask_piece
from visualizer.page.worked_examples_menu import worked_examples
from visualizer.session import state, widgets
from visualizer.session.mount import mount
from visualizer.session.state import Choices
from visualizer.settings.dials import SIZES
from visualizer.settings.fields import MAX_ORDER, TRAINED, WORKED_EXAMPLES
from visualizer.settings.fitting import offered, widths
from visualizer.settings.lines import lines_of
from visualizer.settings.settings import FIELDS, Selection, Settings, in_mask_order
from visualizer.settings.trained_models import TRAINED_MODELS


def title() -> None:
    """The name above the controls; with it the sidebar takes its place, so that nothing is moved by it later."""
    st.sidebar.markdown("## :material/highlight: Headlight")


def controls(choices: Choices) -> None:
    """Draw the controls below the title; their values are in the state before this is called."""
    settings, selection = choices.settings, choices.selection
    with st.sidebar:
        if selection.view == "train":
            st.caption("A training has settings of its own: they stand beside it. What was chosen here is kept.")
            return
        if selection.view == "watched":
            st.caption("Another model is looked at: nothing that is chosen here is in it. What was chosen is kept.")
            return
        if settings.weights in WORKED_EXAMPLES:
            _choice_of_weights("weights", settings)
            worked_examples(settings, selection.view)
            st.caption(
                "A published worked example: its inputs, weights and mask are given, so there is nothing else to "
                "choose. Take other weights to type a text of your own."
            )
            return
        widgets.text(
            "text", height=92, on_change=state.on_change("text", lambda text: _retype(settings, selection, text))
        )
        if settings.weights == TRAINED:
            _trained(settings, selection)
            return
        _order(settings)
        if settings.architecture == "encoder-decoder":
            widgets.text("target", height=68)
        widgets.choice("architecture")
        _choice_of_weights("weights", settings)
        worked_examples(settings, selection.view)
        widgets.slider("n_heads")
        if width := selection.asked_width:
            st.caption(
                f":material/swap_horiz: {settings.n_heads} heads cannot share a width of {width} evenly, so the "
                f"model is {settings.d_model} wide. It is {width} again as soon as the heads can share that."
            )
        _masks(settings, selection)
        with st.expander("More", icon=":material/tune:"):
            _more(settings)


def _trained(settings: Settings, selection: Selection) -> None:
    """The controls of a model that was trained: its sizes are what they are."""
    if settings.architecture != "encoder":
        st.caption("What follows the text is what the model itself writes.")
    _choice_of_weights("weights", settings)
    worked_examples(settings, selection.view)
    _choice_of_weights("task", settings)
    if settings.checkpoint:
        st.caption("This model was trained here, under Train.")
    _masks(settings, selection)
    with st.expander("More", icon=":material/tune:"):
        _padding(settings)
        widgets.choice("fault")


def _order(settings: Settings) -> None:
    """The way to another order of the tokens, and back."""
    with st.container(horizontal=True, gap="small", key="order_of_tokens"):
        st.button(
            "Shuffle",
            icon=":material/shuffle:",
            key="shuffle",
            help="Put the tokens of the text in another order, and see whether the model can tell.",
            on_click=state.change,
            kwargs={"order": settings.order % MAX_ORDER + 1},
            type="tertiary",
        )
        if settings.order:
            st.button(
                "As typed",
                icon=":material/undo:",
                key="as_typed",
                on_click=state.change,
                kwargs={"order": 0},
                type="tertiary",
            )


def _retype(settings: Settings, selection: Selection, text: str) -> None:
    """Another text: when one line becomes several, the padding mask comes with them, as in practice."""
    if len(lines_of(text)) > 1 and len(lines_of(settings.text)) == 1:
        state.change(mask=(*settings.mask, "padding"))
        state.select(
            mask_a=in_mask_order((*selection.mask_a, "padding")),
            mask_b=in_mask_order((*selection.mask_b, "padding")),
        )


def _take(weights: str, task: str, pad: int) -> None:
    """Other weights or another task: a model that was trained comes with a text and the masks that it knows."""
    if weights == TRAINED:
        trained = TRAINED_MODELS[task]
        state.change(weights=weights, task=task, checkpoint="", text=trained.example, mask=trained.masks(pad > 0))


def _more(settings: Settings) -> None:
    has_layers = settings.architecture != "attention"
    widgets.segments("tokens")
    if has_layers:
        _depths(settings)
    possible = widths(1 if settings.head_dim else settings.n_heads, settings.d_model)
    widgets.option("d_model", possible)
    widgets.option("head_dim", offered("head_dim", settings.head_dim), zero="model width / heads")
    if has_layers:
        _feed_forward_and_norms(settings)
    else:
        widgets.option("d_out", offered("d_out", settings.d_out), zero="model width")
    widgets.segments("positions")
    _padding(settings)
    if settings.weights == "random":
        widgets.number("seed")
    widgets.switch("scale_scores")
    widgets.switch("fused_qkv")
    widgets.switch("qkv_bias")
    widgets.switch("output_bias")
    if has_layers:
        widgets.switch("unembedding_bias")
    widgets.slider("dropout", step=0.05)
    widgets.choice("fault")


def _depths(settings: Settings) -> None:
    widgets.slider("n_layers")
    if settings.architecture == "encoder-decoder":
        widgets.option("n_decoder_layers", range(int(FIELDS["n_decoder_layers"].most) + 1), zero="as many")
        widgets.switch("shared_vocabulary")


def _feed_forward_and_norms(settings: Settings) -> None:
    widgets.option("d_ff", offered("d_ff", settings.d_ff))
    widgets.segments("activation")
    widgets.segments("norm")
    if settings.norm == "post":
        widgets.switch("final_norm")
    widgets.option("layer_norm_eps", offered("layer_norm_eps", settings.layer_norm_eps))


def _padding(settings: Settings) -> None:
    widgets.number("pad")
    if settings.pad:
        widgets.segments("pad_side")


def _masks(settings: Settings, selection: Selection) -> None:
    """The masks, and the sizes of those that have one."""
    if selection.view == "compare":
        st.caption("The masks A and B are chosen beside the pictures.")
        in_use = {*selection.mask_a, *selection.mask_b}
    else:
        widgets.mask_pills("mask")
        in_use = set(settings.mask)
    if settings.architecture == "encoder-decoder":
        st.caption(
            "They mask the decoder's self-attention; padding also masks the encoder and the cross-attention, and "
            "each of the three can be painted."
        )
    _mask_words()
    for mask, size in SIZES.items():
        if mask in in_use:
            widgets.number(size)


def _mask_words() -> None:
    """The names of the masks once more, as words that open the glossary: a pill can only be pressed."""
    line = [Piece("Explained: ")]
    for name in MASK_NAMES:
        line += [mask_piece(name), Piece(" · ")]
    mount(words([line[:-1]], look="small", key="mask_words"))


def _choice_of_weights(name: str, settings: Settings) -> None:
    """The choice of ``weights``, or of the ``task`` of those that were trained.

    Worked examples have a menu of their own; the one in use is among the weights, so that others can be taken.
    """
    chosen: dict[str, Any] = {"weights": settings.weights, "task": settings.task, "pad": settings.pad}
    take = state.on_change(name, lambda value: _take(**{**chosen, name: value}))
    possible = [
        value for value in FIELDS[name].choices if value not in WORKED_EXAMPLES or value == settings.weights
    ]
    widgets.choice(name, possible, on_change=take)
