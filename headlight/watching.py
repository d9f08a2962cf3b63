"""Watch the attentions of any PyTorch model while it runs, without changing anything in it."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._functorch import TransformType
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from headlight import known_functions
from headlight.attentions import Attention, Keep
from headlight.call import NoSuchPartError
from headlight.eager import EagerAttentions
from headlight.eager_drafts import EagerDraft, Softmax, aside
from headlight.inputs import inputs_of
from headlight.modules import Arguments, Function, Keywords, RunningModules
from headlight.origins import FollowedOrigins
from headlight.recorder import NAMED_ATTENTION, Options, Recorder
from headlight.stages import StageBytes, Stages
from headlight.torchscript import as_python
from headlight.trace import Trace
from model.dataflow import name_of
from model.texts import listed
from model.tracing import Edit, nearest

_KERNEL = re.compile(r"attention|attn|flash|sdpa", re.IGNORECASE)
_RESHAPES = ("view", "reshape", "flatten", "unflatten")
_OF_PYTORCH = ("aten", "prims", "prim", "c10", "c10d")
_logger = logging.getLogger(__name__)
_FUSED = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
"""The modules that PyTorch computes in one fused step when nothing is trained: no attention can be seen in them."""


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
        model: any module, or the part of one that is to be seen; names are those of its ``named_modules()``.
        layers: which modules to keep: numbers as they stand in the names (3 is ``h.3.attn``), names or patterns
            of names (``encoder.*``); None for all.
        keep: ``"shapes"`` computes and keeps no numbers, ``"weights"`` weights, masks and biases,
            ``"attentions"`` queries, keys, values and context too, and ``"all"`` every operation of the model as a
            stage besides, ``Trace.stages``.
        item: the one sequence of the batch to keep; None for all.
        heads: the heads to keep; None for all.
        to: the device to keep them on, such as ``"cpu"``; None for where they are computed.
        edits: functions from what a stage came to, to a tensor of the same shape and number type that the model
            goes on with in its place, by the path in ``Trace.stages``, where the operations of the same module
            are kept in any case. A module that PyTorch could fuse is then computed step by step. Those of
            ``model.edits`` fit.

    Yields:
        the trace, complete when the block ends.

    Raises:
        TypeError: ``model`` is no module.
        ValueError: ``keep`` is none of the four; ``layers`` names no module; an edit gives another shape, or is of
            a stage that was not computed.
        IndexError: there is no such ``item`` or no such head.
        RuntimeError: there is no such device.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"a model is a torch.nn.Module, and this is a {type(model).__name__}")
    torch.empty(0, device=to)  # refuses a device that there is none of, before anything runs
    options = Options(
        None if layers is None else tuple(layers), keep, item, None if heads is None else tuple(heads), to
    )
    trace = Trace()
    watcher = _Watcher(model, options, trace, edits or {})
    watcher.check_layers()
    try:
        with watcher.watching():
            yield trace
    finally:
        watcher.finish()
    if watcher.refused is not None:
        raise watcher.refused
    if watcher.stages is not None:
        watcher.stages.check_edits()
        for path in edits or ():
            trace.note(f"{path} was changed on purpose: the model went on with what stands there now.")


def memory(model: nn.Module, *args: Any, keep: Keep = "weights", **kwargs: Any) -> int:  # noqa: ANN401
    """Return the number of bytes that a trace of this call would keep, from the shapes of one plain pass.

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
    of_inputs = sum(torch.Size(shape).numel() for shape in inputs) if Options(keep=keep).keeps_vectors else 0
    return (cells + of_inputs) * size


class _Watcher(TorchFunctionMode):
    """Sees each function of PyTorch that is called, and which module calls it."""

    def __init__(self, model: nn.Module, options: Options, trace: Trace, edits: Mapping[str, Edit]) -> None:
        super().__init__()
        self.recorder = Recorder(options)
        self._model = model
        self._trace = trace
        self._modules = RunningModules(model)
        self._origins = FollowedOrigins(self._modules, is_needed=not _has_one_stack(model))
        self._eager = EagerAttentions(model, self._begin, self._unweighted, self._origins.of_both)
        self.stages = (
            Stages(model, lambda: self._modules.path, options, edits) if options.keep == "all" or edits else None
        )
        self._edits = edits
        self._readers: dict[Any, known_functions.Reader | None] = {
            **dict.fromkeys(known_functions.SCALED_DOT_PRODUCT, known_functions.scaled_dot_product_attention),
            F.multi_head_attention_forward: known_functions.multi_head_attention_forward,
        }
        self._attention_modules: list[tuple[nn.Module, int]] = []
        self._kernels: list[str] = []
        self._seen_instead: dict[str, str] = {}
        self._scripts: dict[str, None] = {}
        self._fused: nn.Module | None = None
        self._is_repeating = False
        self.refused: NoSuchPartError | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch until the block ends."""
        with ExitStack() as stack:
            if compiled := compiled_modules(self._modules.named):
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)  # of hooks that run twice
                self._trace.note(
                    f"{compiled} is compiled by torch.compile: it ran as the Python that it was compiled from, so "
                    "its numbers can differ in the last digits."
                )
            stack.enter_context(as_python(self._scripts))
            stack.enter_context(
                self._modules.followed(partial(self._aside, self._entered), partial(self._aside, self._left))
            )
            stack.enter_context(self)
            yield

    def check_layers(self) -> None:
        """Refuse names and numbers that no module has.

        Raises:
            ValueError: there is one.
        """
        paths = [self._modules.path_of(module) for module in self._modules.named.values()]
        for layer in self.recorder.options.layers or ():
            if not any(map(Options((layer,)).wants, paths)):
                what = f"has the number {layer}" if isinstance(layer, int) else f"is called {layer!r}"
                raise ValueError(f"no module {what}{nearest(str(layer), paths)}")

    def finish(self) -> None:
        """Put what was seen into the trace."""
        self._aside(self._finish)

    def _finish(self) -> None:
        inputs = self._trace.inputs = self._trace.inputs.beside(self.recorder.lengths)
        for attention in self.recorder.attentions(inputs.tokens, self._modules.named, self._origins.settled):
            self._trace.append(attention)
        self._note_what_was_not_followed(
            {*inputs.tokens[1:2], *(n for seen in self._trace for n in seen.shape[2:])} - {1}
        )
        if self.stages is not None:
            self._trace.stages.update(self.stages.finished())
            self._trace.parameters.update(self.stages.parameters())

    def _note_what_was_not_followed(self, n_tokens: set[int]) -> None:
        """One sentence on softmaxes over tokens, and one where nothing at all was seen."""
        kinds = {re.sub(r"\d+", "*", path): path for path in reversed(self.recorder.unfollowed(n_tokens))}
        if kinds:
            more = f" and of {len(kinds) - 1} other kinds" if len(kinds) > 1 else ""
            self._trace.note(
                f"A softmax over tokens in {next(reversed(kinds.values())) or 'the model'}{more} was not followed "
                "to values: if it is an attention, or a part of one, it is not shown."
            )
        scripts = [name for name, part in self._modules.named.items() if isinstance(part, torch.jit.ScriptModule)]
        if scripts:
            self._trace.note(f"TorchScript compiled {scripts[0] or 'the model'}: what runs in it is not seen.")
        if not len(self._trace) and not self._trace.notes:
            self._trace.note(self._why_nothing_was_seen())
        if self._scripts:
            names = listed(self._scripts, 3)
            self._trace.note(
                f"{names}, compiled by TorchScript, ran as Python: numbers can differ in the last digits."
            )

    def _why_nothing_was_seen(self) -> str:
        name, elsewhere = type(self._model).__name__, self._modules.in_other_thread
        if elsewhere is not None:
            return f"{elsewhere or name} ran in another thread: what runs there is not seen."
        if self._modules.n_calls:
            return f"In {name} {self._instead('')}."
        return f"{name} did not run while it was watched."

    def __torch_function__(
        self, function: Function, types: object, args: Arguments = (), kwargs: Keywords | None = None
    ) -> Any:  # noqa: ANN401
        kwargs = kwargs or {}
        transform = _transform()
        stages = None if transform else self.stages
        if stages is not None:
            self._aside(stages.before, function, args, kwargs)
        output = function(*args, **kwargs)
        if self._modules.others_run:
            return output
        edited = None if stages is None else self._aside(stages.after, function, args, kwargs, output)
        used = output if edited is None else edited
        self._aside(self._see, transform, function, args, kwargs, output, used)
        return used

    def _aside(self, see: Callable[..., Any], *seen: Any) -> Any:  # noqa: ANN401
        """Return the result of ``see``; None where it fails: then a note says that something is missing.

        What an edit raises is raised on, for the edit is the person's own.
        """
        try:
            return see(*seen)
        except NoSuchPartError as error:
            self.refused = error
        except Exception as error:
            if self.stages is not None and self.stages.failed is error:
                raise
            _logger.info("watching failed, and the model went on", exc_info=True)
            self._trace.note(
                f"{self._modules.path or 'The model'} ran, but not all of it could be read "
                f"({type(error).__name__}): something of it is not shown."
            )
        return None

    def _see(
        self, transform: str, function: Function, args: Arguments, kwargs: Keywords, output: object, used: object
    ) -> None:
        """Take note of a call of a function if it is an attention, or a step of one that is written out."""
        try:
            reader = self._readers[function]
        except KeyError:
            reader = self._readers[function] = self._reader(function)
        if transform:
            if reader is not None or getattr(function, "__name__", "") == "softmax":
                where = f"{self._modules.path or 'The model'} ran under {transform}, where numbers cannot be read"
                self._trace.note(f"{where}: its attention is not shown.")
            return
        self._origins.see(function, args, kwargs, used)
        if reader is None:
            self._eager.see(function, args, kwargs, used)
            if args and isinstance(used, Tensor) and name_of(function) in _RESHAPES:
                self.recorder.reshaped(self._modules.innermost, args[0], used)
        elif self.recorder.options.wants(self._modules.path):
            query, key = (args[i] if i < len(args) else kwargs[name] for i, name in enumerate(("query", "key")))
            if query.is_nested:
                nested = "its sequences are nested tensors, each of a length of its own"
                self._seen_instead[self._modules.path] = nested
                return
            with aside(query):
                origins = self._origins.of_both(query, key)
                self.recorder.add(self._modules.innermost, reader(args, kwargs, output), origins)

    def _reader(self, function: Callable[..., Any]) -> known_functions.Reader | None:
        kind, name = type(function).__name__, str(function)
        if kind == "FlexAttentionHOP":
            return known_functions.flex_attention
        if kind.startswith("OpOverload") and name.partition(".")[0] not in _OF_PYTORCH and _KERNEL.search(name):
            self._kernels.append(name)
        return None

    def _begin(self, softmax: Softmax) -> EagerDraft | None:
        running = self._modules.innermost
        if not self.recorder.options.wants(running.path):
            return None
        with aside(softmax.output):
            return self.recorder.begin(running, softmax)

    def _unweighted(self, functions: tuple[str, ...]) -> None:
        through = f"through {listed(list(dict.fromkeys(functions)))} and " if functions else ""
        which = "that was followed" if "exp" in functions else "of the products"
        seen = f"products of two tensors meet a third one {through}without a softmax {which}"
        self._seen_instead.setdefault(self._modules.path, seen)

    def _entered(self, module: nn.Module) -> None:
        if self._is_repeating:
            return
        if self._fused is None and not self._edits and _may_be_fused(module):
            self._fused = module
        if NAMED_ATTENTION.search(type(module).__name__):
            self._attention_modules.append((module, self.recorder.n_seen))

    def _left(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:  # noqa: ANN401
        if self._is_repeating:
            return None
        if not self._modules.are_running:
            self._origins.given((args, kwargs))
        if module is self._model and not self._trace.inputs.model:
            self._trace.inputs = inputs_of(module, args, kwargs)
        self._look_for_what_was_hidden(module)
        if module is not self._fused:
            return None
        self._fused = None
        if output is None:
            return None
        fused = self._fused_output(module, args, kwargs)
        self._origins.take_over(output, fused)
        if self.stages is not None:
            self.stages.fused(self._modules.path_of(module), module.forward, args, kwargs, fused)
        return fused

    def _fused_output(self, module: nn.Module, args: Any, kwargs: Any) -> Any:  # noqa: ANN401
        """Return the module's output where nobody watches, which PyTorch computes in one fused step if it can.

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
        if self._kernels:
            how = f"it is computed in {listed(self._kernels)}, a kernel that shows no weights."
        elif isinstance(module, torch.jit.ScriptModule):
            how = "TorchScript compiled it, which shows no functions of PyTorch."
        else:
            how = f"{self._instead(path)}."
        self._trace.note(
            f"{path or 'The model'} ({type(module).__name__}) ran, but no attention was seen in it: {how}"
        )

    def _instead(self, path: str) -> str:
        """Say what was seen in a module in the place of an attention."""
        return next(
            (
                seen
                for where, seen in self._seen_instead.items()
                if not path or where == path or where.startswith(f"{path}.")
            ),
            "no softmax was followed from products of queries and keys to values",
        )


def _transform() -> str:
    """The transform that runs functions on tensors without numbers of their own; "" where none does."""
    if torch._C._get_tracing_state() is not None:
        return "torch.jit.trace"
    if torch._C._functorch.peek_interpreter_stack() is None:
        return ""
    kinds = {interpreter.key() for interpreter in retrieve_all_functorch_interpreters()}
    return "torch.vmap" if TransformType.Vmap in kinds else "a transform of torch.func"


def _has_one_stack(model: nn.Module) -> bool:
    """True where a model of ``transformers`` says so of itself: nothing is to be told apart in it."""
    return getattr(getattr(model, "config", None), "is_encoder_decoder", None) is False


def _may_be_fused(module: nn.Module) -> bool:
    """True if PyTorch may compute a module in one fused step, and it can be computed twice without a trace."""
    if type(module) not in _FUSED or not torch.backends.mha.get_fastpath_enabled():
        return False
    inner = list(module.modules())
    is_plain = all(type(part).__module__.startswith("torch.nn.") and not part.training for part in inner)
    has_hooks = any(part._forward_hooks or part._forward_pre_hooks for part in inner if part is not module)
    trains = torch.is_grad_enabled() and any(parameter.requires_grad for parameter in module.parameters())
    return is_plain and not has_hooks and not trains


def compiled_modules(named: Mapping[str, nn.Module]) -> str:
    """Those of a model's modules that ``torch.compile`` compiled, named; "" if there is none."""
    names = [
        name or "The model"
        for name, module in named.items()
        if type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None
    ]
    return listed(names, 3)
