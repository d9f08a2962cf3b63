"""Changes of the scores to begin with: those of the literature."""

from __future__ import annotations

from model.mask_tools.language.ready import ReadyExpression

READY_SCORES = (
    ReadyExpression(
        "alibi",
        "ALiBi",
        "score - slope(h) * (q - k)",
        "The farther a key is before its query, the lower, by a slope of each head (ALiBi, section 3).",
    ),
    ReadyExpression(
        "alibi_symmetric",
        "ALiBi, both ways",
        "score - slope(h) * abs(q - k)",
        "The farther a key is on either side, the lower: for encoders.",
    ),
    ReadyExpression(
        "soft_cap",
        "Soft cap",
        "30 * tanh(score / 30)",
        "No score beyond 30 either way, and small ones nearly as they were (Gemma 2, section 2).",
    ),
    ReadyExpression(
        "soft_cap_2",
        "Soft cap at 2",
        "2 * tanh(score / 2)",
        "The same with a cap low enough to be seen on small models.",
    ),
    ReadyExpression(
        "t5",
        "T5 relative bias",
        "score + bias(h, bucket(k - q))",
        "A number for each head and bucket of distances (T5, section 2.1): T5 learns these, here they are drawn.",
    ),
    ReadyExpression(
        "t5_causal",
        "T5 relative bias, causal",
        "score + bias(h, causal_bucket(k - q))",
        "The same for decoders: later keys share the bucket of the query itself.",
    ),
    ReadyExpression(
        "clipped",
        "Clipped relative bias",
        "score + bias(h, 4 + max(min(k - q, 4), -4))",
        "A number for each distance up to 4 and one for all beyond, as Shaw et al. clip distances (section 3.2).",
    ),
    ReadyExpression(
        "log_distance",
        "Logarithmic distance",
        "score - log(1 + abs(q - k))",
        "Lower by the logarithm of the distance, as in KERPLE's logarithmic kernel (section 3).",
    ),
    ReadyExpression(
        "near",
        "Near keys raised",
        "score + 2 if abs(q - k) < 3 else score",
        "Keys less than 3 away get 2 more.",
    ),
)
"""Changes to begin with, the best known first."""
