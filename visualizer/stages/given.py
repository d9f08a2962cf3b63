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
        plain="""[Attention] is a library. Every reader has a slip, its [query]: what it looks for. Here the
            slips are given, not made from anything.""",
        exact="""The [queries](query), given as they are: this attention has no projections. Row t is what
            token t looks for.""",
    ),
    StageEntry(
        "k",
        "Keys",
        "key",
        formula=r"K \in \mathbb{R}^{T_k \times d_k}",
        facts=attention.facts,
        block="attention",
        charts=("directions",),
        plain="""What stands on the spine of every book, its [key]: what it is found by. It is given too.""",
        exact="""The [keys](key), given as they are: this attention has no projections. Row t is what token t
            is found by.""",
    ),
    StageEntry(
        "v",
        "Values",
        "value",
        formula=r"V \in \mathbb{R}^{T_k \times d_v}",
        facts=attention.facts,
        block="attention",
        plain="""What stands in every book, its [value]: what a reader takes home. It is given too.""",
        exact="""The [values](value), given as they are: this attention has no projections. Row t is what
            token t passes on.""",
    ),
    StageEntry(
        "input",
        "Input of the feed-forward network",
        "residual",
        formula=r"x \in \mathbb{R}^{T \times d_{model}}",
        facts=feed_forward.facts,
        block="feed_forward",
        plain="""The cards that enter. From here on every token works by itself.""",
        exact="""The vectors that enter the [feed-forward network], one per token. Each will be treated by
            itself.""",
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
        plain="""Every place gets a stamp of its own, its [position](positional encoding). It is made of
            waves, quick ones on the left and slow ones on the right, like the hands of a clock.""",
        exact="""Row t is the vector of position t: [sinusoids](positional encoding), sines in the even
            columns and cosines in the odd ones, each pair slower than the one before.""",
    ),
)
