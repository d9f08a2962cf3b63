"""A person's changes to the masks, checked on the masks that the model is then given."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headlight.masks.intents import Intent, compare, recognise
from headlight.masks.language import MaskExpressionError, express, parse
from model import CombinedMask
from visualizer.masks import MASK_NAMES
from visualizer.runs import masks_in_force
from visualizer.runs.compute import compute_run
from visualizer.runs.masks_in_force import (
    SHORT,
    as_expression,
    as_source,
    mask_context,
    masks_of_list,
    promised_masks,
)
from visualizer.runs.tokens import encode
from visualizer.settings.fields import changed
from visualizer.settings.painted_mask import EVERYWHERE, Scope, encode_cells, is_cells, read_planes
from visualizer.settings.settings import Selection, Settings
from visualizer.views.lab import mask_edits
from visualizer.views.lab.case import case_of
from visualizer.views.lab.intent import chosen_intent

BASE = Settings(text="the cat saw the dog", n_heads=2, n_layers=2, mask=("causal",), pad=2)
TOKENS = encode(BASE).sources[0]
CONTEXT = mask_context(TOKENS)
N = len(TOKENS)

scopes = st.builds(Scope, st.none() | st.integers(0, 1), st.none() | st.integers(0, 1))
masks = st.lists(st.booleans(), min_size=N * N, max_size=N * N).map(lambda bits: torch.tensor(bits).view(N, N))
few = settings(max_examples=25)  # finding an expression of random cells is slow, and has tests of its own
in_force = st.lists(st.sampled_from(MASK_NAMES[:-1]), unique=True).map(tuple)


def allowed(settings: Settings, layer: int = 0, head: int = 0) -> torch.Tensor:
    """Return the mask of a head, (T, T): True where the query may attend to the key."""
    combined = masks_of(settings)[layer].allowed
    if combined is None:
        return torch.ones(N, N, dtype=torch.bool)
    return combined.expand(1, BASE.n_heads, N, N)[0, head]


def masks_of(settings: Settings):
    return promised_masks(settings, {"source": (TOKENS,)})["encoder.self_attention"]


def beside(settings: Settings) -> CombinedMask:
    return masks_of_list(settings, N, torch.tensor([TOKENS.is_padding]))


def put_in_place(settings, scope, source):
    return mask_edits.put_in_place(settings, scope, source, beside(settings), CONTEXT)


def written(settings, scope, text):
    return mask_edits.with_expression(settings, scope, text, beside(settings), CONTEXT)


def every_head():
    return [(layer, head) for layer in range(BASE.n_layers) for head in range(BASE.n_heads)]


@few
@given(masks, scopes, in_force)
def test_painted_cells_are_what_the_heads_in_scope_are_given(cells, scope, names):
    before = replace(BASE, mask=names)
    after = mask_edits.with_cells(before, scope, cells, CONTEXT)
    for layer, head in every_head():
        expected = allowed(before, layer, head)
        assert torch.equal(allowed(after, layer, head), expected & cells if scope.covers(layer, head) else expected)


@few
@given(masks, masks, scopes, in_force)
def test_taking_over_changes_no_cell(everywhere, narrow, scope, names):
    settings = mask_edits.with_cells(replace(BASE, mask=names), EVERYWHERE, everywhere, CONTEXT)
    settings = mask_edits.with_cells(settings, scope, narrow, CONTEXT)
    taken = mask_edits.taken_over(settings, beside(settings), CONTEXT)
    assert taken.mask == (("custom",) if names else settings.mask)
    for layer, head in every_head():
        assert torch.equal(allowed(taken, layer, head), allowed(settings, layer, head))


@pytest.mark.parametrize("name", MASK_NAMES[:-1])
def test_a_mask_of_the_list_is_its_expression(name):
    settings = replace(BASE, mask=(name,), window=2, prefix=4, stride=2)
    expression = mask_edits.expression_of(name, settings, CONTEXT)
    assert torch.equal(allowed(settings), parse(expression).evaluate(CONTEXT))
    started = put_in_place(settings, EVERYWHERE, expression)
    assert started.mask == ("custom",)
    assert torch.equal(allowed(started), allowed(settings))


@few
@given(masks, scopes, in_force, st.none() | masks)
def test_what_is_put_in_place_holds_alone_on_its_heads_and_changes_no_other(cells, scope, names, before):
    settings = replace(BASE, mask=names)
    if before is not None:
        settings = mask_edits.with_cells(settings, Scope(1, 1), before, CONTEXT)
    after = put_in_place(settings, scope, mask_edits.source_of(cells, CONTEXT))
    for layer, head in every_head():
        is_narrower = before is not None and (layer, head) == (1, 1) and scope != Scope(1, 1)
        holds = scope.covers(layer, head) and not is_narrower
        assert torch.equal(allowed(after, layer, head), cells if holds else allowed(settings, layer, head))


def test_beside_a_decoder_the_padding_of_the_encoder_stays():
    settings = replace(BASE, architecture="encoder-decoder", target="der", mask=("causal", "padding"))
    case = case_of(compute_run(settings), changed(Selection(), attention="decoder"))
    after = case.put_in_place(settings, "k < 2")
    assert after.mask == ("padding", "custom")


@few
@given(masks, in_force)
def test_the_whole_expression_gives_the_same_cells_or_is_none(cells, names):
    settings = mask_edits.with_cells(replace(BASE, mask=names), EVERYWHERE, cells, CONTEXT)
    expression = mask_edits.whole_expression(settings, 0, 0, CONTEXT)
    if "custom" not in settings.mask:
        assert bool(expression) == bool(settings.mask)
    if expression:
        assert torch.equal(parse(expression).evaluate(CONTEXT), allowed(settings))


@few
@given(masks)
def test_cells_without_a_short_expression_are_kept_cell_by_cell(cells):
    source = as_source(cells, CONTEXT)
    expression = express(cells, CONTEXT)
    if bool(cells.all()):
        assert source == ""
    elif 0 < len(expression) <= SHORT:
        assert source == expression
    else:
        assert source == encode_cells((~cells).numpy())


def test_the_words_for_painted_cells_are_looked_for_once(monkeypatch):
    looked_for = []
    monkeypatch.setattr(masks_in_force, "express", lambda *given: looked_for.append(given) or express(*given))
    cells = torch.rand(N, N, generator=torch.Generator().manual_seed(1)) < 0.5
    painted = mask_edits.with_cells(BASE, EVERYWHERE, cells, mask_context(TOKENS))
    assert is_cells(painted.custom)
    assert as_expression(painted.custom, mask_context(encode(BASE).sources[0])) == express(cells, CONTEXT)
    assert len(looked_for) == 1


def test_the_body_of_a_mask_mod_is_kept_in_the_words_of_the_lab():
    body = "return (q_idx >= kv_idx) & ~(kv_idx == 2)"
    settings = written(BASE, EVERYWHERE, body)
    assert settings.custom == "q >= k and (not k == 2)"


def test_an_expression_is_kept_as_it_was_written_but_for_its_white_space():
    settings = written(BASE, EVERYWHERE, "  k<=q   and\n q-k < 3 ")
    assert settings.custom == "k<=q and q-k < 3"
    assert settings.mask == ("custom",)


@pytest.mark.parametrize("text", ["k <=", "k; q", "q // (k - k) == 0", "lambda: 0", "~AAAA"])
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(MaskExpressionError):
        written(BASE, EVERYWHERE, text)


def test_an_empty_expression_leaves_a_head_to_the_wider_painting():
    settings = written(BASE, EVERYWHERE, "k == q")
    settings = written(settings, Scope(None, 1), "k < 2")
    assert mask_edits.source_in(settings, Scope(0, 1)) == "k < 2"
    settings = written(settings, Scope(None, 1), "")
    assert read_planes(settings.custom) == {EVERYWHERE: "k == q"}
    assert mask_edits.source_in(settings, Scope(0, 1)) == "k == q"


def test_a_narrow_scope_begins_with_what_holds_there():
    settings = replace(BASE, custom="k <= q;1.*:k == q")
    assert mask_edits.source_in(settings, Scope(None, 1)) == "k <= q"
    assert mask_edits.source_in(settings, Scope(1, 1)) == "k == q"


def test_the_scope_follows_what_is_looked_at():
    looked_at = Selection(layer=1, head=3)
    scopes = [mask_edits.scope_of(changed(looked_at, scope=scope)) for scope in ("all", "layer", "head")]
    assert scopes == [Scope(), Scope(1, None), Scope(None, 3)]
    assert mask_edits.scope_of(changed(looked_at, scope="layer_head")) == Scope(1, 3)


def test_an_expression_of_the_head_holds_in_each_head_and_survives_being_taken_over():
    settings = replace(written(BASE, EVERYWHERE, "(h == 1) | (kv_idx == 0)"), mask=("causal", "custom"))
    assert settings.custom == "h == 1 or k == 0"
    local = torch.arange(N) == 0
    causal = torch.ones(N, N).tril().bool()
    for taken in (settings, mask_edits.taken_over(settings, beside(settings), CONTEXT)):
        assert torch.equal(allowed(taken, head=0), causal & local)
        assert torch.equal(allowed(taken, head=1), causal)
    whole = mask_edits.whole_expression(settings, 0, 1, CONTEXT)
    assert torch.equal(parse(whole).evaluate(CONTEXT), causal)


def test_an_expression_of_the_sequence_holds_in_each_of_a_batch():
    settings = written(replace(BASE, mask=()), EVERYWHERE, "b == 1 or k <= q")
    painted = promised_masks(settings, {"source": (TOKENS, TOKENS)})["encoder.self_attention"][0].allowed
    assert painted[:, 0].sum((1, 2)).tolist() == [N * (N + 1) // 2, N * N]


def test_a_prefix_behind_padding_is_the_same_as_a_mask_an_expression_and_an_intention():
    settings = replace(BASE, mask=("padding", "prefix"), prefix=2, pad=3, pad_side="left")
    run = compute_run(settings)
    case = case_of(run, changed(Selection(), intent="prefix:2+padding"))
    said = mask_edits.whole_expression(settings, 0, 0, case.context)
    assert torch.equal(parse(said).evaluate(case.context), case.allowed)
    assert compare(chosen_intent(case), case.allowed, case.context).agrees
    assert recognise(case.allowed, case.context) == Intent("prefix", 2, padding=True)
    as_position = replace(settings, mask=("padding", "custom"), custom="k < 2 or k <= q")
    wrong = case_of(compute_run(as_position), case.selection)
    found = compare(chosen_intent(wrong), wrong.allowed, wrong.context)
    assert "It is causal" in found.cause, "two positions are padding, so that no token is seen early"
    taken = mask_edits.taken_over(settings, case.beside_painting(settings), case.context)
    assert torch.equal(case_of(compute_run(taken), case.selection).allowed, case.allowed)
