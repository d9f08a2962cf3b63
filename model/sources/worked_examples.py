"""Published worked examples: the numbers of ``model/sources/published/*.json`` as modules that compute them.

A file holds where it was published (``source``) and how its numbers are made (``recipe``), inputs, weights, at
times a mask, and under ``expected`` the intermediates, in double precision; which weights it holds says which part
of a Transformer it is of. Matrices are stored (d_in, d_out), a mask has True where a query may attend, and minus
infinity is written ``"-inf"``. A new file in the directory is a new worked example.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch
from torch import Tensor, nn

from model import masks
from model.attention import MultiHeadAttention, scaled_dot_product_attention
from model.config import TransformerConfig
from model.feed_forward import FeedForward
from model.layers import EncoderLayer
from model.positional_encoding import sinusoidal_encoding
from model.texts import texts_of
from model.tracing import Trace, TracedModule, record

say = texts_of(__name__)

Sequence = Literal["source", "target"]

PUBLISHED = Path(__file__).resolve().parent / "published"
"""The folder of the files."""


@dataclass(frozen=True, eq=False)
class WorkedExample:
    """One published example, ready to run.

    Attributes:
        name: of its file.
        title: what to call it.
        description: one sentence with its sizes.
        source: where it was published.
        recipe: the seeds and calls that make its numbers.
        module: computes it in float64, in evaluation mode; one root with one named part.
        inputs: the tensors that ``module`` takes.
        sequences: number of tokens of each sequence; the keys are those of the ``source``, the queries of the
            ``target`` where there is one, else of the source too.
        batch_size: number of sequences that are computed at once.
        mask: its own, broadcastable to (B, H, Tq, Tk), True = may attend; None where it has none.
        mask_name: which of ``MASKS`` its own is; empty where it has none.
        attends: whether it has attention, and so takes a mask.
        expected: the published numbers by trace path, in the shape of the trace, float64.
    """

    name: str
    title: str
    description: str
    source: str
    recipe: str
    module: TracedModule
    inputs: tuple[Tensor, ...]
    sequences: Mapping[Sequence, int]
    batch_size: int
    mask: Tensor | None
    mask_name: str
    attends: bool
    expected: Mapping[str, Tensor]

    def run(self, mask: Tensor | Literal["own"] | None = "own") -> Trace:
        """Compute it, without gradients, and return every stage.

        Args:
            mask: set in the place of its own, broadcastable to (B, H, Tq, Tk), True = may attend; None for none.

        Raises:
            ValueError: a mask is given to an example without attention.
        """
        used = self.mask if isinstance(mask, str) else mask
        if used is not None and not self.attends:
            raise ValueError(f"mask: the worked example {self.name} has no attention that could take one")
        with torch.no_grad(), record(self.module) as trace:
            self.forward(used)
        return trace

    def forward(self, mask: Tensor | None) -> None:
        """Compute it under a mask, for whoever records it."""
        self.module(*self.inputs, **({"mask": mask} if self.attends else {}))


def load_worked_example(path: Path) -> WorkedExample:
    """Read one file.

    Raises:
        ValueError: it is not JSON of rectangular arrays of finite numbers (minus infinity among the expected ones
            is written ``"-inf"``), or nothing of a Transformer has the weights that it holds.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        return _build(path.stem, content)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name} is not a worked example: {error}") from error


# The modules, one per kind of example.


class AttentionFunction(TracedModule):
    """The bare function of equation 1: no projections, and values of a width of their own."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """q (B, H, Tq, Dk), k (B, H, Tk, Dk), v (B, H, Tk, Dh) -> (B, H, Tq, Dh)."""
        q = self.tap("q", q, "B H Tq Dk")
        k = self.tap("k", k, "B H Tk Dk")
        v = self.tap("v", v, "B H Tk Dh")
        context, _ = scaled_dot_product_attention(q, k, v, mask, tap=self.tap)
        return context


class FeedForwardOfInput(FeedForward):
    """A feed-forward network by itself: no stage before it names its input."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model)."""
        return super().forward(self.tap("input", x, "B T D"))


class _AttentionExample(TracedModule):
    def __init__(self, attention: TracedModule) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        output: Tensor = self.attention(query, key, value, mask)
        return output


class _FeedForwardExample(TracedModule):
    def __init__(self, feed_forward: FeedForward) -> None:
        super().__init__()
        self.feed_forward = feed_forward

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.feed_forward(x)
        return output


class _EncoderLayerExample(TracedModule):
    def __init__(self, encoder_layer: EncoderLayer) -> None:
        super().__init__()
        self.encoder_layer = encoder_layer

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        output: Tensor = self.encoder_layer(x, mask)
        return output


class _PositionalEncodingExample(TracedModule):
    def __init__(self, length: int, d_model: int) -> None:
        super().__init__()
        self.length, self.d_model = length, d_model

    def forward(self) -> Tensor:
        return self.tap(
            "positional_encoding",
            sinusoidal_encoding(self.length, self.d_model),
            "T D",
        )


# From a file's content to its module.


@dataclass(frozen=True, eq=False)
class _Case:
    """The parts of an example that its kind decides.

    Attributes:
        module, inputs: as of ``WorkedExample``.
        description: what it is, without the mask.
        sequences: as of ``WorkedExample``.
        prefix: of the trace paths.
        renamed: the paths, below the prefix, of expected arrays that are called otherwise there.
        with_axes: gives the expected arrays and the mask the axes of the trace.
    """

    module: TracedModule
    inputs: tuple[Tensor, ...]
    description: str
    sequences: Mapping[Sequence, int]
    prefix: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    with_axes: Callable[[Tensor], Tensor] = lambda array: array


_Content = dict[str, Any]


def _build(name: str, content: object) -> WorkedExample:
    if not isinstance(content, dict):
        raise ValueError("it holds no object of named arrays")
    weights = {key: _array(value) for key, value in content.get("weights", {}).items()}
    case = _case(content, weights)
    expected = {
        case.prefix + case.renamed.get(key, key): case.with_axes(_array(value, allow_blocked=True))
        for key, value in content["expected"].items()
    }
    mask = case.with_axes(masks.custom(torch.tensor(content["mask"]))) if "mask" in content else None
    mask_name = _name_of(mask)
    return WorkedExample(
        name=name,
        title=str(content["title"]),
        description=f"{case.description}{_MASK_SAID.get(mask_name, say('mask', name=mask_name))}.",
        source=str(content["source"]),
        recipe=str(content["recipe"]),
        module=case.module.double().eval(),
        inputs=case.inputs,
        sequences=case.sequences,
        batch_size=case.inputs[0].shape[0] if case.inputs else 1,
        mask=mask,
        mask_name=mask_name,
        attends="scores" in content["expected"] or "w_q" in weights,
        expected=expected,
    )


def _case(content: _Content, weights: Mapping[str, Tensor]) -> _Case:
    if "q" in content:
        return _attention_function(content)
    if {"w_q", "w_1"} <= weights.keys():
        return _encoder_layer(content, weights)
    if "w_q" in weights:
        return _multi_head_attention(content, weights)
    if "w_1" in weights:
        return _feed_forward(content, weights)
    return _positional_encoding(content)


def _attention_function(content: _Content) -> _Case:
    q, k, v = (_with_batch_and_head(_array(content[name])) for name in ("q", "k", "v"))
    return _Case(
        module=_AttentionExample(AttentionFunction()),
        inputs=(q, k, v),
        description=say(
            "attention",
            queries=q.shape[2],
            keys=k.shape[2],
            key_width=k.shape[3],
            value_width=v.shape[3],
            sequences=_in_sequences(q),
        ),
        sequences={"source": k.shape[2], "target": q.shape[2]},
        prefix="attention.",
        with_axes=_with_batch_and_head,
    )


def _with_batch_and_head(array: Tensor) -> Tensor:
    """(Tq, Dk) or (B, Tq, Dk) -> (B, 1, Tq, Dk): the bare function was published without heads."""
    return array.reshape(-1, 1, *array.shape[-2:])


def _multi_head_attention(content: _Content, weights: Mapping[str, Tensor]) -> _Case:
    is_cross = "query_input" in content
    x = _array(content["query_input" if is_cross else "x"])
    inputs = (x, _array(content["key_input"]), _array(content["value_input"])) if is_cross else (x, x, x)
    d_model, d_inner = weights["w_q"].shape
    n_heads = int(content["n_heads"])
    attention = MultiHeadAttention(
        d_model,
        n_heads,
        head_dim=d_inner // n_heads,
        bias="b_q" in weights,
        output_bias="b_o" in weights,
        output_projection="w_o" in weights,
    )
    _fill(attention, weights)
    sizes, n_keys = _sizes(x), inputs[1].shape[1]
    return _Case(
        module=_AttentionExample(attention),
        inputs=inputs,
        description=say("cross_attention", keys=n_keys, sizes=sizes, heads=n_heads, width=attention.head_dim)
        if is_cross
        else say("self_attention", sizes=sizes, heads=n_heads, width=attention.head_dim),
        sequences={"source": n_keys, "target": x.shape[1]} if is_cross else {"source": x.shape[1]},
        prefix="attention.",
    )


def _feed_forward(content: _Content, weights: Mapping[str, Tensor]) -> _Case:
    x = _array(content["x"])
    feed_forward = FeedForwardOfInput(*weights["w_1"].shape)
    _fill(feed_forward, weights)
    return _Case(
        module=_FeedForwardExample(feed_forward),
        inputs=(x,),
        description=say("feed_forward", n=weights["w_1"].shape[1], sizes=_sizes(x)),
        sequences={"source": x.shape[1]},
        prefix="feed_forward.",
    )


def _encoder_layer(content: _Content, weights: Mapping[str, Tensor]) -> _Case:
    x = _array(content["x"])
    d_model, d_ff = weights["w_1"].shape
    n_heads = int(content["n_heads"])
    layer = EncoderLayer(
        TransformerConfig(
            d_model=d_model, n_heads=n_heads, d_ff=d_ff, layer_norm_eps=float(content["layer_norm_eps"])
        )
    )
    _fill(layer.self_attention, weights)
    _fill(layer.feed_forward, weights)
    return _Case(
        module=_EncoderLayerExample(layer),
        inputs=(x,),
        description=say("encoder_layer", sizes=_sizes(x), heads=n_heads),
        sequences={"source": x.shape[1]},
        prefix="encoder_layer.",
        renamed={
            "weights": "self_attention.weights",
            "attention_output": "self_attention.output",
            "feed_forward_output": "feed_forward.output",
            "output": "norm2",
        },
    )


def _positional_encoding(content: _Content) -> _Case:
    length, d_model = _array(content["expected"]["encoding"]).shape
    return _Case(
        module=_PositionalEncodingExample(length, d_model),
        inputs=(),
        description=say("positions", positions=length, d_model=d_model),
        sequences={"source": length},
        renamed={"encoding": "positional_encoding"},
    )


def _fill(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give every linear layer its matrix, stored (d_in, d_out), and its bias, zero unless the file holds one."""
    for name, layer in module.named_children():
        if isinstance(layer, nn.Linear):
            layer.weight = nn.Parameter(weights[name].T.contiguous())
            if layer.bias is not None:
                bias = weights.get(name.replace("w_", "b_"), torch.zeros(layer.out_features))
                layer.bias = nn.Parameter(bias.double())


_MASK_SAID = {"": "", "custom": say("own_mask")}
"""The end of a description where it is not the name of a mask."""


def _name_of(mask: Tensor | None) -> str:
    """Name the mask by its cells."""
    if mask is None:
        return ""
    if torch.equal(mask, masks.causal(*mask.shape[-2:])):
        return "causal"
    return "padding" if torch.equal(mask, mask[..., :1, :].expand_as(mask)) else "custom"


# From JSON to tensors.


def _array(value: object, *, allow_blocked: bool = False) -> Tensor:
    """A float64 tensor of nested lists; ``"-inf"`` stands for minus infinity where it is allowed."""
    return torch.tensor(_numbers(value, allow_blocked), dtype=torch.float64)


def _numbers(value: object, allow_blocked: bool) -> object:
    if isinstance(value, list):
        return [_numbers(item, allow_blocked) for item in value]
    if value == "-inf" and allow_blocked:
        return -torch.inf
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < torch.inf:
        return value
    raise ValueError(f"{value!r} is not a finite number")


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a finite number")


def _sizes(x: Tensor) -> str:
    return say("sizes", tokens=x.shape[1], width=x.shape[2], sequences=_in_sequences(x))


def _in_sequences(x: Tensor) -> str:
    return say("in_sequences", n=x.shape[0]) if x.shape[0] > 1 else ""


WORKED_EXAMPLES: Mapping[str, Callable[[], WorkedExample]] = {
    path.stem: partial(load_worked_example, path) for path in sorted(PUBLISHED.glob("*.json"))
}
"""The loader of each worked example, by its name."""
