"""The same heads under two masks, A and B, and what the second changes: B − A."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from visualizer.components.attention_heads.element import payload
from visualizer.components.axis import Axis
from visualizer.components.dials import Dial, Pressed
from visualizer.components.looks import Looks
from visualizer.components.packing import pack
from visualizer.components.picture import Picture


def compare_grids(
    weights: tuple[npt.NDArray[np.floating[Any]], npt.NDArray[np.floating[Any]]] | str,
    *,
    blocked_a: npt.NDArray[np.uint8] | None,
    blocked_b: npt.NDArray[np.uint8] | None,
    blocked_by_a: Sequence[str],
    blocked_by_b: Sequence[str],
    title_a: str,
    title_b: str,
    rows: Axis,
    columns: Axis,
    head_names: Sequence[Sequence[str]],
    layer: int,
    looks: Looks,
    key: str,
    seq: int = 0,
    dials: Sequence[Dial | Pressed] = (),
    dial_address: str = "",
    layer_names: Sequence[str] = (),
) -> Picture:
    """One row of three grids for each head: A, B and B − A, computed in the browser from these very numbers.

    weights: of A and of B, (L, H, Tq, Tk) in [0, 1]; or the address at which the browser finds them.
    blocked_a, blocked_b: (L or 1, H or 1, Tq, Tk) uint8, bit i set where mask `blocked_by_a[i]` or
        `blocked_by_b[i]` blocks the cell; None without masks, and where they come with the weights.
    The other arguments, `select` and `shown` are those of `attention_heads`. Raises ValueError when shapes, labels
    and names do not agree.
    """
    header = {
        "key": key,
        "seq": seq,
        "layer": layer,
        "looks": looks,
        "dials": list(dials),
        "dial_address": dial_address,
        "layer_names": list(layer_names) or None,
        "sides": {
            "a": {"title": title_a, "blocked_by": list(blocked_by_a)},
            "b": {"title": title_b, "blocked_by": list(blocked_by_b)},
        },
    }
    labels: dict[str, Any] = {"rows": rows, "columns": columns, "head_names": head_names}
    if isinstance(weights, str):
        data = pack(header | {"address": weights} | labels, {})
    else:
        masks = {"blocked_a": blocked_a, "blocked_b": blocked_b}
        numbers = dict(zip("ab", weights, strict=True))
        data = payload(numbers, masks, header=header, **labels)
    return Picture("compare_grids/element.js", data, key, ("select", "shown"))
