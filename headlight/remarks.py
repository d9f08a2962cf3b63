"""Words for each remark on an attention, such as that its softmax goes over the queries."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from headlight.attentions import Attention
from headlight.masks.mask_case import Finding, Severity


@dataclass(frozen=True)
class Remark:
    """The title of a remark, its severity, the reason, and the remedy."""

    title: str
    severity: Severity
    why: str
    mend: str


_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
REMARKS: Mapping[str, Remark] = {name: Remark(**words) for name, words in _WORDS.items()}
"""The words for each remark of an ``Attention``."""


def finding_of(attention: Attention, remark: str) -> Finding:
    """A remark as a finding on all cells of an attention."""
    said, cells = REMARKS[remark], torch.ones(attention.shape[2:], dtype=torch.bool)
    return Finding(remark, said.title, said.severity, cells, said.why, said.mend)
