"""Prove, of a checkpoint: whether it keeps to the masks in force, its own or others, for the text it reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary, ref

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from headlight.pretrained.checkpoint import Checkpoint
from headlight.pretrained.proving import Dependence, Leak, depends, padding_ignored
from headlight.pretrained.sizes import in_words
from headlight.pretrained.tokens import Piece, Tokenized, Words, tokenized
from model.analysis.reach import reach
from model.texts import texts_of
from visualizer.components.axis import Axis
from visualizer.components.tensor_grid.element import Panel, tensor_grid
from visualizer.runs.checkpoints import (
    MOST_BYTES,
    checkpoint_of,
    has_own_masks,
    input_under_masks,
    n_bytes_of_all,
    of_line,
    words_of,
)
from visualizer.runs.paths import without_layer
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe, visible
from visualizer.server.mount import mount
from visualizer.settings.fields import MAX_TOKENS
from visualizer.settings.fitting import as_asked
from visualizer.settings.settings import Settings, masked_attention
from visualizer.views.lab.case import Case
from visualizer.views.watched.pretrained.door import weights_in_words
from visualizer.work import background
from visualizer.work.cache import Kept, cached_run

say = texts_of(__name__)
AT_ONCE = 6e10
"""Weights times tokens times rows up to which nobody has to ask: about two seconds on one core."""


@dataclass(frozen=True, eq=False)
class _Measured:
    found: Dependence
    seconds: float


_PADDING: WeakKeyDictionary[Checkpoint, Kept[Words, tuple[bool, str]]] = WeakKeyDictionary()
_KEPT: WeakKeyDictionary[Checkpoint, Kept[Settings, _Measured]] = WeakKeyDictionary()


def render(case: Case) -> None:
    """Draw the verdicts on the masks that are in force, and which rows depend on which tokens."""
    settings = as_asked(case.run.settings)
    checkpoint = checkpoint_of(settings)
    _padding(checkpoint, words_of(settings))
    line = replace(of_line(settings, case.run.item), edits="")
    given, is_other = input_under_masks(line), not has_own_masks(line)
    judged = given.target or given.pieces
    if len(judged) < 2:
        st.info(say("one_token"), icon=":material/info:")
        return
    measured = _measured(checkpoint, given, line, _promised_of(cached_run(line)))
    if measured is None:
        return
    found, is_decoder = measured.found, checkpoint.part != "encoder"
    if is_decoder:
        _causal(found, judged)
    says_more = is_other or found.beyond_masks is not None or not torch.equal(found.forbidden, found.later)
    if says_more or not is_decoder:
        _promised(found, judged, is_other=is_other)
    _grid(found, judged)
    st.caption(_how(measured))


def _promised_of(run: Run) -> Tensor:
    """Return the tokens that the masks of all layers let through to each row of the output, (T, T) bool."""
    kind = masked_attention(run.settings.architecture)
    masks = [mask.allowed for path, mask in run.masks.items() if without_layer(path) == kind]
    return reach(masks, len(run.tokens["target" if "target" in run.tokens else "source"]))[-1]


def _padding(checkpoint: Checkpoint, words: Words) -> None:
    """Say whether the padding of a batch changes anything for its tokens."""
    given = tokenized(checkpoint, words, MAX_TOKENS)
    if not any(piece.padding for line in given.lines for piece in line):
        return
    kept = _PADDING.setdefault(checkpoint, Kept(room=16))
    found = kept.get(words)
    if found is None:
        with st.spinner(say("computing")):
            found = kept.keep(words, padding_ignored(checkpoint, given))
    holds, sentence = found
    if holds:
        st.success(say("batch_passes", why=markdown_safe(sentence)), icon=":material/check:")
    else:
        st.error(say("batch_fails", why=markdown_safe(sentence)), icon=":material/close:")


def _measured(checkpoint: Checkpoint, given: Tokenized, settings: Settings, promised: Tensor) -> _Measured | None:
    """Return what was measured: at once where that is quick, else when it is asked for; None before."""
    kept = _KEPT.setdefault(checkpoint, Kept(room=16))
    if (found := kept.get(settings)) is not None:
        return found
    if (n_bytes := n_bytes_of_all(checkpoint, given)) > MOST_BYTES:
        st.error(say("too_large", size=in_words(n_bytes), most=in_words(MOST_BYTES)), icon=":material/error:")
        return None

    def work(progress: Callable[[float], None]) -> None:
        started = time.perf_counter()
        found = depends(checkpoint, given, promised, progress)
        kept.keep(settings, _Measured(found, time.perf_counter() - started))

    n_tokens, n_weights = len(promised), checkpoint.n_weights
    if n_weights * n_tokens**2 <= AT_ONCE:
        background.at_once(work, say("doing"))
        return kept.get(settings)
    st.caption(say("how_long", n_tokens=n_tokens, weights=weights_in_words(n_weights)))
    background.offer(
        "pretrained_proof",
        (ref(checkpoint), settings),
        say("measure"),
        lambda report: work(partial(report, say("doing"))),
    )
    return kept.get(settings)


def _causal(found: Dependence, pieces: tuple[Piece, ...]) -> None:
    """Say whether no row depends on a later token: the claim of every decoder."""
    if found.ahead is None:
        st.success(say("causal", n_derivatives=int(found.later.sum())), icon=":material/check:")
        return
    st.error(say("looks_ahead", leak=_leak(found.ahead, pieces)), icon=":material/close:")
    if bool((found.later & ~found.forbidden).any()):
        st.caption(say("allowed_ahead"))


def _promised(found: Dependence, pieces: tuple[Piece, ...], *, is_other: bool) -> None:
    """Say whether nothing passes where the masks forbid it."""
    n_forbidden = int(found.forbidden.sum())
    if n_forbidden == 0:
        st.info(say("nothing_forbidden"), icon=":material/info:")
    elif found.beyond_masks is not None:
        st.error(say("beyond_masks", leak=_leak(found.beyond_masks, pieces)), icon=":material/close:")
    elif is_other:
        st.success(say("other_kept", n_derivatives=n_forbidden), icon=":material/check:")
    else:
        st.info(say("own_kept", n_derivatives=n_forbidden), icon=":material/info:")


def _leak(leak: Leak, pieces: tuple[Piece, ...]) -> str:
    row, token = (f"{place} “{markdown_safe(visible(pieces[place].text))}”" for place in (leak.row, leak.token))
    return say("leak", row=row, token=token, stage=markdown_safe(leak.stage))


def _grid(found: Dependence, pieces: tuple[Piece, ...]) -> None:
    labels = tuple(visible(piece.text) for piece in pieces)
    sizes = found.sizes.numpy()
    held = (found.forbidden & (found.sizes == 0)).numpy()
    panel = Panel(
        name="influence",
        title=say("title"),
        subtitle=say("subtitle", n_rows=len(found.rows), n_tokens=len(labels)),
        array=sizes,
        rows=Axis("query", tuple(labels[row] for row in found.rows), None),
        columns=Axis("key", labels, None),
        role="residual",
        bounds=(0.0, float(sizes.max()) or 1.0),
        blocked=held.astype(np.uint8),
        blocked_by=(say("blocked_by"),),
    )
    mount(tensor_grid((panel,), key="pretrained_proof_grid"))


def _how(measured: _Measured) -> str:
    found = measured.found
    sample = say("sample", n_rows=len(found.rows), n_tokens=found.n_tokens)
    rows = say("every_row") if len(found.rows) == found.n_tokens else sample
    return say("how", rows=rows, seconds=measured.seconds)
