"""Ready cases of masks, right and wrong, each with something to see."""

from __future__ import annotations

from dataclasses import replace

from visualizer.settings.examples import Example
from visualizer.settings.settings import Selection, Settings, default_stage

_DECODER = Settings(architecture="decoder", text="The cat sat on the mat and slept", weights="random")
_ENCODER = replace(_DECODER, architecture="encoder")
_LOOK = Selection(view="lab", head=0, query=4, key=1)


def _case(name: str, title: str, what_to_see: str, settings: Settings, selection: Selection = _LOOK) -> Example:
    stage = default_stage(settings.architecture)
    return Example(name, title, what_to_see, settings, replace(selection, stage=stage))


GALLERY = (
    _case(
        "causal",
        "Causal",
        "Each query sees itself and what came before it. Under Prove, no later token changes an earlier output.",
        _DECODER,
        replace(_LOOK, intent="causal", panel="prove"),
    ),
    _case(
        "padding_right",
        "Padding right",
        "The last three columns are padding: no query may see them, but their own rows are computed all the same.",
        replace(_ENCODER, mask=("padding",), pad=3),
        replace(_LOOK, intent="bidirectional+padding", panel="apply", query=2),
    ),
    _case(
        "padding_left",
        "Padding left",
        "The padding stands first, as when a batch of prompts is continued: the first columns are blocked.",
        replace(_ENCODER, mask=("padding",), pad=3, pad_side="left"),
        replace(_LOOK, intent="bidirectional+padding", panel="apply", query=4, key=3),
    ),
    _case(
        "causal_and_padding",
        "Causal and padding",
        "Point at a cell with two colours: it is blocked twice. The padding on the left has no key left at all, "
        "which gives NaN in PyTorch's softmax; nobody reads these rows.",
        replace(_DECODER, mask=("causal", "padding"), pad=2, pad_side="left"),
        replace(_LOOK, intent="causal+padding", panel="apply", query=1, key=4),
    ),
    _case(
        "padding_counted",
        "Positions count the padding",
        "The masks are right, and yet the same words give other logits than without the padding: the first word "
        "stands at position 2. Choose no mask bug, under More, and the padding changes nothing.",
        replace(_DECODER, mask=("causal", "padding"), pad=2, pad_side="left", fault="padding_counted"),
        replace(_LOOK, intent="causal+padding", panel="prove", query=5, key=3),
    ),
    _case(
        "source_padding_seen",
        "Source padding seen",
        "The encoder hides its padding, the cross-attention does not: what the decoder reads of the source depends "
        "on how long the batch is. In PyTorch, memory_key_padding_mask was forgotten. Switch its padding mask on.",
        replace(
            _DECODER,
            architecture="encoder-decoder",
            text="The cat sat on the mat",
            target="Die Katze saß",
            mask=("causal", "padding"),
            pad=2,
            cross_padding=False,
        ),
        replace(_LOOK, attention="cross", intent_cross="bidirectional+padding", panel="prove", query=2, key=6),
    ),
    _case(
        "no_key_left",
        "Fully blocked row",
        "Query 3 may see nothing. What comes out depends on how the mask is applied: compare the rows under Apply.",
        replace(_DECODER, mask=("custom",), custom="k <= q and q != 3"),
        replace(_LOOK, intent="causal", panel="apply", query=3),
    ),
    _case(
        "transposed",
        "Transposed",
        "Queries and keys are swapped: each query sees itself and what comes after it. One click fixes it.",
        replace(_DECODER, mask=("custom",), custom="q <= k"),
        replace(_LOOK, intent="causal"),
    ),
    _case(
        "inverted",
        "Inverted",
        "True meant “blocked” where it was written and “may attend” where it was read: all is the wrong way.",
        replace(_DECODER, mask=("custom",), custom="k > q"),
        replace(_LOOK, intent="causal"),
    ),
    _case(
        "after_softmax",
        "Mask after softmax",
        "The weights look right, and blocked cells are exactly zero; yet each row no longer sums to one, and later "
        "tokens change earlier outputs from the first layer on.",
        replace(_DECODER, fault="after_softmax"),
        replace(_LOOK, intent="causal", panel="prove"),
    ),
    _case(
        "left_out",
        "Left out in a layer",
        "Layer 1 of three goes without its mask: nothing leaks in layer 0, everything after it does.",
        replace(_DECODER, n_layers=3, fault="left_out"),
        replace(_LOOK, intent="causal", panel="prove", layer=1),
    ),
    _case(
        "packed_documents",
        "Packed documents",
        "Three documents share one sequence, each ended by “|”. No query sees into another document.",
        replace(
            _DECODER,
            text="The cat sat | A dog barked loudly | Birds fly",
            mask=("custom",),
            custom="segment(q) == segment(k) and k <= q",
        ),
        replace(_LOOK, intent="causal+documents", query=6, key=4, panel="reach"),
    ),
    _case(
        "window_over_layers",
        "Window 4, four layers",
        "One layer sees 3 tokens back, four layers 12: what a window hides, a stack of windows reaches.",
        replace(
            _DECODER,
            text="one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen",
            mask=("custom",),
            custom="0 <= q - k < 4",
            n_layers=4,
        ),
        replace(_LOOK, intent="window:4", query=15, key=3, panel="reach", layer=3),
    ),
)
"""In the order of the buttons."""
