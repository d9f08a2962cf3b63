"""The same of a checkpoint: what its output, or a layer, depends on, what padding changes, where a leak begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from weakref import ref

import streamlit as st
from torch import Tensor

from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.dependence import depends, padding_ignored, rows_measured, where_it_begins
from headlight.pretrained.memory_needed import in_words
from headlight.pretrained.tokenized import tokenized
from model.analysis.influence import Influence
from model.texts import texts_of
from visualizer.runs.checkpoints import (
    MOST_BYTES,
    checkpoint_of,
    input_under_masks,
    n_bytes_of_all,
    of_line,
    words_of,
)
from visualizer.runs.promises import Measurement
from visualizer.safe_text import markdown_safe
from visualizer.settings.attentions import MaskedAttention, attention_named
from visualizer.settings.fields import MAX_TOKENS
from visualizer.settings.fitting import as_asked
from visualizer.views.lab.case import Case, case_in
from visualizer.views.lab.measure import made
from visualizer.views.watched.pretrained.door import weights_in_words
from visualizer.work.cache import Cache, cached_run

say = texts_of(__name__)
AT_ONCE = 6e10
"""Weights times tokens times rows up to which nobody has to ask: about two seconds on one core."""

_SENTENCES: Cache[Hashable, str] = Cache(room=64)
_PADDING: Cache[Hashable, tuple[bool, str]] = Cache(room=16)


def in_its_line(case: Case, attention: MaskedAttention | None = None) -> Case:
    """The case in the line of a batch by itself, without padding and edits.

    Args:
        case: the case.
        attention: the attention that it is of; None takes the one behind the output.
    """
    run = cached_run(replace(of_line(as_asked(case.run.settings), case.run.item), edits=""))
    return case_in(run, case.selection, attention or attention_named("decoder", run.settings.architecture))


def measurement_of(case: Case, *, of_layer: bool = False) -> Measurement | None:
    """The measurement of a case of a checkpoint, the only line of its text; None where there is none yet.

    Args:
        case: the case.
        of_layer: whether the layer that is looked at is measured, in place of the output.
    """
    settings, checkpoint = as_asked(case.run.settings), checkpoint_of(case.run.settings)
    after = case.run.attentions[case.module] if of_layer else None
    encoding = input_under_masks(settings)
    if (n_bytes := n_bytes_of_all(checkpoint, encoding)) > MOST_BYTES:
        st.error(say("too_large", size=in_words(n_bytes), most=in_words(MOST_BYTES)), icon=":material/error:")
        return None
    output = case.module if of_layer else "logits" if "logits" in case.run.trace else "output"
    n_tokens = case.size[0]

    def work(progress: Callable[[float], None]) -> Measurement:
        started = time.perf_counter()
        found = depends(checkpoint, encoding, progress, after=after)
        rows = found.rows if len(found.rows) < n_tokens else ()
        influence = Influence((output,), found.sizes[None])
        return Measurement(influence, {output: found.sizes != 0}, time.perf_counter() - started, rows)

    try:
        return made(
            (*_key(checkpoint, settings), output),
            work,
            is_quick=checkpoint.n_weights * n_tokens**2 <= AT_ONCE,
            how_much=say(
                "how_much",
                n_rows=len(rows_measured(n_tokens)),
                n_tokens=n_tokens,
                weights=weights_in_words(checkpoint.n_weights),
            ),
        )
    except ValueError as error:
        st.info(markdown_safe(str(error)))
        return None


def where_a_leak_begins(case: Case, rows: Tensor, token: int) -> str:
    """Find the first stage of which some rows, (T,) bool, depend on a token that they must not depend on."""
    settings, checkpoint = as_asked(case.run.settings), checkpoint_of(case.run.settings)
    key = (*_key(checkpoint, settings), tuple(rows.tolist()), token)
    if (found := _SENTENCES.get(key)) is not None:
        return found
    with st.spinner(say("computing")):
        return _SENTENCES.put(key, where_it_begins(checkpoint, input_under_masks(settings), rows, token))


def effect_of_padding(case: Case) -> tuple[bool, str] | None:
    """Return whether padding changes nothing for a batch's tokens, and a sentence on it; None without any."""
    settings, checkpoint = as_asked(case.run.settings), checkpoint_of(case.run.settings)
    encoding = tokenized(checkpoint, words_of(settings), MAX_TOKENS)
    if not any(piece.padding for line in encoding.lines for piece in line):
        return None
    key = _key(checkpoint, words_of(settings))
    if (found := _PADDING.get(key)) is not None:
        return found
    with st.spinner(say("computing")):
        return _PADDING.put(key, padding_ignored(checkpoint, encoding))


def _key(checkpoint: Checkpoint, of: Hashable) -> tuple[Hashable, ...]:
    """A key that does not keep the checkpoint in memory, and is not that of another under its name."""
    return ref(checkpoint), of
