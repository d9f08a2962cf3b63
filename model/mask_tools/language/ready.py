"""Expressions to begin with: masks of the literature."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadyExpression:
    """An expression to begin with.

    Attributes:
        name: a short name without blanks.
        title: what people call it.
        text: the expression.
        note: one line on what it is for, and where it comes from.
    """

    name: str
    title: str
    text: str
    note: str


READY = (
    ReadyExpression("everything", "Everything", "True", "Every query sees every key: an encoder without padding."),
    ReadyExpression(
        "causal", "Causal", "k <= q", 'No query sees a later key ("Attention Is All You Need", section 3.2.3).'
    ),
    ReadyExpression(
        "strictly_before",
        "Strictly before",
        "k < q",
        "Causal without the token itself; the first query has no key left.",
    ),
    ReadyExpression(
        "causal_bottom_right",
        "Causal, bottom-right",
        "k <= q + n_keys - n_queries",
        "The last query stands beside the last key: decoding with cached keys.",
    ),
    ReadyExpression(
        "sliding_window",
        "Sliding window",
        "abs(q - k) < 4",
        "Keys less than 4 away on either side (Longformer, section 3.1).",
    ),
    ReadyExpression(
        "causal_window",
        "Causal window",
        "k <= q and q - k < 4",
        "The last 4 tokens, itself included (Mistral 7B, section 2).",
    ),
    ReadyExpression(
        "dilated_window",
        "Dilated window",
        "abs(q - k) < 8 and (q - k) % 2 == 0",
        "Every second key of a window twice as wide (Longformer, section 3.1).",
    ),
    ReadyExpression(
        "strided",
        "Strided",
        "k <= q and (q - k < 4 or (q - k) % 4 == 0)",
        "The last 4 tokens and every 4th before (Sparse Transformer, section 4.3).",
    ),
    ReadyExpression(
        "fixed",
        "Fixed",
        "k <= q and (q // 4 == k // 4 or k % 4 == 3)",
        "The own block, and the last token of every block (Sparse Transformer, section 4.3).",
    ),
    ReadyExpression(
        "blocks", "Blocks", "q // 4 == k // 4", "Blocks of 4 tokens that see themselves alone: block-diagonal."
    ),
    ReadyExpression(
        "block_sparse",
        "Block-sparse",
        "abs(q // 4 - k // 4) <= 1 or q // 4 == 0 or k // 4 == 0",
        "Blocks of 4 see their neighbours, and the first block is global (BigBird, section 2).",
    ),
    ReadyExpression(
        "block_causal", "Block-causal", "k // 4 <= q // 4", "Both ways within a block of 4, causal between blocks."
    ),
    ReadyExpression(
        "global_token",
        "Global token",
        "q == 0 or k == 0 or abs(q - k) < 3",
        "The first token sees all and is seen by all; the others have a window (Longformer, section 3.1).",
    ),
    ReadyExpression(
        "attention_sink",
        "Attention sink",
        "k <= q and (k == 0 or q - k < 4)",
        "A causal window that keeps the first token (StreamingLLM).",
    ),
    ReadyExpression(
        "prefix_lm",
        "Prefix LM",
        "k <= q or k < 3",
        "The first 3 tokens are seen by all, later ones causally (T5, section 3.2.1).",
    ),
    ReadyExpression("padding", "Padding", "not is_pad(k)", "No query sees a padding token."),
    ReadyExpression(
        "causal_padding",
        "Causal and padding",
        "k <= q and not is_pad(k)",
        "What a decoder needs for a padded batch; padding on the left leaves rows without a key.",
    ),
    ReadyExpression(
        "packing",
        "Packed documents",
        "segment(q) == segment(k)",
        "Several documents in one sequence that do not see each other.",
    ),
    ReadyExpression(
        "causal_packing",
        "Packed documents, causal",
        "k <= q and segment(q) == segment(k)",
        "Training a decoder on packed documents.",
    ),
    ReadyExpression("same_token", "Same token", "same_token", "A token sees its own occurrences and nothing else."),
    ReadyExpression("not_itself", "All but itself", "k != q", "Every token but the one in the query's place."),
)
"""Expressions to begin with, the best known first."""
