"""The stages that a worked example gives, of a part of the model that stands by itself."""

from __future__ import annotations

from functools import partial

from model.texts import texts_of
from visualizer.stages import attention, feed_forward
from visualizer.stages.entry import StageEntry
from visualizer.stages.inputs import SINUSOIDS, position, positions_checks, positions_line

say = texts_of(__name__)

_entry = partial(StageEntry, facts=attention.facts, block="attention")

ENTRIES: tuple[StageEntry, ...] = (
    _entry("q", say("q_title"), "query", formula=r"Q \in \mathbb{R}^{T_q \times d_k}", charts=("directions",)),
    _entry("k", say("k_title"), "key", formula=r"K \in \mathbb{R}^{T_k \times d_k}", charts=("directions",)),
    _entry("v", say("v_title"), "value", formula=r"V \in \mathbb{R}^{T_k \times d_v}"),
    StageEntry(
        "input",
        say("input_title"),
        "residual",
        formula=r"x \in \mathbb{R}^{T \times d_{model}}",
        facts=feed_forward.facts,
        block="feed_forward",
    ),
    StageEntry(
        "positional_encoding",
        say("positional_encoding_title"),
        "residual",
        formula=SINUSOIDS,
        numpy=positions_line,
        checks=positions_checks,
        derive=position,
        charts=("positions",),
        block="inputs",
        left_out=("table",),
    ),
)
