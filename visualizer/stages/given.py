"""What a worked example gives: stages of a part of the model that stands by itself."""

from __future__ import annotations

from visualizer.stages import attention, feed_forward
from visualizer.stages.entry import StageEntry
from visualizer.stages.inputs import SINUSOIDS, position, positions_checks, positions_line

ENTRIES: tuple[StageEntry, ...] = (
    StageEntry(
        "q",
        "Queries",
        "query",
        formula=r"Q \in \mathbb{R}^{T_q \times d_k}",
        facts=attention.facts,
        block="attention",
        charts=("directions",),
    ),
    StageEntry(
        "k",
        "Keys",
        "key",
        formula=r"K \in \mathbb{R}^{T_k \times d_k}",
        facts=attention.facts,
        block="attention",
        charts=("directions",),
    ),
    StageEntry(
        "v",
        "Values",
        "value",
        formula=r"V \in \mathbb{R}^{T_k \times d_v}",
        facts=attention.facts,
        block="attention",
    ),
    StageEntry(
        "input",
        "Input of the feed-forward network",
        "residual",
        formula=r"x \in \mathbb{R}^{T \times d_{model}}",
        facts=feed_forward.facts,
        block="feed_forward",
    ),
    StageEntry(
        "positional_encoding",
        "Sinusoidal positions",
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
