"""The role of a checkpoint's attentions is the one that its modules are named by, and known without the names."""

import re

import pytest

from headlight import roles
from headlight.pretrained.tokenized import Words, tokenized
from headlight.pretrained.watched_pass import run
from tests.headlight.pretrained.tiny_checkpoints import FAMILIES, OTHERS


@pytest.mark.parametrize("family", sorted({*FAMILIES, *OTHERS}))
def test_the_names_of_modules_are_not_needed(checkpoint_of, family, monkeypatch):
    _, checkpoint = checkpoint_of(family)
    encoding = tokenized(checkpoint, Words("a b c d", second="e f"), 64)
    named = [attention.role for attention in run(checkpoint, encoding).trace]
    for name in ("_CROSS", "_OF_ENCODER", "_OF_DECODER"):
        monkeypatch.setattr(roles, name, re.compile("(?!)"))
    assert [attention.role for attention in run(checkpoint, encoding).trace] == named
    assert set(named) == ({"encoder", "decoder", "cross"} if encoding.target else {"self"})
