"""One token's way: what each part of the model writes to the residual stream, and what it reads for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visualizer.components.axis import Axis
from visualizer.components.packing import Array, Precision, Scaled, fields_of, header_of, in_precision, pack
from visualizer.components.picture import Picture

Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class Part:
    """A part that wrote to the stream: its kind, its label, and the stage that a click on it leads to."""

    kind: str
    label: str
    path: str
    head: int | None = None


@dataclass(frozen=True, eq=False)
class Stop:
    """The stream after something was added to it.

    title: what was added, such as ``layer 0 · self-attention``.
    path: the stage of the stream.
    parts: the numbers of the parts that were added.
    keys: what the heads read; None where nothing is read.
    layer: the layer that added it; None of what belongs to none.
    weights: (H, W, Tk), the attention weights of each head; None where nothing is read.
    """

    title: str
    path: str
    parts: tuple[int, ...]
    keys: Axis | None = None
    weights: Numbers | None = None
    layer: int | None = None


@dataclass(frozen=True, eq=False)
class TokenWay:
    """The ways of W tokens that follow each other.

    tokens: all tokens of the sequence.
    first: the first of the W.
    parts: everything that wrote to the stream.
    stops: the embedding, then each sub-layer.
    norms: (n_parts, W), the norm of what each part wrote.
    shares: (n_parts, W), its length along the stream that it was added to, as a fraction of that stream.
    logits: (n_parts, W), what is left of it in the logit of the predicted token; None where nothing is predicted.
    sums: (n_stops, W), the norm of the stream after the addition.
    streams: (n_stops, W), the same after the norm of a post-norm layer.
    likely: (n_stops, W, K), the most likely tokens if the model stopped there; None where nothing is predicted.
    probabilities: (n_stops, W, K), theirs.
    vocabulary: the label of each token in ``likely``.
    end: what follows the last stop: a title, and the stage that it leads to.
    expects_next: whether it is predicted what follows a token; else the answer is one at the token.
    """

    tokens: Axis
    first: int
    parts: tuple[Part, ...]
    stops: tuple[Stop, ...]
    norms: Numbers
    shares: Numbers
    logits: Numbers | None
    sums: Numbers
    streams: Numbers
    likely: NDArray[np.int32] | None
    probabilities: Numbers | None
    vocabulary: dict[int, str]
    end: tuple[str, str]
    expects_next: bool

    @property
    def paths(self) -> frozenset[str]:
        """Every stage that a click can lead to."""
        return frozenset([self.end[1], *(part.path for part in self.parts), *(stop.path for stop in self.stops)])

    @property
    def n_weights(self) -> int:
        """The count of the attention weights at all stops."""
        return sum(stop.weights.size for stop in self.stops if stop.weights is not None)


def token_way(
    way: TokenWay | str, *, selected: int, seq: int, key: str, layer: int = 0, light: str | int = ""
) -> Picture:
    """The picture.

    Args:
        way: what is drawn, or the address at which the browser finds what ``packed_way`` makes of it.
        selected: the token whose way is drawn first, counted in its whole sequence, or the nearest one of ``way``.
        seq: the number of the last event that ``selected`` takes account of, 0 before the first.
        key: identifies the element on the page.
        layer: the layer that is opened first, where there are so many that all are narrow.
        light: what is brought out: "stream", "prediction", or the number of a part.

    Its event `open` is {"path", "head", "query", "seq"}; `shown` is {"query", "layer", "seq"}, once the person
    pauses.
    """
    header = {"key": key, "seq": seq, "selected": selected, "layer": layer, "light": light}
    return way_of(pack(header | {"address": way}, {}) if isinstance(way, str) else packed_way(way, header))


def packed_way(way: TokenWay, header: Mapping[str, Any] | None = None, *, precision: Precision = "exact") -> bytes:
    """Pack what is drawn for the browser: the weights, of which there are many, in a precision."""
    arrays: dict[str, Array | Scaled] = {
        name: value for name, value in vars(way).items() if isinstance(value, np.ndarray)
    }
    for i, stop in enumerate(way.stops):
        if stop.weights is not None:
            arrays[f"weights{i}"] = in_precision(stop.weights, precision)
    return pack({**(header or {}), **fields_of(way)}, arrays)


def way_of(data: bytes) -> Picture:
    """The picture of bytes that were packed before."""
    return Picture("token_way/element.js", data, header_of(data)["key"], ("open", "shown"))


def paths_in(data: bytes) -> frozenset[str]:
    """Every stage that a click in the picture of packed bytes can lead to."""
    header = header_of(data)
    return frozenset([header["end"][1], *(one["path"] for one in (*header["parts"], *header["stops"]))])
