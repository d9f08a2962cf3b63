"""Bugs of real masks, as their threads tell them: what was passed where, what was meant, and what says it.

The arrays are made as the threads describe, on fewer tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from headlight.masks.beside_intent import findings_under
from headlight.masks.destinations import DESTINATIONS, passed_to
from headlight.masks.intents import Intent
from headlight.masks.language import MaskContext
from headlight.masks.mask_case import MaskCase
from tests.controls import chosen
from tests.test_app import open_app
from visualizer.runs.compute import compute_run
from visualizer.safe_text import markdown_safe
from visualizer.settings.fields import changed
from visualizer.settings.link import read_query
from visualizer.settings.settings import Selection
from visualizer.views.lab.case import case_of
from visualizer.views.lab.intent import chosen_intent, padding_of
from visualizer.views.lab.paint import findings_of

T = 6
LATER = torch.ones(T, T).triu(1)
CAUSAL = LATER == 0
QUERY, KEY = torch.arange(T)[:, None], torch.arange(T)
LOWEST = {dtype: torch.finfo(dtype).min for dtype in (torch.float16, torch.bfloat16)}


def window(width: int) -> Tensor:
    return CAUSAL & ~CAUSAL.tril(-width)


def filled(blocked: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(blocked.shape, dtype=dtype).masked_fill(blocked, LOWEST[dtype])


PADDED_LEFT = torch.tensor([True, True, False, False, False, False])


@dataclass(frozen=True)
class Bug:
    """One mask as it was passed, and what is to be said of it."""

    source: str
    array: Tensor
    place: str
    intent: Intent
    sentence: str
    padding: tuple[int, ...] = ()
    documents: tuple[int, ...] = ()


BUGS = (
    Bug("wfondrie/depthcharge#38", LATER, "transformer", Intent("causal"), "1 and 0 block nothing"),
    Bug("pytorch/pytorch#21518", 1 - LATER, "mha_attn_mask", Intent("causal"), "1 and 0 block nothing"),
    Bug("huggingface/transformers#542", 1 - LATER, "added", Intent("causal"), "1 and 0 block nothing"),
    Bug("rasbt/LLMs-from-scratch#1061", LATER.bool(), "sdpa", Intent("causal"), "It is inverted"),
    Bug(
        "pytorch/pytorch#170400",
        torch.tensor([[False, False, False, False, True, True]]).expand(T, T),
        "sdpa",
        Intent("bidirectional", padding=True),
        "It is inverted",
        padding=(4, 5),
    ),
    Bug("huggingface/transformers#39408", window(4), "sdpa", Intent("window", 3), "not 3: off by one"),
    Bug("huggingface/transformers#29623", window(5), "flex", Intent("window", 4), "not 4: off by one"),
    Bug(
        "huggingface/transformers#26792",
        (CAUSAL & torch.ones(T, T).triu(-3).bool()).long(),
        "keras",
        Intent("window", 3),
        "3 cells open that should be blocked: query 3 sees key 0. It is causal, window 4",
    ),
    Bug("ml-explore/mlx-lm#390", window(3), "jax", Intent("window", 2), "not 2: off by one"),
    Bug(
        "pytorch/pytorch#103082",
        torch.ones(1, 8).tril().bool(),
        "sdpa",
        Intent("cached", 7),
        "7 cells blocked that should be open: query 0 does not see key 1",
    ),
    Bug(
        "pytorch/executorch#21749",
        torch.ones(3, 8).tril().bool(),
        "sdpa",
        Intent("cached", 5),
        "15 cells blocked that should be open: query 0 does not see key 1. It is causal, top-left aligned.",
    ),
    Bug(
        "huggingface/transformers#46634",
        CAUSAL,
        "sdpa",
        Intent("causal", documents=True),
        "8 cells open that should be blocked: query 4 sees key 0. The documents are not isolated",
        documents=(0, 0, 0, 0, 1, 1),
    ),
    Bug(
        "NVIDIA-NeMo/Automodel#2658",
        filled(LATER.bool(), torch.bfloat16) + filled(PADDED_LEFT.expand(T, T), torch.bfloat16),
        "added",
        Intent("causal"),
        "two fills seem to have been added",
    ),
    Bug(
        "huggingface/transformers#27114",
        filled(LATER.bool(), torch.float16) + filled(LATER.bool() | PADDED_LEFT[:, None], torch.float16),
        "hugging_face_4d",
        Intent("causal"),
        "-65504 + -65504 is -inf in float16",
    ),
    Bug(
        "huggingface/transformers#31673",
        LATER * -math.inf,
        "hugging_face_4d",
        Intent("causal"),
        "0 * -inf gives NaN",
    ),
    Bug(
        "pytorch/pytorch#103963",
        CAUSAL & (torch.arange(T) < 4)[:, None],
        "sdpa",
        Intent("painted"),
        "No key is left for queries 4 and 5",
    ),
    Bug(
        "tilde-research/nsa-release#3",
        QUERY // 2 < KEY // 2,
        "flex",
        Intent("block_causal", 2),
        "It is inverted",
    ),
    Bug(
        "huggingface/transformers#30918",
        torch.ones(T, T),
        "hugging_face_4d",
        Intent("prefix", 3),
        "The number 1 is added to scores that stay open, which is a bias and blocks nothing",
    ),
    Bug(
        "huggingface/transformers#35855",
        (KEY < 3) | CAUSAL,
        "sdpa",
        Intent("prefix", 1, padding=True),  # of the first three positions two are padding
        "query 2 sees key 0. Padding is not ignored",
        padding=(0, 1),
    ),
    Bug(
        "trymirai/lalamo#200",
        (torch.ones(3, 8).tril(5) * torch.ones(3, 8).triu(-2)).bool(),
        "jax",
        Intent("window", 3),
        "12 cells open that should be blocked: query 0 sees key 0. It is causal, bottom-right aligned",
    ),
    Bug(
        "trymirai/lalamo#273",
        KEY < QUERY - 1,
        "jax",
        Intent("causal"),
        "Every query sees 2 keys too few, k <= q - 2: off by 2",
    ),
    Bug(
        "onnx/onnx#8068",
        torch.ones(3, 8).tril().bool(),
        "sdpa",
        Intent("causal"),
        "It is causal from the other corner, top-left aligned: k <= q",
    ),
    Bug(
        "pytorch/executorch#21384",
        torch.zeros(T, T).masked_fill(LATER.bool(), -math.inf),
        "added",
        Intent("window", 2),
        "10 cells open that should be blocked: query 2 sees key 0. It is causal",
    ),
    Bug("keras-team/keras#23038", torch.ones(T, T).bool(), "keras", Intent("causal"), "It is bidirectional"),
    Bug("HKUSTDial/flash-sparse-attention#146", CAUSAL.long(), "added", Intent("causal"), "1 and 0 block nothing"),
    Bug(
        "unslothai/unsloth#9848",
        CAUSAL & ~PADDED_LEFT,
        "sdpa",
        Intent("causal", padding=True),
        "No key is left for padding queries 0 and 1",
        padding=(0, 1),
    ),
)


# The window is cut out of what is blocked, so that keys far ahead become open again.
CUT_OUT = torch.zeros(T, T).masked_fill((LATER == 1) & torch.ones(T, T).tril(3).bool(), -math.inf)
BUGS += (
    Bug(
        "huggingface/transformers#41228",
        CUT_OUT,
        "added",
        Intent("window", 3),
        "9 cells open that should be blocked: query 0 sees key 4",
    ),
    Bug("AI-Hypercomputer/maxtext#4289", window(4), "jax", Intent("window", 3), "not 3: off by one"),
    Bug(
        "huggingface/transformers#47010",
        (QUERY - KEY).abs() < 3,
        "sdpa",
        Intent("window_both", 4),
        "keys less than 3 away, not 4: off by one",
    ),
    Bug(
        "gittensor-ai-lab/sparkinfer#3",
        torch.ones(3, 8).tril().bool(),
        "sdpa",
        Intent("causal"),
        "top-left aligned: k <= q",
    ),
    Bug(
        "ml-explore/mlx#2967",
        torch.ones(5, 2).tril(-3).bool(),
        "sdpa",
        Intent("causal"),
        "No key is left for queries 0, 1 and 2: this function gives such a row weights of zero",
    ),
    Bug(
        "DeepOpt-com/WrinkleFree-Monorepo#53",
        CAUSAL,
        "sdpa",
        Intent("causal", documents=True),
        "The documents are not isolated",
        documents=(0, 0, 0, 0, 1, 1),
    ),
    Bug(
        "meta-pytorch/attention-gym#98",
        (QUERY - KEY).abs() < 3,
        "flex",
        Intent("window_both", 3, documents=True),
        "The documents are not isolated",
        documents=(0, 0, 0, 1, 1, 1),
    ),
    Bug(
        "facebookresearch/fairseq#537",
        ~CAUSAL,
        "transformer",
        Intent("causal", padding=True),
        "Padding is not ignored",
        padding=(0, 1),
    ),
    Bug(
        "InseeFrLab/torchTextClassifiers#92",
        torch.tensor([[False, False, False, False, True, True]]).expand(3, T),
        "sdpa",
        Intent("bidirectional", padding=True),
        "It is inverted",
        padding=(4, 5),
    ),
    Bug(
        "microsoft/onnxruntime#28904",
        torch.zeros(T, T).masked_fill(~CAUSAL | (QUERY == 2), -1e30),
        "added",
        Intent("causal"),
        "No key is left for query 2",
    ),
)


def sentences(bug: Bug) -> list[str]:
    """Everything that is said of the array in its place, beside what was meant."""
    passed = passed_to(bug.array, bug.place)
    said = [remark.text for remark in passed.remarks]
    if passed.allowed is None:
        return said
    n_queries, n_keys = bug.array.shape
    documents = bug.documents or (0,) * max(n_queries, n_keys)
    context = MaskContext(
        query_tokens=(0,) * n_queries,
        key_tokens=(0,) * n_keys,
        query_is_padding=tuple(q in bug.padding for q in range(n_queries)),
        key_is_padding=tuple(k in bug.padding for k in range(n_keys)),
        query_segments=documents[:n_queries],
        key_segments=documents[:n_keys],
    )
    mask = MaskCase(passed.allowed, *padding_of(context), causal=False, fill=passed.fill, dtype=passed.dtype)
    keyless = DESTINATIONS[bug.place].keyless
    return [*said, *(finding.why for finding in findings_under(bug.intent, mask, context, keyless=keyless))]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.source)
def test_what_was_wrong_is_said(bug):
    said = sentences(bug)
    assert any(bug.sentence in sentence for sentence in said), said


@pytest.mark.parametrize("place", ["sdpa", "flex", "jax", "keras", "hugging_face_4d"])
def test_the_right_mask_is_no_alarm(place):
    right = Bug("right", CAUSAL, place, Intent("causal"), "")
    assert sentences(right) == []


@pytest.mark.parametrize(
    ("array", "intent"),
    [
        (torch.ones(1, 8).bool(), Intent("causal")),
        (torch.ones(3, 8).tril(5).bool(), Intent("causal")),
        (torch.ones(3, 8).tril().bool(), Intent("causal", cache=0)),
        ((torch.ones(3, 8).tril(5) * torch.ones(3, 8).triu(3)).bool(), Intent("window", 3)),
        ((torch.ones(3, 8).tril(2) * torch.ones(3, 8).triu(1)).bool(), Intent("window", 2, cache=2)),
    ],
)
def test_new_queries_after_a_cache_are_no_alarm(array, intent):
    assert not [text for text in sentences(Bug("right", array, "sdpa", intent, "")) if "cell" in text]


def test_rows_that_nobody_reads_are_no_alarm():
    """zai-org/GLM-4-Voice#182: what is added to the rows of padding opens them to everything, which is harmless."""
    is_token = (~PADDED_LEFT).float()
    full = CAUSAL * is_token
    full = full - (is_token[:, None] - 1)
    blocked = full < 0.5
    assert bool((~blocked[PADDED_LEFT]).all())
    found = sentences(Bug("right", blocked, "mha_attn_mask", Intent("causal", padding=True), "", padding=(0, 1)))
    assert found == []


BESIDE_A_DECODER = {
    # huggingface/transformers#47946: the encoder_attention_mask was set to None on its way to the cross-attention.
    "left out of the cross-attention": ("cross", {"cross_padding": "off"}, "Padding is not ignored"),
    # huggingface/transformers#36293: the attention_mask did not reach the encoder while a model wrote.
    "left out of the encoder": ("encoder", {"encoder_padding": "off"}, "Padding is not ignored"),
    # keras-team/keras-io#1046: the target's padding, made smaller by its causal mask, is laid on the source.
    "causal towards the source": ("cross", {"custom_cross": "k <= q"}, "It is causal"),
    # lucidrains/x-transformers#174: the mask of the queries' tokens is laid on the keys.
    "of the wrong sequence": (
        "cross",
        {"custom_cross": "k < 3", "cross_padding": "off"},
        "query 0 does not see key 3",
    ),
}


@pytest.mark.parametrize(("name", "link", "sentence"), BESIDE_A_DECODER.values(), ids=BESIDE_A_DECODER)
def test_a_mask_beside_a_decoder_is_judged_by_what_it_should_be(name, link, sentence):
    given = {"architecture": "encoder-decoder", "text": "a b c d", "target": "x y", "pad": "2", "weights": "random"}
    query = {key: [text] for key, text in (given | link | {"mask": "causal,padding,custom"}).items()}
    settings, _, notices = read_query(query)
    assert notices == ()
    run = compute_run(settings)
    case = case_of(run, changed(Selection(), attention=name, **{f"intent_{name}": "bidirectional+padding"}))
    found = findings_of(case, case.allowed, chosen_intent(case))
    assert any(sentence in finding.why for finding in found), [finding.why for finding in found]
    right = case_of(
        compute_run(replace(settings, custom_cross="", encoder_padding=True, cross_padding=True)), case.selection
    )
    assert not [one for one in findings_of(right, right.allowed, chosen_intent(right)) if one.severity != "note"]


IN_THE_LAB = [bug for bug in BUGS if bug.source.endswith(("#38", "#1061", "#39408", "lalamo#200"))]


@pytest.mark.parametrize("bug", IN_THE_LAB, ids=lambda bug: bug.source)
def test_the_lab_says_it_of_what_is_pasted(bug):
    link = {"view": "lab", "panel": "load", "architecture": "decoder", "text": "a b c d e f", "weights": "random"}
    meant = f"window:{bug.intent.number}" if bug.intent.kind == "window" else bug.intent.kind
    app = open_app(**link, passed_to=bug.place, intent_array=meant)
    app.text_area(key="pasted_mask").set_value(str(bug.array.tolist())).run()
    drawn = [element.value for kind in (app.error, app.markdown) for element in kind]
    assert any(markdown_safe(bug.sentence) in text for text in drawn), drawn


def test_nothing_is_judged_before_the_place_is_known():
    app = open_app(view="lab", panel="load", text="a b c d e f", weights="random")
    app.text_area(key="pasted_mask").set_value(str(CAUSAL.tolist())).run()
    assert any("What it means depends on where it goes" in text.value for text in app.markdown)
    assert not [button for button in app.button if button.key == "paint_loaded"]


def test_an_array_is_described_and_not_judged_until_it_is_said_what_it_should_be():
    app = open_app(view="lab", panel="load", passed_to="mha_attn_mask", architecture="decoder", text="a b c d e f")
    app.text_area(key="pasted_mask").set_value(str(CAUSAL.tolist())).run()
    said = [text.value for text in app.markdown]
    assert any(markdown_safe("This is open where k > q") in text for text in said), said
    assert [len(kind) for kind in (app.error, app.warning, app.success)] == [0, 0, 0]
    app.selectbox(key="kind_of_intent_array").set_value("causal").run()
    assert any("It is inverted" in text.value for text in app.markdown)


HEADS_OUTSIDE = torch.stack([CAUSAL, CAUSAL & ~PADDED_LEFT]).repeat(2, 1, 1)
LOADED = {
    # line/lighthouse#77: the masks of the sequences are repeated where each is to be repeated for its heads.
    "tiled": (
        ~HEADS_OUTSIDE,
        {"passed_to": "mha_attn_mask", "array_heads": "2", "array_padding": "6 4 left"},
        "In sequence 1, head 0: 8 cells open that should be blocked: query 2 sees key 0. Padding is not ignored",
    ),
    # pytorch/pytorch#64706: one mask for each sequence where there must be one for each head of each.
    "not repeated": (CAUSAL.expand(3, T, T), {"passed_to": "mha_attn_mask"}, "3 is not a multiple of 4 heads"),
    # pytorch/pytorch#103749: the padding of a batch passed where queries by keys are asked for.
    "padding": (
        torch.ones(3, T).tril(3).bool().flip(0),
        {"passed_to": "sdpa"},
        "2 cells open that should be blocked: query 0 sees key 4. 2 cells blocked that should be open",
    ),
    "one head is wrong": (
        torch.stack([CAUSAL, CAUSAL, window(3)]),
        {"passed_to": "sdpa"},
        "In head 2: 6 cells blocked that should be open",
    ),
    "one sequence is wrong": (
        torch.stack([CAUSAL, CAUSAL.T])[:, None],
        {"passed_to": "hugging_face_4d"},
        "In sequence 1: 15 cells open that should be blocked",
    ),
    "a row for each sequence": (
        torch.tensor([[True] * T, [True] * 4 + [False] * 2]),
        {"passed_to": "mha_key_padding", "array_padding": "2 6"},
        "In sequence 0: 2 cells blocked that should be open: query 0 does not see key 0. It blocks everything.",
    ),
    "top left": (torch.ones(3, 8).tril().bool(), {"passed_to": "sdpa"}, "top-left aligned: k <= q."),
    "a cache that is longer": (
        torch.ones(3, 8).tril(5).bool(),
        {"passed_to": "sdpa", "keys_before": "4"},
        "Every query sees one key too many, k <= q + 5: off by one",
    ),
    "every query alike": (
        torch.ones(1, 1, 1, T).bool(),
        {"passed_to": "sdpa"},
        "15 cells open that should be blocked: query 0 sees key 1. It is bidirectional",
    ),
}


@pytest.mark.parametrize(("array", "chosen", "sentence"), LOADED.values(), ids=LOADED)
def test_all_masks_of_an_array_are_judged(array, chosen, sentence):
    link = {"view": "lab", "panel": "load", "architecture": "decoder", "text": "a b c d e f", "weights": "random"}
    app = open_app(**link, **chosen, intent_array="causal")
    app.text_area(key="pasted_mask").set_value(str(array.tolist())).run()
    drawn = [element.value for kind in (app.error, app.warning, app.info, app.markdown) for element in kind]
    assert any(markdown_safe(sentence) in text for text in drawn), drawn


def test_a_text_of_as_many_tokens_is_made_by_one_click():
    app = open_app(view="lab", panel="load", architecture="decoder", text="a b c", passed_to="sdpa")
    app.text_area(key="pasted_mask").set_value(str(CAUSAL.tolist())).run()
    button = app.button(key="paint_loaded")
    assert button.label == "Paint this mask over a text of 6 tokens"
    button.click().run()
    assert chosen(app, "text") == "t0 t1 t2 t3 t4 t5"
    assert (chosen(app, "mask"), chosen(app, "custom")) == (("custom",), "k <= q")


def test_an_array_of_queries_by_keys_becomes_the_mask_of_the_cross_attention():
    link = {"view": "lab", "panel": "load", "architecture": "encoder-decoder", "text": "a b", "target": "x"}
    app = open_app(**link, passed_to="sdpa", weights="random", intent_array="causal", intent_cross="causal")
    app.text_area(key="pasted_mask").set_value(str(torch.ones(3, 5).tril(1).bool().tolist())).run()
    app.button(key="paint_loaded").click().run()
    assert not app.exception
    assert (chosen(app, "text"), chosen(app, "target")) == ("s0 s1 s2 s3 s4", "t0 t1")
    assert chosen(app, "custom_cross") == "k <= q + 1"
    (past,) = [number for number in app.number_input if number.label == "Past length (KV cache)"]
    assert (past.value, past.min) == (0, 0)
    past.set_value(1).run()
    assert any("query 0 is aligned with key 1, query 2 with key 3" in caption.value for caption in app.caption)


def test_a_key_of_the_longer_source_is_looked_at_in_the_cross_attention():
    link = {"view": "lab", "architecture": "encoder-decoder", "text": "a b c d e", "target": "x", "key": "4"}
    padded = {"mask": "padding", "pad": "1", "panel": "translate", "library": "transformer_encoder"}
    app = open_app(**link, attention="cross", **padded)
    assert (chosen(app, "key"), app.warning.len) == (4, 0)
    assert any(text.value.startswith("Not for this mask") for text in app.info)
    assert chosen(open_app(**link, attention="decoder"), "key") == 1
