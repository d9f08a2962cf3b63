"""The loss of the text that is asked, token by token, and the gradient that it sends into each layer."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from model.learning.sample_loss import SampleLoss, layer_of, sample_loss
from model.learning.tasks import PAD, TASKS, sequences
from model.learning.training import Recipe, texts_of_step
from model.texts import texts_of
from visualizer.safe_text import markdown_safe, visible_whole
from visualizer.views.train.controls import Look
from visualizer.views.train.one_moment import Moment

say = texts_of(__name__)

_PARTS = {
    "self_attention": say("self_attention"),
    "cross_attention": say("cross_attention"),
    "feed_forward": say("feed_forward"),
}
_NEARLY_ONE = 0.9999
_OUTSIDE = {"inputs": say("embedding"), "norm": say("final_norm"), "unembedding": say("final_linear")}


def lay_open(found: Sequence[Moment], look: Look) -> None:
    """Lay the loss open of each training at its moment, side by side."""
    for moment, column in zip(found, st.columns(len(found), gap="medium"), strict=True):
        if not all(bool(weight.isfinite().all()) for weight in moment.progress.weights.values()):
            continue  # said where the picture would be
        recipe = moment.training.recipe
        loss = sample_loss(recipe, moment.progress.weights, look.text, n_padding=padding_of(recipe, look.text))
        with column:
            st.markdown(say("loss_at_step", text=markdown_safe(look.text), step=moment.progress.step))
            st.html(_table(loss, TASKS[recipe.task].vocabulary))
            st.caption(markdown_safe(account(loss, recipe)))
            st.markdown(say("gradient"))
            st.html(_norms(loss))
            st.caption(say("norms"))


def padding_of(recipe: Recipe, text: str) -> int:
    """Return the number of positions of padding that a text would have in the first batch of a training."""
    task = TASKS[recipe.task]
    longest = max(len(sequences(task, other).labels) for other in texts_of_step(recipe, 0))
    return max(0, longest - len(sequences(task, text).labels))


def account(loss: SampleLoss, recipe: Recipe) -> str:
    """Return the steps from the losses of the tokens to the loss."""
    counted = [each for label, each in zip(loss.labels, loss.losses, strict=True) if label != PAD]
    n_left_out = len(loss.labels) - loss.n_counted
    return say(
        "account",
        n_counted=loss.n_counted,
        of_padding=say("of_padding", n_left_out=n_left_out) if n_left_out else "",
        total=_number(sum(counted)),
        mean=_number(loss.mean),
        n_texts=recipe.batch_size,
    )


def _table(loss: SampleLoss, vocabulary: Sequence[str]) -> str:
    counts = [label != PAD for label in loss.labels]
    highest = max(loss.losses) or 1.0
    rows = {
        say("reads"): [_cell(vocabulary[token]) for token in loss.read],
        say("label"): [_cell(vocabulary[token]) for token in loss.labels],
        "p(label)": [
            _cell(_probability(probability) if is_label else "")
            for probability, is_label in zip(loss.probabilities, counts, strict=True)
        ],
        "−log p": [_cell(_number(each), each / highest) for each in loss.losses],
        f"−log p / {loss.n_counted}": [_cell(_number(each / loss.n_counted)) for each in loss.losses],
    }
    body = "".join(f"<tr><th scope=row>{name}</th>{''.join(cells)}</tr>" for name, cells in rows.items())
    columns = "".join(f'<col class="{"counts" if is_label else "left-out"}">' for is_label in counts)
    return f'<div class="sample-loss"><table><colgroup><col>{columns}</colgroup>{body}</table></div>'


def _cell(text: str, bar: float | None = None) -> str:
    style = "" if bar is None else f' style="--share: {100 * bar:.1f}%" class="bar"'
    return f"<td{style}>{html.escape(visible_whole(text)) if text else ''}</td>"


def _norms(loss: SampleLoss) -> str:
    highest = max(loss.layers.values()) or 1.0
    rows = "".join(
        f"<tr><th scope=row>{_called(layer)}</th>"
        f'<td class="bar" style="--share: {100 * norm / highest:.1f}%">{_number(norm)}</td>'
        f"<td>{_parts(loss, layer)}</td></tr>"
        for layer, norm in loss.layers.items()
    )
    whole = f"<tr><th scope=row>{say('all_parameters')}</th><td>{_number(loss.whole_gradient)}</td><td></td></tr>"
    return f'<div class="sample-loss gradient"><table>{rows}{whole}</table></div>'


def _parts(loss: SampleLoss, layer: str) -> str:
    """The norms of the parts of a layer; nothing where it has none."""
    parts = {part: norm for part, norm in loss.gradient.items() if layer_of(part) == layer != part}
    return " · ".join(f"{_last(part)} {_number(norm)}" for part, norm in parts.items())


def _called(layer: str) -> str:
    stack, _, rest = layer.partition(".")
    if rest.startswith("layers."):
        return say("layer", stack=stack, layer=rest.removeprefix("layers."))
    return f"{stack} {_OUTSIDE.get(rest, rest)}" if rest else _OUTSIDE.get(stack, stack)


def _last(part: str) -> str:
    name = part.rpartition(".")[2]
    return _PARTS.get(name, name)


def _probability(value: float) -> str:
    return _number(value) if value <= _NEARLY_ONE else f"> {_NEARLY_ONE}"


def _number(value: float) -> str:
    """Four decimals, or a power of ten where these would all be zero."""
    return f"{value:.4f}" if value == 0 or value >= 1e-3 else f"{value:.1e}"
