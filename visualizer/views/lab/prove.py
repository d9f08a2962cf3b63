"""Prove: does any output depend on a token that it must not depend on?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st
import torch

from headlight.masks.intents import Intent
from model.analysis.influence import Verdict
from model.texts import texts_of
from visualizer.components.axis import SequenceName
from visualizer.components.tensor_grid.element import tensor_grid
from visualizer.runs.padding import effect_of_padding, padding_is_seen
from visualizer.runs.paths import layer_of, of_every_layer, without_layer
from visualizer.runs.promises import Intended, Measurement, Proof, prove
from visualizer.runs.run import Run
from visualizer.safe_text import markdown_safe
from visualizer.server.mount import mount
from visualizer.settings.fields import FAULTS_OF_MASKS
from visualizer.settings.view_choices import Claim
from visualizer.stages.registry import entry_of
from visualizer.state import state, widgets
from visualizer.views.lab import measure_checkpoint as of_checkpoint
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import chosen_intent
from visualizer.views.lab.measure import measurement_of
from visualizer.views.lab.outputs import influence_panel, output_title

say = texts_of(__name__)
_KEPT: dict[Claim, str] = {
    "intended": say("intended_kept"),
    "promised": say("promised_kept"),
    "causal": say("causal_kept"),
}
_BROKEN: dict[Claim, str] = {
    "intended": say("intended_broken"),
    "promised": say("promised_broken"),
    "causal": say("causal_broken"),
}


def render(case: Case) -> None:
    """Draw what padding does, the claim, the verdicts and the grids."""
    is_checkpoint = bool(case.run.attentions)
    is_about_output = case.attention.has_the_list or not is_checkpoint
    if is_checkpoint:
        _padding_of_batch(case)
        case = of_checkpoint.in_its_line(case)
    else:
        _padding(case)
    claim, sequence = _choose(case)
    intended = _intended(case) if claim == "intended" and is_about_output else None
    if claim == "intended" and intended is None:
        if not is_checkpoint:
            st.info(say("no_claim"))
            return
        claim = _usual_claim(case, is_about_output=is_about_output)
    measurement = of_checkpoint.measurement_of(case) if is_checkpoint else measurement_of(case, sequence)
    if measurement is None:
        return
    proof = prove(case.run, measurement, sequence, claim, intended)
    _verdict(case, measurement, proof, claim)
    if is_checkpoint:
        _leak_of_checkpoint(case, measurement, proof, sequence)
    else:
        _leak(case, proof, sequence)
    _grids(case, measurement, proof, sequence)
    st.caption(_how(case, measurement))


def _usual_claim(case: Case, *, is_about_output: bool) -> Claim:
    """The claim on a checkpoint where nothing was said of the mask that its output follows from."""
    if case.run.settings.architecture == "encoder":
        st.caption(say("promised_unless_said"))
        return "promised"
    st.caption(say("causal_unless_said") if is_about_output else say("causal_of_decoder"))
    return "causal"


def _intended(case: Case) -> Intended | None:
    """The cells that the mask should leave open; None where nothing was said."""
    intent = chosen_intent(case)
    cells = None if intent is None else intent.expected(case.context)
    if intent is None or cells is None:
        return None
    st.caption(markdown_safe(_claimed(case, intent)))
    return Intended(case.attention.path, cells, intent.padding)


def _claimed(case: Case, intent: Intent) -> str:
    """The claim, and what it takes of the attentions that it is not about."""
    words = intent.words_over(case.context)
    if case.run.attentions:
        return say("claim_at_the_end", words=words, n_layers=case.n_layers)
    if case.attention.has_the_list or case.of_encoder:
        return say("claim", words=words)
    return say("claim_but_padding", words=words) if intent.padding else say("claim_beside", words=words)


def _padding(case: Case) -> None:
    """Say whether padding changes the outputs of the tokens, by a run with and without."""
    effect = None if case.run.interventions else effect_of_padding(case.run)  # rows of edits would be other tokens
    if effect is None:
        return
    what = say("logits") if effect.output == "logits" else say("output")
    if not effect.changes:
        st.success(say("padding_ignored", what=what, largest=effect.largest), icon=":material/check:")
        return
    rows = case.run.tokens["target" if "target" in case.run.tokens else "source"]
    label = markdown_safe(rows.labels[effect.row])
    why = why_padding_matters(case.run)
    st.error(
        say("padding_matters", what=what, largest=effect.largest, row=effect.row, label=label, why=why),
        icon=":material/close:",
    )


def why_padding_matters(run: Run) -> str:
    """Say why padding changes the outputs of a run that it changes."""
    if padding_is_seen(run):
        return say("padding_seen")
    if run.settings.fault == "padding_counted" and run.settings.positions != "none":
        return say("padding_counted")
    return say("padding_let_through") if run.settings.fault in FAULTS_OF_MASKS else say("padding_scored")


def _padding_of_batch(case: Case) -> None:
    """Say whether the padding of a batch changes anything for its tokens."""
    effect = of_checkpoint.effect_of_padding(case)
    if effect is None:
        return
    holds, why = effect[0], markdown_safe(effect[1])
    if holds:
        st.success(say("batch_passes", why=why), icon=":material/check:")
    else:
        st.error(say("batch_fails", why=why), icon=":material/close:")


def _choose(case: Case) -> tuple[Claim, SequenceName]:
    """The claim and whose embeddings it is about; where one claim alone makes sense there is no choice."""
    selection = case.selection
    with st.container(horizontal=True, vertical_alignment="bottom", key="claims"):
        sequence: SequenceName = case.attention.keys
        if case.attention.queries == "target" and not case.attention.crosses and not case.run.attentions:
            widgets.segments("embeddings", required=True)
            sequence = selection.lab.embeddings
        if sequence != case.attention.keys:
            return "promised", sequence
        widgets.segments("claim", required=True)
    return selection.lab.claim, sequence


def _verdict(case: Case, measurement: Measurement, proof: Proof, claim: Claim) -> None:
    leaking = [verdict for verdict in proof.verdicts if not verdict.passes]
    if leaking:
        st.error(say("fails", broken=_BROKEN[claim], where=_where(leaking)), icon=":material/close:")
    if proof.cut_off.any():
        n_cut_off = int(proof.cut_off.sum())
        row, token = proof.cut_off.nonzero()[0].tolist()
        row, output = measurement.row(row), _named(measurement.output)
        one = say("cut_off_one", output=output, row=row, token=token)
        many = say("cut_off_many", n_cut_off=n_cut_off, output=output, row=row, token=token)
        st.error(one if n_cut_off == 1 else many, icon=":material/close:")
    if not leaking and not proof.cut_off.any():
        _kept(case, measurement, proof, claim)
    if proof.unmeasured.any():
        st.caption(say("unmeasured", n_cells=int(proof.unmeasured.sum())))
    if claim == "causal" and leaking and not _is_causal(case):
        st.caption(say("no_causal_mask"))


def _kept(case: Case, measurement: Measurement, proof: Proof, claim: Claim) -> None:
    """A claim that holds: green only if it could have failed, and what holds by construction is said to."""
    output, n_forbidden = _named(measurement.output), proof.verdicts[-1].n_forbidden
    is_checkpoint = bool(case.run.attentions)
    kept = say("intended_kept_at_the_end") if is_checkpoint and claim == "intended" else _KEPT[claim]
    before = "" if is_checkpoint else say("and_before")
    if n_forbidden == 0:
        st.info(say("nothing_forbidden"))
    elif claim == "promised":
        sentence = say("holds", kept=kept, n_cells=n_forbidden, output=output, before=before)
        st.info(sentence, icon=":material/info:")
    else:
        sentence = say("passes", kept=kept, n_cells=n_forbidden, output=output, before=before)
        st.success(sentence, icon=":material/check:")
    if claim == "intended":
        n_through = int((proof.allowed[measurement.output] & ~proof.unmeasured).sum())
        st.caption(say("gets_through", n_cells=n_through, output=output))


def _named(output: str) -> str:
    if output == "logits":
        return say("the_logits")
    return say("the_encoders_output") if output.startswith("encoder.") else say("the_output")


def _is_causal(case: Case) -> bool:
    """True if the masks of every layer and head hide later tokens."""
    masks = [mask.allowed for mask in of_every_layer(case.run.promised, case.attention.path)]
    return not any(mask is None or bool(mask.expand(-1, -1, *case.size).triu(1).any()) for mask in masks)


def _where(leaking: list[Verdict]) -> str:
    return ", ".join(
        say("leaking", output=output_title(each.path), n_leaking=each.n_leaking, n_cells=each.n_forbidden)
        for each in leaking
    )


def _leak(case: Case, proof: Proof, sequence: SequenceName) -> None:
    """Say where it begins, with the way there."""
    leak = proof.leak
    if leak is None:
        return
    path = leak.path
    rows, columns = case.run.axes(path)[0].labels, case.run.tokens[sequence].labels
    row, token = _labelled(leak.row, rows), _labelled(leak.token, columns)
    title = entry_of(case.run, path).title
    st.markdown(say("begins", path=markdown_safe(path), title=title, row=row, token=token))

    def go() -> None:
        stage, layer = without_layer(path), layer_of(path)
        state.select(view="step", stage=stage, layer=layer, query=leak.row, key=leak.token)

    st.button(say("go"), icon=":material/arrow_forward:", key="go_to_leak", on_click=state.callback(go))


def _leak_of_checkpoint(case: Case, measurement: Measurement, proof: Proof, sequence: SequenceName) -> None:
    """Say where it begins; the first operation with a leak is searched for."""
    leak = proof.leak
    if leak is None:
        return
    labels = case.run.tokens[sequence].labels
    forbidden = torch.zeros(len(labels), dtype=torch.bool)
    forbidden[measurement.measured] = ~proof.allowed[leak.path][:, leak.token]
    row, token = _labelled(measurement.row(leak.row), labels), _labelled(leak.token, labels)
    stage = markdown_safe(of_checkpoint.where_a_leak_begins(case, forbidden, leak.token))
    st.markdown(say("begins_in_checkpoint", row=row, token=token, stage=stage))


def _labelled(number: int, labels: Sequence[str]) -> str:
    return f"{number} “{markdown_safe(labels[number])}”"


def _grids(case: Case, measurement: Measurement, proof: Proof, sequence: SequenceName) -> None:
    panel = partial(influence_panel, case, measurement.rows, sequence=sequence)
    panels = []
    for path, norms, verdict in zip(
        measurement.influence.paths, measurement.influence.norms.numpy(), proof.verdicts, strict=True
    ):
        forbidden = ~proof.allowed[path].numpy()
        held = forbidden & (norms == 0)
        title, subtitle = f"{'✓' if verdict.passes else '✗'} {output_title(path)}", _of_leaks(measurement, verdict)
        panels.append(panel(title, norms, held, say("blocked_by"), subtitle=subtitle))
        if not verdict.passes:
            leaks = np.where(forbidden, norms, 0.0)
            title, subtitle = say("leaks", output=output_title(path)), say("leaks_subtitle")
            panels.append(panel(title, leaks, subtitle=subtitle))
    mount(tensor_grid(panels, key="proof", layout="wrap"))


def _how(case: Case, measurement: Measurement) -> str:
    if not case.run.attentions:
        return say("how", seconds=measurement.seconds)
    n_rows, n_tokens = measurement.influence.norms.shape[1:]
    rows = say("sample", n_rows=n_rows, n_tokens=n_tokens) if measurement.rows else say("every_row")
    return say("how_sampled", rows=rows, seconds=measurement.seconds)


def _of_leaks(measurement: Measurement, verdict: Verdict) -> str:
    if verdict.where is None:
        return say("all_zero", n_cells=verdict.n_forbidden) if verdict.n_forbidden else say("none_forbidden")
    row, token = verdict.where
    return say("largest_leak", largest=verdict.largest, row=measurement.row(row), token=token)
