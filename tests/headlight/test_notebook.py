"""The picture of a trace in a notebook: PNG files, read back by another library, and words."""

import base64
import io
import re
from functools import partial

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

import headlight
from headlight.notebook import png
from tests.headlight.small_models import N_HEADS, causal, stacked, vectors

GREY = (205, 205, 212)


def watched(allowed, n_tokens, **options):
    model = stacked(partial(F.scaled_dot_product_attention, attn_mask=allowed))
    with torch.no_grad(), headlight.watch(model, **options) as trace:
        model(vectors(n_tokens=n_tokens))
    return trace


def opened(data):
    return np.array(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def figures_of(trace):
    """The name under each picture, its tooltip, and its colours (rows, columns, 3)."""
    found = re.findall(r"title='([^']*)' src='[^,]*,([^']+)'><figcaption><small>(.*?)<", trace._repr_html_())
    return [(name, title, opened(base64.b64decode(data))) for title, data, name in found]


def test_a_png_file_has_the_size_and_colours_that_are_written():
    colors = opened(png(torch.tensor([[0, 254, 255], [0, 100, 200]], dtype=torch.uint8)))
    assert colors.shape == (2, 3, 3)
    assert tuple(colors[0, 0]) == (255, 255, 255)
    assert tuple(colors[0, 2]) == GREY
    assert colors[0, 1].sum() < colors[1, 2].sum() < colors[1, 1].sum() < colors[0, 0].sum()


def test_every_head_has_its_weights_and_each_attention_its_mask():
    trace = watched(causal(6), n_tokens=6)
    figures = figures_of(trace)
    assert [name for name, _, _ in figures] == ["mask", *(f"head {head}" for head in range(N_HEADS))] * 2
    hidden = ~causal(6).numpy()
    for _, _, colors in figures:
        np.testing.assert_array_equal((colors == GREY).all(-1), hidden)
    weights, (_, title, colors) = trace[0].weights[0, 2], figures[3]
    brightness, by_weight = colors.sum(-1)[~hidden], weights.numpy()[~hidden].argsort()
    assert (np.diff(brightness[by_weight]) <= 0).all()  # the larger, the darker
    assert title == "head 2: largest weight 1.000, query 0 to key 0"


def test_a_long_side_keeps_the_largest_weight_of_each_pixel():
    allowed = torch.zeros(400, 400, dtype=torch.bool)
    allowed[:, 200] = True
    _, _, colors = figures_of(watched(allowed, n_tokens=400))[1]
    assert colors.shape == (96, 96, 3)
    assert (colors.sum(-1).argmin(-1) == 48).all()


def test_tokens_are_text_and_what_is_missing_is_said():
    trace = watched(causal(3), n_tokens=3)
    trace.tokens = ("<b>", "cat", "sat")
    assert "largest weight 1.000, query &lt;b&gt; to key &lt;b&gt;" in trace._repr_html_()
    assert "sequence 1 of 2" in trace._repr_html_()
    shapes = watched(causal(3), n_tokens=3, keep="shapes")
    assert "weights not kept" in shapes._repr_html_()
    assert "No attention was seen." in headlight.Trace()._repr_html_()


def test_what_is_wrong_stands_first():
    text = watched(torch.ones(6, 6, dtype=torch.bool).tril(1), n_tokens=6)._repr_html_()
    assert text.index("2 errors") < text.index("Every query sees one key too many") < text.index("<img")
