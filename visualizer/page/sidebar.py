"""The controls: text, model, heads and masks, the rest under "More". What cannot be combined is not offered."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from model.texts import texts_of
from visualizer.glossary import masks_explained
from visualizer.page.header import failure_said, is_walked
from visualizer.settings.dials import SIZES, has_masks_in_picture
from visualizer.settings.fields import MAX_ORDER, PRETRAINED, TRAINED, WORKED_EXAMPLES
from visualizer.settings.fitting import offered, widths
from visualizer.settings.lines import lines_of
from visualizer.settings.settings import FIELDS, Selection, Settings, in_mask_order
from visualizer.settings.sources import VIEWS_OF
from visualizer.settings.trained_models import CONTINUED, TRAINED_MODELS
from visualizer.state import state, widgets
from visualizer.state.widget_values import give

say = texts_of(__name__)


def title() -> None:
    """The name above the controls; with it the sidebar takes its place, so that nothing is moved by it later."""
    st.sidebar.markdown("# :material/highlight: Headlight")


@failure_said()
def controls() -> None:
    """Draw the controls below the title: none while the guided path is walked, which has the texts beside it."""
    settings, selection = state.chosen().settings, state.chosen().selection
    if is_walked(selection):
        return
    with st.sidebar:
        if selection.view == "train":
            st.caption(say("training_apart"))
            return
        _choose_model(settings, selection)
        if selection.source == "pretrained":
            _of_checkpoint(settings, selection)
        elif selection.source == "built":
            _of_built(settings, selection)


def _of_checkpoint(settings: Settings, selection: Selection) -> None:
    from visualizer.views.watched.pretrained import choosers  # brings torch, which the page does without

    kind = choosers.kind_of_open(settings)
    choosers.draw(settings, kind)
    if kind is not None:
        _masks(settings, selection)


def _of_built(settings: Settings, selection: Selection) -> None:
    if not has_texts(settings):
        st.caption(say("all_given"))
        return
    is_trained = settings.weights == TRAINED
    if is_trained and settings.checkpoint:
        st.caption(say("trained_here"))
    texts(settings)
    if is_trained:
        if settings.architecture != "encoder" and settings.task not in CONTINUED:
            st.caption(say("answered"))
    else:
        if settings.order:
            _order(settings.order)
        widgets.choice("architecture")
        if not has_masks_in_picture(settings, selection):
            widgets.slider("n_heads")
        _other_width(settings, selection)
    _masks(settings, selection)
    more = st.expander(say("more"), icon=":material/tune:", key=MORE, on_change="rerun")
    if not more.open:
        return
    with more:
        if is_trained:
            _other_heads(settings.n_heads)
            _padding(settings)
            widgets.choice("fault")
        else:
            _more(settings)


def has_texts(settings: Settings) -> bool:
    """True if a person chooses the texts; False where they are given."""
    return settings.weights not in WORKED_EXAMPLES


def texts(settings: Settings) -> None:
    """Draw the fields for the texts of a person alone."""
    widgets.text("text", height=92, help=None, on_change=state.on_change("text", _retype))
    if settings.weights != TRAINED and settings.architecture == "encoder-decoder":
        widgets.text("target", height=68)


MORE = "more"
"""The drawer of the settings that few change: they are drawn while it is open."""
MODEL = "model"
"""The menu of the models, which is no setting."""
_OTHERS: Mapping[str, str] = {name: FIELDS["source"].choices[name] for name in VIEWS_OF if name != "built"}
_WEIGHTS: Mapping[str, str] = {
    name: label for name, label in FIELDS["weights"].choices.items() if name not in (TRAINED, PRETRAINED)
}
_MODELS: Mapping[str, str] = {
    **{name: TRAINED_MODELS[name].title for name in ("small_english", "small_translator")},
    **{name: _WEIGHTS[name] for name in ("hand_built", "random")},
    **_OTHERS,
    **{name: trained.title for name, trained in TRAINED_MODELS.items()},
    **_WEIGHTS,
}
"""The names of the models: trained on a task, with given weights, of another source, or published."""


def _other_width(settings: Settings, selection: Selection) -> None:
    """Say that the model is not as wide as was asked for, where it is not."""
    if width := selection.asked_width:
        st.caption(say("other_width", n_heads=settings.n_heads, asked=width, width=settings.d_model))


def _order(order: int) -> None:
    """The way to another order of the tokens, and back."""
    with st.container(horizontal=True, gap="small", key="order_of_tokens"):
        st.button(
            say("shuffle"),
            icon=":material/shuffle:",
            key="shuffle",
            help=say("shuffle_help"),
            on_click=state.callback(state.change, order=order % MAX_ORDER + 1),
            type="tertiary",
        )
        if order:
            st.button(
                say("as_typed"),
                icon=":material/undo:",
                key="as_typed",
                on_click=state.callback(state.change, order=0),
                type="tertiary",
            )


def _retype(text: object) -> None:
    """Another text: when one line becomes several, the padding mask comes with them, as in practice."""
    before = state.chosen().settings
    if before.weights == PRETRAINED or len(lines_of(str(text))) == 1 or len(lines_of(before.text)) > 1:
        return
    now = state.now()  # a mask may have been pressed right after the text was typed
    state.change(mask=(*now.settings.mask, "padding"))
    compared = {name: (*getattr(now.selection.compare, name), "padding") for name in ("mask_a", "mask_b")}
    state.select(**{name: in_mask_order(names) for name, names in compared.items()})


def _choose_model(settings: Settings, selection: Selection) -> None:
    """The first choice: trained on a task, with other weights, a worked example, or of another source."""
    of_weights = settings.task if settings.weights == TRAINED else settings.weights
    chosen = of_weights if selection.source == "built" else selection.source
    offered = [name for name in _MODELS if name not in WORKED_EXAMPLES or name == chosen]
    st.selectbox(
        say("model"),
        offered,
        index=offered.index(chosen),
        format_func=_MODELS.__getitem__,
        key=give(MODEL, chosen),
        on_change=state.on_change(MODEL, _take),
    )


def _take(model: str) -> None:
    """Another model: one that was trained comes with a text and the masks that it knows."""
    for source in VIEWS_OF:
        if model == source:
            state.show_source(source)
            return
    state.show_source("built")
    if trained := TRAINED_MODELS.get(model):
        masks = trained.masks(state.chosen().settings.pad > 0)
        state.change(weights=TRAINED, task=model, checkpoint="", text=trained.example, mask=masks)
    else:
        state.change(weights=model, task=Settings().task)


def _other_heads(n_heads: int) -> None:
    """Say how many heads a trained model has, and offer a model that can have any number."""
    st.button(
        say("other_heads", n_heads=n_heads),
        key="other_heads",
        help=say("other_heads_help"),
        on_click=state.callback(_take, "hand_built"),
        type="tertiary",
    )


def _more(settings: Settings) -> None:
    has_layers = settings.architecture != "attention"
    if not settings.order:
        _order(settings.order)
    widgets.segments("tokens")
    if has_layers:
        _depths(settings)
    widgets.option("d_model", widths(1 if settings.head_dim else settings.n_heads, settings.d_model))
    widgets.option("head_dim", offered("head_dim", settings.head_dim), zero=say("width_shared"))
    if has_layers:
        _feed_forward_and_norms(settings)
    else:
        widgets.option("d_out", offered("d_out", settings.d_out), zero=say("model_width"))
    widgets.segments("positions")
    _padding(settings)
    if settings.weights == "random":
        widgets.number("seed")
    for name in ("scale_scores", "fused_qkv", "qkv_bias", "output_bias"):
        widgets.switch(name)
    if has_layers:
        widgets.switch("unembedding_bias")
    widgets.slider("dropout", step=0.05)
    widgets.choice("fault")


def _depths(settings: Settings) -> None:
    widgets.slider("n_layers")
    if settings.architecture == "encoder-decoder":
        possible = tuple(range(int(FIELDS["n_decoder_layers"].most) + 1))
        widgets.option("n_decoder_layers", possible, zero=say("as_many"))
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
    """The masks, and the sizes of those that have one.

    Those that are compared stand above their grids, while these are on the page.
    """
    if has_masks_in_picture(settings, selection):
        st.caption(say("masks_in_picture") if settings.weights == PRETRAINED else say("in_picture"))
        return
    if not selection.compares_masks:
        widgets.mask_pills("mask", help=masks_explained())
    elif selection.hidden:
        widgets.mask_pills("mask_a")
        widgets.mask_pills("mask_b")
    else:
        st.caption(say("masks_beside"))
    if settings.architecture == "encoder-decoder":
        st.caption(say("masks_of_decoder"))
    in_use = state.chosen().masks
    for mask, size in SIZES.items():
        if mask in in_use:
            widgets.number(size)
