"""The controls: text, model, heads and masks, the rest under "More". What cannot be combined is not offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from model.texts import texts_of
from visualizer.glossary import masks_explained
from visualizer.page.header import is_walked
from visualizer.settings.dials import SIZES, has_masks_in_picture
from visualizer.settings.fields import MAX_ORDER, PRETRAINED, TRAINED, WORKED_EXAMPLES
from visualizer.settings.fitting import offered, widths
from visualizer.settings.lines import lines_of
from visualizer.settings.settings import FIELDS, Selection, Settings, in_mask_order
from visualizer.settings.sources import VIEWS_OF
from visualizer.settings.trained_models import CONTINUED, TRAINED_MODELS
from visualizer.state import state, widgets
from visualizer.state.controls import give
from visualizer.state.state import Choices

say = texts_of(__name__)


@dataclass(frozen=True)
class Line:
    """One element of the sidebar. Equal ones look the same, but for the value of the setting.

    Attributes:
        draw: what draws it.
        given: what it is given.
        named: what it is given by name.
        field: the setting whose control it is; "" where it is none.
    """

    draw: Callable[..., object]
    given: tuple[object, ...] = ()
    named: tuple[tuple[str, object], ...] = ()
    field: str = ""


@dataclass(frozen=True)
class Lines:
    """The elements of the sidebar: those that are always in sight, and those under "More"."""

    always: tuple[Line, ...]
    more: tuple[Line, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The settings that have a control."""
        return tuple(line.field for line in (*self.always, *self.more) if line.field)


def title() -> None:
    """The name above the controls; with it the sidebar takes its place, so that nothing is moved by it later."""
    st.sidebar.markdown("## :material/highlight: Headlight")


def controls(lines: Lines, changed: Callable[[str, object], None]) -> None:
    """Draw the controls below the title; they show what is chosen.

    Args:
        lines: what stands there.
        changed: called with a setting's name and its new value when a person changed its control, in a callback.
    """
    with st.sidebar:
        draw(lines.always, changed)
        if lines.more:
            with st.expander(say("more"), icon=":material/tune:", key="more"):
                draw(lines.more, changed)


def draw(lines: Sequence[Line], changed: Callable[[str, object], None]) -> None:
    """Draw controls where they are to stand; ``changed`` as above."""
    for line in lines:
        heard = {"on_change": _on_change(line.field, changed)} if line.field else {}
        line.draw(*line.given, **dict(line.named), **heard)


def _on_change(name: str, changed: Callable[[str, object], None]) -> Callable[[], None]:
    def take(value: object) -> None:
        if name == "text":
            _retype(value)
        changed(name, value)

    return state.on_change(name, take)


def lines_for(settings: Settings, selection: Selection, of_source: tuple[Line, ...] = ()) -> Lines:
    """The lines below the title: none while the guided path is walked, which has the texts beside its card.

    ``of_source`` are the controls of a model that was not built here.
    """
    if is_walked(selection):
        return Lines(())
    if selection.source != "built":
        return Lines((_model(settings, selection), *of_source))
    return _lines(settings, selection)


def lines_of_source(choices: Choices) -> tuple[Line, ...]:
    """The controls of a model that was not built here, with what they look like at this moment."""
    settings, selection = choices.settings, choices.selection
    if selection.source != "pretrained":
        return ()
    from visualizer.views.watched.pretrained import controls  # brings torch, which the page does without

    kind = controls.kind_of_open(settings)
    return (Line(controls.draw, (settings, kind)), *(() if kind is None else _masks(settings, selection)))


def texts_for(settings: Settings, selection: Selection) -> tuple[Line, ...]:
    """The texts of a person alone; none where they are given."""
    return tuple(line for line in _lines(settings, selection).always if line.field in ("text", "target"))


def _lines(settings: Settings, selection: Selection) -> Lines:
    if selection.view == "train":
        return Lines((_caption(say("training_apart")),))
    model = _model(settings, selection)
    if settings.weights in WORKED_EXAMPLES:
        return Lines((model, _caption(say("all_given"))))
    text = _control(widgets.text, "text", height=92, help=None)
    masks = _masks(settings, selection)
    order = Line(_order, (settings.order,))
    if settings.weights == TRAINED:
        is_answered = settings.architecture != "encoder" and settings.task not in CONTINUED
        answered = [_caption(say("answered"))] if is_answered else []
        here = [_caption(say("trained_here"))] if settings.checkpoint else []
        heads = Line(_other_heads, (settings.n_heads,))
        always = (model, *here, text, *answered, *masks)
        return Lines(always, (heads, *_padding(settings), _control(widgets.choice, "fault")))
    target = [_control(widgets.text, "target", height=68)]
    always = (
        model,
        text,
        *([order] if settings.order else []),
        *(target if settings.architecture == "encoder-decoder" else []),
        _control(widgets.choice, "architecture"),
        *([] if has_masks_in_picture(settings, selection) else [_control(widgets.slider, "n_heads")]),
        *_other_width(settings, selection),
        *masks,
    )
    return Lines(always, (*([] if settings.order else [order]), *_more(settings)))


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


def _control(draw: Callable[..., object], name: str, *given: object, **named: object) -> Line:
    return Line(draw, (name, *given), tuple(named.items()), name)


def _caption(sentence: str) -> Line:
    return Line(st.caption, (sentence,))


def _other_width(settings: Settings, selection: Selection) -> list[Line]:
    """That the model is not as wide as was asked for, where it is not."""
    if not (width := selection.asked_width):
        return []
    return [_caption(say("other_width", n_heads=settings.n_heads, asked=width, width=settings.d_model))]


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
    settings, selection = state.chosen().settings, state.chosen().selection
    if settings.weights == PRETRAINED:
        return
    if len(lines_of(str(text))) > 1 and len(lines_of(settings.text)) == 1:
        state.change(mask=(*settings.mask, "padding"))
        state.select(
            mask_a=in_mask_order((*selection.mask_a, "padding")),
            mask_b=in_mask_order((*selection.mask_b, "padding")),
        )


def _model(settings: Settings, selection: Selection) -> Line:
    """The choice of the model, which stands first."""
    of_weights = settings.task if settings.weights == TRAINED else settings.weights
    return Line(_choose_model, (of_weights if selection.source == "built" else selection.source,))


def _choose_model(chosen: str) -> None:
    """The choice: trained on a task, with hand-built or random weights, a worked example, or of another source."""
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


def _more(settings: Settings) -> tuple[Line, ...]:
    has_layers = settings.architecture != "attention"
    possible = widths(1 if settings.head_dim else settings.n_heads, settings.d_model)
    d_out = _control(widgets.option, "d_out", offered("d_out", settings.d_out), zero=say("model_width"))
    return (
        _control(widgets.segments, "tokens"),
        *(_depths(settings) if has_layers else []),
        _control(widgets.option, "d_model", possible),
        _control(widgets.option, "head_dim", offered("head_dim", settings.head_dim), zero=say("width_shared")),
        *(_feed_forward_and_norms(settings) if has_layers else [d_out]),
        _control(widgets.segments, "positions"),
        *_padding(settings),
        *([_control(widgets.number, "seed")] if settings.weights == "random" else []),
        *(_control(widgets.switch, name) for name in ("scale_scores", "fused_qkv", "qkv_bias", "output_bias")),
        *([_control(widgets.switch, "unembedding_bias")] if has_layers else []),
        _control(widgets.slider, "dropout", step=0.05),
        _control(widgets.choice, "fault"),
    )


def _depths(settings: Settings) -> list[Line]:
    layers = _control(widgets.slider, "n_layers")
    if settings.architecture != "encoder-decoder":
        return [layers]
    possible = tuple(range(int(FIELDS["n_decoder_layers"].most) + 1))
    of_decoder = _control(widgets.option, "n_decoder_layers", possible, zero=say("as_many"))
    return [layers, of_decoder, _control(widgets.switch, "shared_vocabulary")]


def _feed_forward_and_norms(settings: Settings) -> list[Line]:
    return [
        _control(widgets.option, "d_ff", offered("d_ff", settings.d_ff)),
        _control(widgets.segments, "activation"),
        _control(widgets.segments, "norm"),
        *([_control(widgets.switch, "final_norm")] if settings.norm == "post" else []),
        _control(widgets.option, "layer_norm_eps", offered("layer_norm_eps", settings.layer_norm_eps)),
    ]


def _padding(settings: Settings) -> list[Line]:
    side = [_control(widgets.segments, "pad_side")]
    return [_control(widgets.number, "pad"), *(side if settings.pad else [])]


def _chosen_masks(selection: Selection) -> list[Line]:
    """The masks of the model; those that are compared stand above their grids, while these are on the page."""
    if selection.view != "compare":
        return [_control(widgets.mask_pills, "mask", help=masks_explained())]
    if not selection.hidden:
        return [_caption(say("masks_beside"))]
    return [_control(widgets.mask_pills, "mask_a"), _control(widgets.mask_pills, "mask_b")]


def _masks(settings: Settings, selection: Selection) -> list[Line]:
    """The masks, and the sizes of those that have one."""
    if has_masks_in_picture(settings, selection):
        return [_caption(say("masks_in_picture") if settings.weights == PRETRAINED else say("in_picture"))]
    is_compared = selection.view == "compare"
    in_use = {*selection.mask_a, *selection.mask_b} if is_compared else {*settings.mask}
    return [
        *_chosen_masks(selection),
        *([_caption(say("masks_of_decoder"))] if settings.architecture == "encoder-decoder" else []),
        *(_control(widgets.number, size) for mask, size in SIZES.items() if mask in in_use),
    ]
