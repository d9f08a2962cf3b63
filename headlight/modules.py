"""The running module of a model: known from hooks that stand beside the model and not in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import (
    _global_forward_hooks_with_kwargs,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

Function = Callable[..., Any]
Arguments = tuple[Any, ...]
Keywords = Mapping[str, Any]
"""A function of PyTorch, and what it is called with."""

Entered = Callable[[nn.Module], None]
Left = Callable[[nn.Module, Any, Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Running:
    """One call of a module.

    Attributes:
        module: the module.
        path: its path.
        number: that of the call among those of the model's modules, from 1; 0 for what runs around the model.
    """

    module: nn.Module
    path: str
    number: int


class RunningModules:
    """The modules of one model that are running in one thread, the innermost last.

    Attributes:
        named: every module of the model by its path, as ``named_modules`` gives them.
        n_calls: how many calls of them began.
        in_other_thread: the path of one that ran in another thread, where none is followed; None where none did.
    """

    def __init__(self, model: nn.Module) -> None:
        self.named = dict(model.named_modules())
        self._names: dict[int, str] = {
            id(module): name.replace("_orig_mod", "")
            .replace("..", ".")
            .strip(".")  # what torch.compile puts around
            for name, module in self.named.items()
        }
        self._running: list[Running] = []
        self.n_calls = 0
        self.in_other_thread: str | None = None
        self._outside = Running(model, "", 0)
        self._thread = threading.get_ident()

    @property
    def are_running(self) -> bool:
        """True while one of them runs."""
        return bool(self._running) and self._running[-1].number > 0

    @property
    def others_run(self) -> bool:
        """True while modules that are not of the model run, and it runs in none of them."""
        return bool(self._running) and self._running[-1].number == 0

    @property
    def innermost(self) -> Running:
        """The call of a module that runs; the model itself where none does."""
        return self._running[-1] if self._running else self._outside

    @property
    def path(self) -> str:
        """The path of the innermost running module; "" for the model itself, and where none runs."""
        return self.innermost.path

    def path_of(self, module: nn.Module) -> str:
        """The path of a module of the model."""
        return self._names[id(module)]

    @contextmanager
    def followed(self, entered: Entered, left: Left) -> Iterator[None]:
        """Follow what runs until the block ends, as it is written: nothing is compiled meanwhile.

        Args:
            entered: called with each module of the model before its ``forward``.
            left: called after it with the module, its arguments, its keywords and its output, which is None where
                the module raised an error. What it returns, unless that is None, is the output in its place.
        """

        def before(module: nn.Module, _args: Any) -> None:  # noqa: ANN401 - arguments of any module
            if not self._is_seen():
                if self.in_other_thread is None and threading.get_ident() != self._thread:
                    self.in_other_thread = self._names.get(id(module))
                return
            if id(module) in self._names:
                self.n_calls += 1
                self._running.append(Running(module, self.path_of(module), self.n_calls))
                entered(module)
            elif not self.are_running:
                self._running.append(Running(module, "", 0))

        def after(module: nn.Module, args: Any, *rest: Any) -> Any:  # noqa: ANN401
            is_own = id(module) in self._names
            if not self._is_seen() or not (is_own or self.others_run):
                return None
            while self._running and self._running.pop().module is not module:  # those that an error ended with it
                pass
            if not is_own:
                return None
            kwargs, output = rest if len(rest) == 2 else ({}, None)  # after an error PyTorch leaves keywords out
            return left(module, args, kwargs, output)

        # Hooks for all modules leave those of the model untouched, which PyTorch asks before it takes a fused path.
        handles = (
            register_module_forward_pre_hook(before),
            register_module_forward_hook(after, with_kwargs=True, always_call=True),
        )
        try:
            with torch.compiler.set_stance("force_eager"):
                yield
        finally:
            for handle in handles:
                handle.remove()
                _global_forward_hooks_with_kwargs.pop(handle.id, None)  # PyTorch leaves this one behind

    def _is_seen(self) -> bool:
        """True in this thread, but not where a backward pass computes again: no mode sees functions there."""
        return threading.get_ident() == self._thread and torch._C._len_torch_function_stack() > 0
