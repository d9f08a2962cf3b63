"""Prove: does any output depend on a token that it must not depend on?"""

from __future__ import annotations

import numpy as np
import streamlit as st

from model.analysis.influence import Verdict
from model.mask_tools.intents import Intent
from visualizer.components.axis import SequenceName
from visualizer.components.tensor_grid.element import tensor_grid
from visualizer.runs.padding import effect_of_padding
from visualizer.runs.paths import layer_of, without_layer
from visualizer.runs.promises import Intended, Measurement, Proof, prove
from visualizer.safe_text import markdown_safe
from visualizer.session import state, widgets
from visualizer.session.mount import mount
from visualizer.settings.settings import Claim
from visualizer.stages.registry import entry_of
from visualizer.views.lab.case import Case
from visualizer.views.lab.intent import chosen_intent
from visualizer.views.lab.measure import measurement_of
from visualizer.views.lab.outputs import influence_panel, output_title

_KEPT: dict[Claim, str] = {
    "intended": "The model does what the mask should be",
    "promised": "Nothing passes where the masks forbid it",
    "causal": "No later token changes an earlier output",
}
_BROKEN: dict[Claim, str] = {
    "intended": "Something passes that should not:",
    "promised": "Something passes where the masks forbid it:",
    "causal": "A later token changes an earlier output:",
}


def render(case: Case) -> None:
    """Draw what padding does, the claim, the verdicts and the grids."""
    _padding(case)
    claim, sequence = _choose(case)
    intended = None
    if claim == "intended":
        intent = chosen_intent(case)
        cells = None if intent is None else intent.expected(case.context)
        if intent is None or cells is None:
            st.info("The claim is what the mask should be: say above that it is causal, a window or an expression.")
            return
        intended = Intended(case.attention.path, cells, intent.padding)
        words = intent.words_over(case.context)
        st.caption(markdown_safe(f"The claim: {words}, in every layer and head{_of_others(case, intent)}."))
    measurement = measurement_of(case, sequence)
    if measurement is None:
        return
    proof = prove(case.run, measurement, sequence, claim, intended)
    _verdict(case, proof, claim)
    _leak(case, proof, sequence)
    _grids(case, measurement, proof, sequence)
    st.caption(
        "Each cell is the Frobenius norm of the Jacobian of one row's output with respect to one token's "
        "embedding, exact and over every number of both: it is zero only where nothing passes. Measured in "
        f"{measurement.seconds:.1f} s."
    )


def _of_others(case: Case, intent: Intent) -> str:
    """What the claim takes of the attentions that it is not about."""
    if case.attention.has_the_list or case.of_encoder:
        return ", and so over all layers"
    but = ", but none should let padding through" if intent.padding else ""
    return f", and so over all layers; the other attentions let through what their masks say{but}"


def _padding(case: Case) -> None:
    """Whether padding changes the outputs of the tokens, by a run with and without."""
    effect = effect_of_padding(case.run)
    if effect is None:
        return
    what = "the logits" if effect.output == "logits" else "the output"
    if not effect.changes:
        st.success(
            f"**Passes.** Padding changes nothing: run without it, {what} of every token are the same: the largest "
            f"difference is {effect.largest:.2g}.",
            icon=":material/check:",
        )
        return
    rows = case.run.tokens["target" if "target" in case.run.tokens else "source"]
    label = markdown_safe(rows.labels[effect.row])
    settings = case.run.settings
    is_hidden = settings.score and "padding" in settings.mask
    seen = "the change of scores counts it" if is_hidden else "the masks let tokens see it"
    whys = {"padding_counted": "positions count the padding", "none": seen}
    why = whys.get(settings.fault, "the mask bug lets it through")
    st.error(
        f"**Fails.** Padding changes {what}: run without it, they differ by up to {effect.largest:.3g}, most at "
        f"token {effect.row} “{label}”: {why}.",
        icon=":material/close:",
    )


def _choose(case: Case) -> tuple[Claim, SequenceName]:
    """The claim and whose embeddings it is about; where one claim alone makes sense there is no choice."""
    selection = case.selection
    with st.container(horizontal=True, vertical_alignment="bottom", key="claims"):
        sequence: SequenceName = case.attention.keys
        if case.attention.queries == "target" and not case.attention.crosses:
            _choice("embeddings")
            sequence = selection.embeddings
        if sequence != case.attention.keys:
            return "promised", sequence
        _choice("claim")
    return selection.claim, sequence


def _choice(name: str) -> None:
    widgets.segments(name, required=True)


def _verdict(case: Case, proof: Proof, claim: Claim) -> None:
    leaking = [verdict for verdict in proof.verdicts if not verdict.passes]
    n_forbidden = proof.verdicts[-1].n_forbidden
    if leaking:
        st.error(f"**Fails.** {_BROKEN[claim]} {_where(leaking)}.", icon=":material/close:")
    if proof.cut_off.any():
        n_cut_off = int(proof.cut_off.sum())
        row, token = proof.cut_off.nonzero()[0].tolist()
        st.error(
            f"**Fails.** The masks cut off what should get through: {n_cut_off:,} "
            f"{'cell' if n_cut_off == 1 else 'cells'} of {_named(proof.output)}, such as row {row} from token "
            f"{token}.",
            icon=":material/close:",
        )
    if not leaking and not proof.cut_off.any():
        _kept(proof, claim, n_forbidden)
    if proof.unmeasured.any():
        st.caption(
            f"Of what should get through, {int(proof.unmeasured.sum()):,} cells measure 0 though the masks leave a "
            "way: this model's weights there are too small for its numbers, or pass nothing on."
        )
    if claim == "causal" and leaking and not _is_causal(case):
        st.caption("No causal mask was chosen for this model, so this is as it should be.")


def _kept(proof: Proof, claim: Claim, n_forbidden: int) -> None:
    """A claim that holds: green only if it could have failed, and what holds by construction is said to."""
    counted = (
        f"all {n_forbidden:,} cells of {_named(proof.output)} that must be zero are exactly zero, and so are those "
        "of every stage before."
    )
    if n_forbidden == 0:
        st.info("Nothing to prove: the claim forbids nothing over all layers, so it could not have failed.")
    elif claim == "promised":
        why = "The claim is made of these very masks, so a wrong mask keeps it too: it tests the model alone."
        st.info(f"**Holds by construction.** {_KEPT[claim]}: {counted} {why}", icon=":material/info:")
    else:
        st.success(f"**Passes.** {_KEPT[claim]}: {counted}", icon=":material/check:")
    if claim == "intended":
        n_through = int((proof.allowed[proof.output] & ~proof.unmeasured).sum())
        output = _named(proof.output)
        st.caption(f"Everything that should get through has a way; {n_through:,} cells of {output} do.")


def _named(output: str) -> str:
    if output == "logits":
        return "the logits"
    return "the encoder's output" if output.startswith("encoder.") else "the output"


def _is_causal(case: Case) -> bool:
    """Whether the masks of every layer and head hide later tokens."""
    kind = without_layer(case.module)
    masks = [mask.allowed for path, mask in case.run.promised.items() if without_layer(path) == kind]
    return not any(mask is None or bool(mask.expand(-1, -1, *case.size).triu(1).any()) for mask in masks)


def _where(leaking: list[Verdict]) -> str:
    return ", ".join(
        f"{output_title(verdict.path)} ({verdict.n_leaking:,} of {verdict.n_forbidden:,} cells)"
        for verdict in leaking
    )


def _leak(case: Case, proof: Proof, sequence: SequenceName) -> None:
    """Where it begins, with the way there."""
    leak = proof.leak
    if leak is None:
        return
    path = leak.path
    rows, columns = case.run.axes(path)[0].labels, case.run.tokens[sequence].labels
    row = f"{leak.row} “{markdown_safe(rows[leak.row])}”"
    token = f"{leak.token} “{markdown_safe(columns[leak.token])}”"
    title = entry_of(case.run, path).title
    st.markdown(
        f"It begins in **{markdown_safe(path)}** ({title}): there row {row} first depends on token {token}."
    )

    def go() -> None:
        stage, layer = without_layer(path), layer_of(path)
        state.select(view="step", stage=stage, layer=layer, query=leak.row, key=leak.token)

    st.button("Go to this stage", icon=":material/arrow_forward:", key="go_to_leak", on_click=state.callback(go))


def _grids(case: Case, measurement: Measurement, proof: Proof, sequence: SequenceName) -> None:
    panels = []
    for path, norms, verdict in zip(
        measurement.influence.paths, measurement.influence.norms.numpy(), proof.verdicts, strict=True
    ):
        forbidden = ~proof.allowed[path].numpy()
        held = forbidden & (norms == 0)
        panels.append(
            influence_panel(
                case.run,
                f"{'✓' if verdict.passes else '✗'} {output_title(path)}",
                norms,
                held,
                "the claim (it measures exactly 0)",
                sequence=sequence,
                of_encoder=case.of_encoder,
                subtitle=_of_leaks(verdict),
            )
        )
        if not verdict.passes:
            panels.append(
                influence_panel(
                    case.run,
                    f"Leaks · {output_title(path)}",
                    np.where(forbidden, norms, 0.0),
                    sequence=sequence,
                    of_encoder=case.of_encoder,
                    subtitle="the cells that must be zero and are not",
                )
            )
    mount(tensor_grid(panels, key="proof", layout="wrap"))


def _of_leaks(verdict: Verdict) -> str:
    if verdict.where is None:
        return f"{verdict.n_forbidden:,} cells must be 0 and are" if verdict.n_forbidden else "no cell must be 0"
    row, token = verdict.where
    return f"largest leak {verdict.largest:.3g}: row {row}, token {token}"
