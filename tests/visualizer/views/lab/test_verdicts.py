"""Wrong and right masks as they are brought to the lab: what it says of each before and after the answer.

Before it is said what a mask should be, nothing is red or green. After that every wrong mask is named, and no right
one is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from tests.controls import chosen
from tests.test_app import open_app
from tests.visualizer.views.watched.test_watched_view import pictures
from visualizer.safe_text import markdown_safe

LINK = {"view": "lab", "architecture": "decoder", "text": "a b c d e f", "weights": "random"}


@dataclass(frozen=True, eq=False)
class Brought:
    """One mask as somebody brings it.

    Attributes:
        what: an array, or an expression or ``mask_mod`` for "Allowed where".
        answer: what it should be, as a link says it.
        said: a part of what is to be said of it; "" where it is right.
        name: a part of what it is called before the answer.
        place: where the array is passed to.
        link: what else is said, such as padding.
        is_fact: whether the place itself says that it is wrong, whatever it should be.
    """

    what: Tensor | str
    answer: str
    said: str = ""
    name: str = ""
    place: str = "sdpa"
    link: tuple[tuple[str, str], ...] = ()
    is_fact: bool = False


def where(holds, n_queries=6, n_keys=None) -> Tensor:
    size = n_queries if n_keys is None else n_keys
    return torch.tensor([[bool(holds(q, k)) for k in range(size)] for q in range(n_queries)])


def added(allowed: Tensor, fill: float = -math.inf) -> Tensor:
    return torch.zeros(allowed.shape).masked_fill(~allowed, fill)


CAUSAL = where(lambda q, k: k <= q)
DOCUMENTS, PADDED = (("array_documents", "4 2"),), (("array_padding", "4"),)
LEFT, BATCH = (("array_padding", "4 left"),), (("array_padding", "4 6"),)
PACKED = where(lambda q, k: k <= q and (q < 4) == (k < 4))
BLOCKS = where(lambda q, k: 4 * k + 3 <= q, 16, 4)
SLIDING = "def f(b, h, q_idx, kv_idx, window=3):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx {} window)"

BUGS = {
    "one key too many": Brought("k <= q + 1", "causal", "off by one", "plus 1 key"),
    "its own key hidden": Brought(CAUSAL & ~torch.eye(6).bool(), "causal", "its own key is hidden", "minus 1 key"),
    "inverted": Brought(~CAUSAL, "causal", "It is inverted", "open where k > q"),
    "inverted for the module": Brought(CAUSAL, "causal", "It is inverted", "open where k > q", "mha_attn_mask"),
    "transposed": Brought("q <= k", "causal", "rows and columns are swapped", "open where k >= q"),
    "no mask at all": Brought(torch.ones(6, 6).bool(), "causal", "It is bidirectional", "open everywhere"),
    "everything blocked": Brought(torch.zeros(6, 6).bool(), "causal", "It blocks everything", "blocked everywhere"),
    "ones and zeros are added": Brought(
        CAUSAL.float(), "causal", "1 and 0 block nothing", "open everywhere", is_fact=True
    ),
    "a window one too wide": Brought(SLIDING.format("<="), "window:3", "not 3: off by one", "window 4"),
    "a window without an end": Brought(CAUSAL, "window:3", "It is causal.", "causal"),
    "packed and not isolated": Brought(CAUSAL, "causal", "documents are not isolated", link=DOCUMENTS),
    "packed, one token over": Brought(
        where(lambda q, k: k <= q and (q < 5) == (k < 4)),
        "causal",
        "1 cell blocked that should be open",
        link=DOCUMENTS,
    ),
    "padding can be seen": Brought(torch.ones(6, 6).bool(), "bidirectional", "Padding is not ignored", link=PADDED),
    "padding of the queries": Brought(where(lambda q, k: q < 4), "bidirectional", "8 cells open", link=PADDED),
    "padding on the other side": Brought(where(lambda q, k: k < 4), "bidirectional", "8 cells open", link=LEFT),
    "padding inverted": Brought(
        torch.tensor([[True] * 4 + [False] * 2, [True] * 6]),
        "unsaid",
        "It is inverted",
        "",
        "mha_key_padding",
        BATCH,
    ),
    "top left after a cache": Brought(where(lambda q, k: k <= q, 3, 8), "causal", "top-left aligned", "top-left"),
    "bottom right, one too many": Brought(
        where(lambda q, k: k <= q + 6, 3, 8),
        "causal",
        "one key too many",
        "bottom-right aligned, plus 1 key",
    ),
    "bottom right with fewer keys": Brought(where(lambda q, k: k <= q - 3, 5, 2), "causal", "top-left"),
    "a block that holds later keys": Brought(
        where(lambda q, k: 4 * k <= q, 16, 4), "causal", "every key that the block holds", "irregular"
    ),
    "a prefix too long": Brought("k <= q or k < 4", "prefix:3", "not 3: off by one", "a prefix of 4"),
    "a prefix where none is": Brought("k <= q or k < 3", "causal", "the first 3 tokens see each other"),
    "one head of three": Brought(
        torch.stack([CAUSAL, CAUSAL, CAUSAL.tril(-1)]), "causal", "In head 2: 6 cells blocked that should be open"
    ),
    "not the expression": Brought(CAUSAL, "expression:k <= q and q - k < 3", "6 cells open that should be blocked"),
    "not the painting": Brought(
        CAUSAL.tril(-1),
        "painted",
        "6 cells blocked that should be open",
        link=(("mask", "custom"), ("custom", "k <= q")),
    ),
    "NaN of zero times infinity": Brought(
        (1 - CAUSAL.float()) * -math.inf, "causal", "0 * -inf gives NaN", is_fact=True
    ),
    "two fills": Brought(
        added(CAUSAL, -65504.0).half() + added(where(lambda q, k: k < 4), -65504.0).half(),
        "expression:k <= q and k < 4",
        "two fills seem to have been added",
        place="added",
        is_fact=True,
    ),
    "a row without a key, where that is NaN": Brought(
        ~where(lambda q, k: k <= q and k > 0),
        "expression:k <= q and k > 0",
        "makes NaN of such a row",
        place="mha_attn_mask",
    ),
}

RIGHT = {
    "causal": Brought("k <= q", "causal", name="causal"),
    "causal, in four conventions": Brought(~CAUSAL, "causal", name="causal", place="transformer"),
    "causal, added": Brought(added(CAUSAL), "causal", name="causal", place="added"),
    "causal, added in Swin's way": Brought(added(CAUSAL, -100.0), "causal", name="causal", place="added"),
    "causal, the lowest number": Brought(
        added(CAUSAL, torch.finfo(torch.float32).min), "causal", name="causal", place="hugging_face_4d"
    ),
    "a window with a default": Brought(SLIDING.format("<"), "window:3", name="causal, window 3"),
    "a window on both sides": Brought("abs(q - k) < 3", "window_both:3", name="a window on both sides"),
    "a prefix": Brought("k <= q or k < 3", "prefix:3", name="a prefix of 3"),
    "bidirectional with padding": Brought(where(lambda q, k: k < 4), "bidirectional", link=PADDED),
    "causal, padding on the left": Brought(where(lambda q, k: 2 <= k <= q), "causal", link=LEFT),
    "padding of a batch": Brought(
        torch.tensor([[False] * 4 + [True] * 2, [False] * 6]), "unsaid", place="mha_key_padding", link=BATCH
    ),
    "packed documents": Brought(PACKED, "causal", link=DOCUMENTS),
    "packed documents by their ids": Brought(PACKED, "causal", link=(("array_documents", "0 0 0 0 7 7"),)),
    "bottom right after a cache": Brought(
        where(lambda q, k: k <= q + 5, 3, 8), "causal", name="causal, bottom-right aligned"
    ),
    "top left, said to be": Brought(
        where(lambda q, k: k <= q, 3, 8), "causal", name="causal, top-left aligned", link=(("keys_before", "0"),)
    ),
    "a window after a cache": Brought(
        where(lambda q, k: 0 <= q + 5 - k < 5, 3, 8), "window:5", name="causal, bottom-right aligned, window 5"
    ),
    "fewer keys": Brought(where(lambda q, k: k <= q, 5, 2), "causal", name="causal, top-left aligned"),
    "blocks of keys": Brought(BLOCKS, "causal", name="causal, each key a block of 4"),
    "one new query": Brought(torch.ones(1, 8).bool(), "causal", name="open everywhere"),
    "one row for all": Brought(where(lambda q, k: k < 4)[None, None, :1], "bidirectional", link=PADDED),
    "one mask for each head and sequence": Brought(
        ~torch.stack([CAUSAL, CAUSAL.tril(0)]).repeat(2, 1, 1),
        "causal",
        place="mha_attn_mask",
        link=(("array_heads", "2"),),
    ),
    "strictly before, as said": Brought(CAUSAL.tril(-1), "expression:k < q", name="minus 1 key", place="sdpa"),
    "as painted": Brought(CAUSAL, "painted", link=(("mask", "custom"), ("custom", "k <= q"))),
    "of another model's kind": Brought("q // 2 == k // 2", "expression:(q - q % 2) == (k - k % 2)"),
}


@dataclass(frozen=True)
class Heard:
    """The words of the lab: in red or yellow, in green, and all of it."""

    alarms: list[str]
    green: list[str]
    everything: list[str]


def heard(brought: Brought, *, is_answered: bool) -> Heard:
    link = dict(brought.link)
    if isinstance(brought.what, str):
        return of_what_is_written(brought.what, link | ({"intent": brought.answer} if is_answered else {}))
    answer = {"intent_array": brought.answer} if is_answered else {}
    if brought.place == "mha_key_padding" and not is_answered:
        link = {}  # what is said of the padding is the answer
    return of_an_array(brought.what, link | answer | {"passed_to": brought.place})


def of_what_is_written(text: str, link: dict[str, str]) -> Heard:
    app = open_app(**LINK | {"mask": "padding"} | link)
    app.text_input(key="expression").set_value(text).run()
    assert not app.exception
    assert chosen(app, "mask") == ("custom",), "what is written stands alone"
    header = pictures(app)["headlight_mask_painter"]
    found = [f"{one['title']}. {one['why']}" for one in header["findings"] if one["severity"] != "note"]
    green = [header["all_clear"]] if "as it should be" in header["all_clear"] and not found else []
    return Heard(found, green, [*found, header["all_clear"]])


def of_an_array(array: Tensor, link: dict[str, str]) -> Heard:
    app = open_app(**LINK, panel="load", **link)
    app.file_uploader[0].upload("mask.safetensors", save({"mask": array.contiguous()})).run()
    assert not app.exception
    notes = [markdown.value for markdown in app.markdown]
    marked = [text for text in notes if text.startswith((":material/error:", ":material/warning:"))]
    alarms = [*marked, *(box.value for kind in (app.error, app.warning) for box in kind)]
    return Heard(alarms, [box.value for box in app.success], [*alarms, *notes])


def says(sentences: list[str], part: str) -> bool:
    return any(part in text or markdown_safe(part) in text for text in sentences)


@pytest.mark.parametrize("brought", [*BUGS.values(), *RIGHT.values()], ids=[*BUGS, *RIGHT])
def test_before_the_answer_a_mask_is_described_and_not_judged(brought):
    before = heard(brought, is_answered=False)
    assert before.green == []
    assert before.alarms == [] or brought.is_fact
    assert says(before.everything, brought.name), before.everything


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_after_the_answer_what_is_wrong_is_said(bug):
    after = heard(bug, is_answered=True)
    assert says(after.alarms, bug.said), after
    assert after.green == [] or bug.is_fact


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT)
def test_after_the_answer_a_right_mask_is_said_to_be_right(right):
    after = heard(right, is_answered=True)
    assert after.alarms == []
    assert len(after.green) == 1
