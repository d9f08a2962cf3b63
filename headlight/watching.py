"""Watch the attentions of any PyTorch model while it runs, without changing anything in it."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from headlight import known_functions
from headlight.attention import Attention, Keep
from headlight.modules import RunningModules
from headlight.recorder import Options, Recorder, WrittenDraft, aside
from headlight.stages import StageBytes, Stages
from headlight.trace import Trace
from headlight.written import Scores, WrittenAttentions
from model.mask_tools.mask_case import listed
from model.tracing import Edit

_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
_KERNEL = re.compile(r"attention|attn|flash|sdpa", re.IGNORECASE)
_OF_PYTORCH = ("aten", "prims", "prim", "c10", "c10d")
_FUSED = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
"""What PyTorch computes in one fused step when nothing is trained, so that no attention can be seen in it."""


@contextmanager
def watch(
    model: nn.Module,
    *,
    layers: Sequence[int | str] | None = None,
    keep: Keep = "weights",
    item: int | None = None,
    heads: Sequence[int] | None = None,
    to: str | torch.device | None = None,
    edits: Mapping[str, Edit] | None = None,
) -> Iterator[Trace]:
    """See every attention of a model while the block runs.

    The output, the gradients, the random numbers and the hooks of the model are as without it. Seen are
    ``F.scaled_dot_product_attention``, ``F.multi_head_attention_forward``, FlexAttention and any softmax over
    scores that the model writes out, in this thread alone. What hides elsewhere is named in ``Trace.notes``.

    Args:
        model: any module; names are those of its ``named_modules()``.
        layers: which modules to keep: numbers as they stand in the names (3 is ``h.3.attn``), names or patterns
            of names (``encoder.*``); None for all.
        keep: ``"shapes"`` computes and keeps no numbers, ``"weights"`` weights, masks and biases, ``"all"``
            queries, keys, values and context too, and every operation of the model as a stage, ``Trace.stages``.
        item: the one sequence of the batch to keep; None for all.
        heads: the heads to keep; None for all.
        to: the device to keep them on, such as ``"cpu"``; None for where they are computed.
        edits: functions from what a stage came to, to a tensor of the same shape and number type that the model
            goes on with in its place, by the path in ``Trace.stages``; only where all is kept. A module that
            PyTorch could fuse is then computed step by step. Those of ``model.edits`` fit.

    Yields:
        the trace, complete when the block ends.

    Raises:
        ValueError: ``keep`` is none of the three, or ``edits`` are given where it is not ``"all"``; an edit gives
            another shape, or is of a stage that was not computed.
        IndexError: there is no such ``item`` or no such head.
    """
    options = Options(
        None if layers is None else tuple(layers), keep, item, None if heads is None else tuple(heads), to
    )
    if edits and keep != "all":
        raise ValueError('edits are of stages, which are there with keep="all"')
    trace = Trace()
    watcher = _Watcher(model, options, trace, edits or {})
    try:
        with watcher.watching():
            yield trace
    finally:
        for attention in watcher.recorder.attentions():
            trace.append(attention)
        if watcher.stages is not None:
            trace.stages.update(watcher.stages.finished())
            trace.parameters.update(watcher.stages.parameters())
    if watcher.stages is not None:
        watcher.stages.check_edits()
        for path in edits or ():
            trace.note(f"{path} was changed on purpose: the model went on with what stands there now.")


def memory(model: nn.Module, *args: Any, keep: Keep = "weights", **kwargs: Any) -> int:  # noqa: ANN401
    """How many bytes a trace of this call would keep, from the shapes of one plain pass.

    Args:
        model: the model.
        args: what the model is called with.
        keep: as in ``watch``.
        kwargs: what it is called with by name.
    """
    stages = StageBytes()
    with torch.no_grad(), watch(model, keep="shapes") as trace, stages if keep == "all" else nullcontext():
        model(*args, **kwargs)
    return stages.total + sum(bytes_kept(attention, keep) for attention in trace)


def bytes_kept(attention: Attention, keep: Keep) -> int:
    """The bytes that the numbers of one attention take at most."""
    if keep == "shapes":
        return 0
    batch, heads, n_queries, n_keys = attention.shape
    cells = batch * heads * n_queries * n_keys
    size = torch.promote_types(attention.dtype, torch.float32).itemsize
    inputs = (attention.query_shape, attention.key_shape, attention.value_shape, attention.query_shape)
    of_inputs = sum(torch.Size(shape).numel() for shape in inputs) if keep == "all" else 0
    return (cells + of_inputs) * size


class _Watcher(TorchFunctionMode):
    """Sees each function of PyTorch that is called, and which module calls it."""

    def __init__(self, model: nn.Module, options: Options, trace: Trace, edits: Mapping[str, Edit]) -> None:
        super().__init__()
        self.recorder = Recorder(options)
        self._model = model
        self._trace = trace
        self._modules = RunningModules(model)
        self._written = WrittenAttentions(model, self._begin)
        self.stages = Stages(model, lambda: self._modules.path, options, edits) if options.keep == "all" else None
        self._edits = edits
        self._readers: dict[Any, known_functions.Reader | None] = {
            F.scaled_dot_product_attention: known_functions.scaled_dot_product_attention,
            F.multi_head_attention_forward: known_functions.multi_head_attention_forward,
        }
        self._attention_modules: list[tuple[nn.Module, int]] = []
        self._kernels: list[str] = []
        self._fused: nn.Module | None = None
        self._is_repeating = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch until the block ends."""
        with ExitStack() as stack:
            if "torch._dynamo" in sys.modules:  # where it was never loaded, nothing is compiled
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            if compiled := compiled_modules(self._model):
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)  # of hooks that run twice
                self._trace.note(
                    f"{compiled} is compiled by torch.compile: it ran as the Python that it was compiled from, so "
                    "its numbers can differ in the last digits."
                )
            stack.enter_context(self._modules.followed(self._entered, self._left))
            stack.enter_context(self)
            yield

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,  # noqa: ANN401 - PyTorch's own signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        kwargs = kwargs or {}
        if self.stages is not None:
            self.stages.before(function, args, kwargs)
        output = function(*args, **kwargs)
        gone_on_with = output
        if self.stages is not None:
            gone_on_with = self.stages.after(function, args, kwargs, output)
        try:
            reader = self._readers[function]
        except KeyError:
            reader = self._readers[function] = self._reader(function)
        if reader is None:
            self._written.see(function, args, kwargs, gone_on_with)
        elif self.recorder.options.wants(self._modules.path):
            with aside(args[0] if args else kwargs["query"]):
                self.recorder.add(self._modules.path, reader(args, kwargs, output))
        return gone_on_with

    def _reader(self, function: Callable[..., Any]) -> known_functions.Reader | None:
        kind, name = type(function).__name__, str(function)
        if kind == "FlexAttentionHOP":
            return known_functions.flex_attention
        if kind.startswith("OpOverload") and name.partition(".")[0] not in _OF_PYTORCH and _KERNEL.search(name):
            self._kernels.append(name)
        return None

    def _begin(self, scores: Tensor, output: Tensor, known: Scores | None, axis: int) -> WrittenDraft | None:
        if not self.recorder.options.wants(self._modules.path):
            return None
        with aside(output):
            return self.recorder.begin(self._modules.path, scores, output, known, axis)

    def _entered(self, module: nn.Module) -> None:
        if self._is_repeating:
            return
        if self._fused is None and not self._edits and _may_be_fused(module):
            self._fused = module
        if _ATTENTION.search(type(module).__name__):
            self._attention_modules.append((module, self.recorder.n_seen))

    def _left(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:  # noqa: ANN401
        if self._is_repeating:
            return None
        self._look_for_what_was_hidden(module)
        if module is not self._fused:
            return None
        self._fused = None
        if output is None:
            return None
        fused = self._fused_output(module, args, kwargs)
        if self.stages is not None:
            self.stages.fused(self._modules.path_of(module), module.forward, args, kwargs, fused)
        return fused

    def _fused_output(self, module: nn.Module, args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        """What the module gives where nobody watches, which PyTorch computes in one fused step if it can.

        It differs from what was watched in the last digits, and is 0 at padding.
        """
        self._is_repeating = True
        try:
            with torch._C.DisableTorchFunction():
                return module.forward(*args, **kwargs)
        finally:
            self._is_repeating = False

    def _look_for_what_was_hidden(self, module: nn.Module) -> None:
        if not self._attention_modules or self._attention_modules[-1][0] is not module:
            return
        _, n_before = self._attention_modules.pop()
        path = self._modules.path_of(module)
        if self._attention_modules or self.recorder.n_seen > n_before or not self.recorder.options.wants(path):
            return
        how = f"in {listed(self._kernels)}" if self._kernels else "in a kernel or a way of its own"
        self._trace.note(
            f"{path or 'The model'} ({type(module).__name__}) ran, but no attention was seen in it: it is computed "
            f"{how}, which nothing can look into."
        )


def _may_be_fused(module: nn.Module) -> bool:
    """Whether PyTorch may compute a module in one fused step, and it can be computed twice without a trace."""
    if type(module) not in _FUSED or not torch.backends.mha.get_fastpath_enabled():
        return False
    inner = list(module.modules())
    is_plain = all(type(part).__module__.startswith("torch.nn.") and not part.training for part in inner)
    has_hooks = any(part._forward_hooks or part._forward_pre_hooks for part in inner if part is not module)
    trains = torch.is_grad_enabled() and any(parameter.requires_grad for parameter in module.parameters())
    return is_plain and not has_hooks and not trains


def compiled_modules(model: nn.Module) -> str:
    """The modules that ``torch.compile`` compiled, named; "" if there is none."""
    names = [
        name or "The model"
        for name, module in model.named_modules()
        if type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None
    ]
    return listed(names[:3] if len(names) < 4 else [*names[:3], f"{len(names) - 3} more"])
