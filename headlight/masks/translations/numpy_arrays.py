"""A mask for attention written in NumPy."""

from __future__ import annotations

from headlight.masks.translations.building import NUMPY, allowed_lines
from headlight.masks.translations.code_lines import snippet, without_keys
from headlight.masks.translations.mask_to_translate import MaskToTranslate
from model.texts import texts_of

say = texts_of(__name__)


def numpy_arrays(mask: MaskToTranslate) -> str:
    """A mask that is added to the scores, and a softmax for the sum."""
    return snippet(
        say("added"),
        ["import numpy as np"],
        allowed_lines(mask, NUMPY),
        ["mask = np.where(allowed, 0.0, -np.inf)  # 0 = may attend, -inf = blocked", "", ""],
        [
            "def softmax(scores):",
            "    exponentials = np.exp(scores - scores.max(-1, keepdims=True))",
            "    return exponentials / exponentials.sum(-1, keepdims=True)",
            "",
            "",
        ],
        without_keys(mask, say("without_keys")),
        ["# weights = softmax(query @ key.mT / np.sqrt(query.shape[-1]) + mask)  # query: (B, H, Tq, head_dim)"],
    )
