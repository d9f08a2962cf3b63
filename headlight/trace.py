"""The trace of a pass: its attentions, and sentences on what could not be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import overload

from torch import Tensor

from headlight.attentions import Attention
from headlight.inputs import Inputs
from headlight.notebook import images_of, said_of, said_of_steps
from headlight.patterns import Folded, find_patterns
from headlight.recording import MOST_BYTES, Content, Texts, read, to_bytes, write
from headlight.report import count_of
from headlight.stages import Stage
from model.texts import listed
from model.tracing import nearest

Tokens = Sequence[object] | Tensor
"""The text or the id of each token of a sequence."""


class Trace(Sequence[Attention]):
    """The attentions of the passes that were watched, in the order computed; by number or by path.

    Attributes:
        tokens: the text of each token, where a recording holds it; else empty.
        texts: the same of several sequences, or of an encoder and a decoder.
        inputs: ids, masks and positions that the model was called with, the first time.
        stages: every operation by path, in the order computed, where all is kept; else empty.
        parameters: the model's parameters and buffers that the stages name, where all is kept; no copies.
    """

    def __init__(
        self,
        attentions: Sequence[Attention] = (),
        notes: Sequence[str] = (),
        stages: Mapping[str, Stage] | None = None,
    ) -> None:
        self._attentions = list(attentions)
        self._notes = list(notes)
        self.stages: dict[str, Stage] = dict(stages or {})
        self.tokens: tuple[str, ...] = ()
        self.texts = Texts()
        self.inputs = Inputs()
        self.parameters: dict[str, Tensor] = {}

    def __repr__(self) -> str:
        n = count_of(len(self), "attention")
        return f"<Trace of {n}: {listed(self.paths, 3)}>" if self else "<Trace without an attention>"

    def _repr_html_(self) -> str:
        said = said_of(self._attentions, self.notes, self.inputs)
        return said + self._pictures() + said_of_steps(len(self.stages), list(self.patterns.values()))

    def _pictures(self) -> str:
        """The pictures of the app; images where it is not installed, or has too much or nothing to draw."""
        try:
            shown: str = import_module("headlight").show(self)._repr_html_()
        except (ImportError, ValueError):
            return images_of(self._attentions, self.inputs, self.tokens)
        return shown

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of each attention."""
        return tuple(attention.path for attention in self._attentions)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what could not be seen, and on how what was seen differs from an unwatched pass."""
        return tuple(self._notes)

    @property
    def nbytes(self) -> int:
        """The memory of what is kept, in bytes; what attentions share is counted once for each."""
        values = [stage.value for stage in self.stages.values() if stage.value is not None]
        return sum(attention.nbytes for attention in self._attentions) + sum(value.nbytes for value in values)

    @cached_property
    def patterns(self) -> Mapping[str, Folded]:
        """Stages that are one known step together, such as RMSNorm or rotary positions, by path.

        They are found when they are first asked for, which is to be after the pass; ``stages`` stays as it is.
        """
        return find_patterns(self.stages, self.parameters)

    @overload
    def __getitem__(self, which: int | str) -> Attention: ...
    @overload
    def __getitem__(self, which: slice) -> Trace: ...
    def __getitem__(self, which: int | str | slice) -> Attention | Trace:
        """An attention by number or path, or a part of the trace.

        Raises:
            IndexError: there are fewer attentions.
            KeyError: none has the path; the message names the nearest one.
        """
        if isinstance(which, slice):
            part = self.replaced(self._attentions[which])
            part._notes = list(self._notes)
            return part
        if isinstance(which, int):
            return self._attentions[which]
        for attention in self._attentions:
            if attention.path == which:
                return attention
        raise KeyError(f"no attention {which!r} was seen{nearest(which, self.paths)}")

    def __len__(self) -> int:
        return len(self._attentions)

    def __iter__(self) -> Iterator[Attention]:
        return iter(self._attentions)

    def append(self, attention: Attention) -> None:
        """Add what was seen next."""
        self._attentions.append(attention)

    def replaced(self, attentions: Iterable[Attention]) -> Trace:
        """The same pass with other attentions."""
        found = copy(self)
        found._attentions = list(attentions)
        return found

    def note(self, sentence: str) -> None:
        """Add a sentence, unless it was said already."""
        if sentence not in self._notes:
            self._notes.append(sentence)

    def save(self, path: str | Path, *, tokens: Tokens = (), target: Tokens = (), parameters: bool = False) -> None:
        """Write everything that is kept into a file, in the safetensors format.

        Args:
            path: where to; ``.headlight`` is the usual ending.
            tokens: the text or the id of each token, to be shown beside the numbers.
            target: the same of a decoder beside an encoder.
            parameters: whether the parameters that the stages name are written too, which can take far more than
                the rest; with them each number of a stage can be followed back to those it was computed from.
        """
        write(self._content(tokens, target, parameters), path)

    def to_bytes(self, *, tokens: Tokens = (), target: Tokens = (), parameters: bool = False) -> bytes:
        """Return the bytes that ``save`` writes into a file."""
        return to_bytes(self._content(tokens, target, parameters))

    def _content(self, tokens: Tokens, target: Tokens, parameters: bool) -> Content:
        labels = texts_of_tokens(tokens) or self.tokens
        targets = texts_of_tokens(target)
        texts = Texts((labels,), (targets,)) if targets else self.texts
        weights = self.parameters if parameters else {}
        return Content(
            self._attentions, tuple(self.stages.values()), self._notes, labels, weights, texts, self.inputs
        )


def texts_of_tokens(tokens: Tokens) -> tuple[str, ...]:
    """The text of each token; its id where that is what there is."""
    return tuple(map(str, tokens.flatten().tolist() if isinstance(tokens, Tensor) else tokens))


def load(file: str | Path | bytes, *, most_bytes: int = MOST_BYTES) -> Trace:
    """Read a trace that ``Trace.save`` wrote. Nothing in the file is run, and everything in it is checked.

    Args:
        file: its path, or what it holds.
        most_bytes: the longest file that is read.

    Raises:
        ValueError: it is too long, no recording, of a later version, or damaged; one sentence says which.
        OSError: it cannot be opened.
    """
    content = read(file, most_bytes=most_bytes)
    trace = Trace(content.attentions, content.notes, {stage.path: stage for stage in content.stages})
    trace.tokens = tuple(content.tokens)
    trace.parameters.update(content.parameters)
    trace.texts = content.texts
    trace.inputs = content.inputs
    return trace
