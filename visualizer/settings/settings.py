"""Everything a person can choose, as two frozen values, and the link that carries them.

``Settings`` is what a forward pass depends on, ``Selection`` what is looked at. Each field says its type, default,
bounds, label and help; reading a link, writing one and drawing the controls follow that. The names in a link are
the names of the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from model.config import Activation, Architecture, Norm, Positions
from model.names import MASK_NAMES
from visualizer.settings.fields import (
    MAX_ORDER,
    MAX_SEQUENCES,
    MAX_TOKENS,
    NARROWEST,
    NO_CHART,
    TRAINED,
    UNSAID,
    WIDEST,
    Field,
    fields_of,
    setting,
)
from visualizer.settings.published import PUBLISHED
from visualizer.settings.trained_models import TRAINED_MODELS

TokenKind = Literal["words", "characters", "bytes"]
PadSide = Literal["right", "left"]
Fault = Literal["none", "after_softmax", "before_softmax", "left_out", "padding_counted"]
View = Literal["way", "step", "heads", "compare", "lab", "train", "generate", "watched"]
Depth = Literal["plain", "exact"]
PaintScope = Literal["all", "layer", "head", "layer_head"]
AttentionName = Literal["encoder", "decoder", "cross"]
PassedTo = Literal[
    "ask",
    "sdpa",
    "mha_attn_mask",
    "mha_key_padding",
    "transformer",
    "hugging_face_2d",
    "hugging_face_4d",
    "flex",
    "keras",
    "jax",
    "added",
]
OneRow = Literal["usual", "one", "all"]
LabPanel = Literal["translate", "load", "apply", "scores", "blocks", "reach", "prove"]
Chart = Literal["none", "positions", "row", "temperature", "residual", "distance", "directions", "measures"]
Question = Literal["usual", "seen", "most"]
Claim = Literal["intended", "promised", "causal"]
Embeddings = Literal["target", "source"]
Strategy = Literal["greedy", "sampling", "beam"]
Drawn = Literal["grids", "lines"]
Curve = Literal["auto", "linear", "root"]


_MASK_LABELS = {
    "causal": "Causal",
    "padding": "Padding",
    "sliding_window": "Sliding window",
    "prefix": "Prefix",
    "strided": "Strided",
    "custom": "Painted",
}


_WEIGHT_LABELS = {
    "hand_built": "Hand-built heads",
    "random": "Random",
    TRAINED: "Trained on a task",
    **{name: example.title for name, example in PUBLISHED.items()},
}


@dataclass(frozen=True)
class Settings:
    """What a forward pass depends on."""

    architecture: Architecture = setting(
        "encoder",
        "Architecture",
        "An encoder reads a text, a decoder continues one, an encoder-decoder turns one into another. An attention "
        "alone is one self-attention over the embedded tokens, without residual, norm or logits.",
        choices={
            "encoder": "Encoder",
            "decoder": "Decoder",
            "encoder-decoder": "Encoder-decoder",
            "attention": "Attention alone",
        },
    )
    text: str = setting(
        "The cat sat on the mat because the cat was tired",
        "Text",
        "What the model reads. Several lines are a batch, one sequence each.",
    )
    target: str = setting(
        "Die Katze saß auf der Matte",
        "Target",
        "What the decoder has written so far, after <s>. One line for each line of the text.",
    )
    tokens: TokenKind = setting(
        "words",
        "Tokens",
        "One token is a word or punctuation mark, a character as you see it, or a byte of UTF-8.",
        choices={"words": "Words", "characters": "Characters", "bytes": "Bytes"},
    )
    weights: str = setting(
        "hand_built",
        "Model weights",
        "Hand-built heads each do one known thing, random weights come from the seed, trained ones have learned a "
        "task. Worked examples bring published numbers.",
        choices=_WEIGHT_LABELS,
    )
    task: str = setting(
        "reverse",
        "Task",
        "What the model has learned.",
        choices={name: trained.title for name, trained in TRAINED_MODELS.items()},
    )
    checkpoint: str = setting(
        "", "Training", "A model that was trained here, while the server remembers it.", kind="identifier"
    )
    seed: int = setting(0, "Seed", "The same seed gives the same random numbers.", most=2**32 - 1)
    n_heads: int = setting(4, "Heads", "How many attention heads each layer has.", least=1, most=16)
    n_layers: int = setting(2, "Layers", "How many layers are stacked.", least=1, most=12)
    n_decoder_layers: int = setting(
        0,
        "Layers of the decoder",
        "How many layers the decoder has, where not as many as the encoder. 0: as many.",
        most=12,
    )
    shared_vocabulary: bool = setting(
        True,
        "Shared vocabulary",
        "Source and target share one vocabulary and one embedding table, as in the paper. Off, each has its own.",
    )
    d_model: int = setting(
        64,
        "Model width",
        "The length of each token's vector (d_model). The heads share it evenly.",
        least=NARROWEST,
        most=WIDEST,
    )
    head_dim: int = setting(
        0,
        "Head width",
        "The length of one head's queries, keys and values (d_k = d_v): the model width divided by the number of "
        "heads, as in the paper, or any other, as in T5.",
        most=256,
        offered=(0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256),
    )
    d_out: int = setting(
        0,
        "Output width",
        "The length of the vectors that an attention alone puts out (d_out). In a Transformer it is the model "
        "width, since output and input are added.",
        most=WIDEST,
        offered=(0, 1, 2, 3, 4, 8, 16, 24, 32, 64, 128, 256, 512, WIDEST),
    )
    d_ff: int = setting(
        128,
        "Feed-forward width",
        "The length of the hidden vector of the feed-forward network (d_ff).",
        least=1,
        most=4096,
        offered=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096),
    )
    norm: Norm = setting(
        "post",
        "Layer norm",
        "Post normalises each residual sum, as in the paper; pre normalises what enters each sub-layer.",
        choices={"post": "Post", "pre": "Pre"},
    )
    positions: Positions = setting(
        "sinusoidal",
        "Positions",
        "How the model knows the order of the tokens. Without them only a mask can tell.",
        choices={"sinusoidal": "Sinusoidal", "learned": "Learned", "none": "None"},
    )
    activation: Activation = setting(
        "relu",
        "Activation",
        "The function between the two feed-forward matrices.",
        choices={"relu": "ReLU", "gelu": "GELU"},
    )
    scale_scores: bool = setting(
        True,
        "Scale scores",
        "Divide the scores by the square root of the head width (√d_k), so that softmax does not saturate.",
    )
    final_norm: bool = setting(
        False,
        "Final norm",
        "One more layer norm after the last layer, as nn.Transformer has it. With pre-norm it is always there.",
    )
    qkv_bias: bool = setting(
        True,
        "Bias of q, k, v",
        "The projections to queries, keys and values add a bias, as in nn.MultiheadAttention but not in the paper.",
    )
    fused_qkv: bool = setting(
        False,
        "One matrix for q, k, v",
        "One matrix for queries, keys and values, as in nn.MultiheadAttention (in_proj_weight) and GPT-2. The "
        "numbers stay the same.",
    )
    output_bias: bool = setting(
        True,
        "Bias of the output projection",
        "The projection that mixes the heads adds a bias, as in nn.MultiheadAttention but not in the paper.",
    )
    layer_norm_eps: float = setting(
        1e-5,
        "Layer norm ε",
        "Added to the variance, so that nothing is divided by zero: 1e-5 in PyTorch, 1e-6 in Tensor2Tensor, 1e-12 "
        "in BERT. A large one shows what it does.",
        least=1e-12,
        most=1,
        offered=(1e-12, 1e-8, 1e-6, 1e-5, 1e-3, 0.1, 1.0),
    )
    unembedding_bias: bool = setting(
        False,
        "Bias of the logits",
        "The final linear layer adds a number to each token's logit, as in BERT but not in the paper.",
    )
    dropout: float = setting(
        0.0,
        "Dropout",
        "The chance that a number is set to zero, as in training. Weights of a query then no longer sum to one.",
        most=0.9,
    )
    mask: tuple[str, ...] = setting(
        ("causal",), "Masks", "A query sees a key only where every chosen mask allows it.", choices=_MASK_LABELS
    )
    window: int = setting(
        3,
        "Window",
        "Sliding window: a query sees the keys less than this far away, on either side.",
        least=1,
        most=MAX_TOKENS,
    )
    prefix: int = setting(
        3,
        "Prefix length",
        "Prefix: every query sees this many first tokens, and later ones causally. Padding on the left does not "
        "count.",
        most=MAX_TOKENS,
    )
    stride: int = setting(
        3, "Stride", "Strided: a query sees one key in this many, counted from itself.", least=1, most=MAX_TOKENS
    )
    order: int = setting(
        0,
        "Order",
        "The order of the text's tokens: 0 as typed, 1 backwards, from 2 on shuffled.",
        most=MAX_ORDER,
    )
    pad: int = setting(
        0, "Padding tokens", "How many <pad> tokens are added, for the padding mask to hide.", most=64
    )
    pad_side: PadSide = setting(
        "right",
        "Padding side",
        "After the text, or before it, as when a batch of prompts is continued.",
        choices={"right": "Right", "left": "Left"},
    )
    fault: Fault = setting(
        "none",
        "Mask bug",
        "Breaks the model on purpose: the weights or the scores are multiplied by the mask, instead of blocked "
        "scores set to -∞; the middle layer has no mask; or positions count the padding on the left.",
        choices={
            "none": "None",
            "after_softmax": "Weights times mask",
            "before_softmax": "Scores times mask",
            "left_out": "Left out in a layer",
            "padding_counted": "Padding counted",
        },
    )
    custom: str = setting(
        "", "Painted mask", "The expression that you wrote, or the cells that you painted.", kind="cells"
    )
    custom_encoder: str = setting(
        "",
        "Painted mask of the encoder",
        "The same for the encoder beside a decoder, combined with its padding mask.",
        kind="cells",
    )
    custom_cross: str = setting(
        "",
        "Painted mask of the cross-attention",
        "The same for the cross-attention: its queries are the target's tokens, its keys the source's.",
        kind="cells",
    )
    encoder_padding: bool = setting(
        True,
        "Padding mask in the encoder",
        "Whether the padding mask, if chosen, is also in the encoder beside a decoder, as it must be "
        "(src_key_padding_mask in PyTorch).",
    )
    cross_padding: bool = setting(
        True,
        "Padding mask in the cross-attention",
        "Whether the padding mask, if chosen, is also in the cross-attention, as it must be "
        "(memory_key_padding_mask in PyTorch).",
    )
    score: str = setting(
        "",
        "Change of scores",
        "An expression of score, the positions q and k, and the head h. It replaces each scaled score before the "
        "mask, as a score_mod of FlexAttention does.",
    )

    @property
    def has_two_vocabularies(self) -> bool:
        """Whether the target's ids come from a vocabulary of its own."""
        return self.architecture == "encoder-decoder" and not self.shared_vocabulary

    @property
    def depth(self) -> int:
        """Layers of the stack that the masks are chosen for: the decoder's, where there is one.

        An attention alone counts as one.
        """
        if self.architecture == "attention":
            return 1
        is_apart = self.architecture == "encoder-decoder" and self.n_decoder_layers
        return self.n_decoder_layers if is_apart else self.n_layers


_COMPARED = "{} is compared with this. Until you choose, it is described and not judged."


@dataclass(frozen=True)
class Selection:
    """What is looked at.

    The indices may lie beyond what a run has; whoever looks them up takes the nearest. The defaults point at the
    second "cat" of the default text, which the same-token head joins to the first.
    """

    view: View = setting(
        "step",
        "View",
        "Follow one token or the computation, see all heads, compare two masks, paint and test a mask, train a "
        "model, let one write, or open any other.",
        choices={
            "way": "Follow a token",
            "step": "Step through",
            "heads": "Heads",
            "compare": "Compare masks",
            "lab": "Mask lab",
            "train": "Train",
            "generate": "Generate",
            "watched": "Any model",
        },
    )
    layer: int = setting(0, "Layer", "The layer shown, counted from 0.", most=11)
    head: int = setting(2, "Head", "The head shown, counted from 0.", most=15)
    stage: str = setting(
        "encoder.self_attention.weights", "Stage", "The step of the computation that is shown.", kind="stage"
    )
    query: int = setting(8, "Query", "The token that attends, counted from 0.", most=MAX_TOKENS - 1)
    key: int = setting(1, "Key", "The token that is attended to, counted from 0.", most=MAX_TOKENS - 1)
    batch: int = setting(
        0, "Sequence", "The sequence of the batch that is shown, counted from 0.", most=MAX_SEQUENCES - 1
    )
    mask_a: tuple[str, ...] = setting((), "Masks A", "The masks of the first of two runs.", choices=_MASK_LABELS)
    mask_b: tuple[str, ...] = setting(
        ("causal",), "Masks B", "The masks of the second of two runs.", choices=_MASK_LABELS
    )
    scope: PaintScope = setting(
        "all",
        "Paint for",
        "The heads that a stroke is for. Where paintings overlap, one head of one layer comes before a layer, then "
        "a head, then all.",
        choices={"all": "All heads", "layer": "This layer", "head": "This head", "layer_head": "Layer and head"},
    )
    attention: AttentionName = setting(
        "decoder",
        "Which mask do you edit?",
        "That of the encoder's self-attention, of the decoder's, or of the cross-attention, in which the target's "
        "tokens attend to the source's.",
        choices={"encoder": "Encoder", "decoder": "Decoder", "cross": "Cross-attention"},
    )
    panel: LabPanel = setting(
        "translate",
        "Tools",
        "What to do with the mask.",
        choices={
            "translate": "Translate for a library",
            "load": "Load an array",
            "apply": "Apply in every way",
            "scores": "Scores before the mask",
            "blocks": "Blocks of FlexAttention",
            "reach": "Reach over the layers",
            "prove": "Prove that nothing leaks",
        },
    )
    block_size: str = setting(
        "128",
        "Block size",
        "Queries, and keys, in one block: 128 by default in FlexAttention.",
        choices={str(size): str(size) for size in (2, 4, 8, 16, 32, 64, 128, 256)},
    )
    block_tokens: str = setting(
        "8192",
        "Tokens",
        "The length of the sequence that the mask is for. Documents and padding of the text are stretched to it.",
        choices={"text": "As the text", **{str(n): f"{n:,}" for n in (512, 2048, 8192, 32768)}},
    )
    library: str = setting(
        "multihead_attention",
        "Library",
        "What the mask is translated for.",
        choices={
            "multihead_attention": "nn.MultiheadAttention",
            "multihead_attention_float": "nn.MultiheadAttention, float",
            "multihead_attention_padding": "nn.MultiheadAttention, key_padding_mask",
            "transformer_encoder": "nn.TransformerEncoder",
            "transformer_decoder": "nn.TransformerDecoder",
            "scaled_dot_product_attention": "F.scaled_dot_product_attention",
            "flex_attention": "FlexAttention",
            "hugging_face_2d": "Hugging Face, 2-D",
            "hugging_face_4d": "Hugging Face, 4-D",
            "numpy": "NumPy",
        },
    )
    depth: Depth = setting(
        "plain",
        "Explanation",
        "In few words, or exactly as it is computed.",
        choices={"plain": "Plain", "exact": "Exact"},
    )
    hidden: bool = setting(
        False,
        "Hide the result",
        "Cover what the model computes. In Step through, Heads, Compare masks and Generate, say what you expect, "
        "then reveal it.",
    )
    present: bool = setting(
        False,
        "Present",
        "For a room: large type, no sidebar, the picture on the whole screen. P ends it.",
    )
    question: Question = setting(
        "usual",
        "What you expect",
        "Which keys each query sees, or where each row has its largest number.",
        choices={"usual": "As usual", "seen": "Allowed keys", "most": "Strongest key"},
    )
    class_code: str = setting(
        "",
        "Class",
        "Answers are counted for everybody who opens a link with this code on this server.",
        kind="identifier",
    )
    claim: Claim = setting(
        "intended",
        "Claim",
        "Prove that the model keeps to what the mask should be, that nothing passes where its masks block, or that "
        "no output depends on a later token.",
        choices={"intended": "As it should be", "promised": "The masks hold", "causal": "No look ahead"},
    )
    embeddings: Embeddings = setting(
        "target",
        "Embeddings of the",
        "The embeddings that the outputs are differentiated by.",
        choices={"target": "target", "source": "source"},
    )
    cell: bool = setting(False, "Cell", "Whether the key was chosen, where it is also the default.")
    guided: bool = setting(False, "Guided path", "Whether the guided path is open.")
    stop: int = setting(0, "Stop", "The stop of the path, counted from 1; 0 before the first.", most=40)
    path: str = setting(
        "", "Path", "A path that was opened from a file, while the server remembers it.", kind="identifier"
    )
    numbers: bool = setting(False, "Show the numbers", "Every number of the stage as a table.")
    relative: bool = setting(
        False,
        "Relative to the length of A's vector",
        "Divide the length of each difference by the length of A's vector.",
    )
    drawn: Drawn = setting(
        "grids",
        "Heads as",
        "A grid of weights for each head, or lines from the queries to the keys.",
        choices={"grids": "Grids", "lines": "Lines"},
    )
    shown: tuple[int, ...] = setting(
        (), "Heads shown", "The heads that are drawn, counted from 0; empty: all.", kind="places", most=15
    )
    curve: Curve = setting(
        "auto",
        "Colour scale",
        "Linear, or by the square root, which shows small weights; it is usual for many tokens.",
        choices={"auto": "As usual", "linear": "Linear", "root": "Square root"},
    )
    least_weight: float = setting(0.01, "Least weight", "Smaller weights have no line.", most=0.5)
    pinned: str = setting(
        "", "Pinned token", "The token whose lines alone are drawn, such as q8 or k3.", kind="identifier"
    )
    chart: Chart = setting(
        "none",
        "Charts",
        "A chart below the picture; it stays closed where it does not apply.",
        choices={
            NO_CHART: "None",
            "positions": "Positions as curves",
            "row": "This query's row",
            "temperature": "Temperature",
            "residual": "Residual stream",
            "distance": "Attention by distance",
            "directions": "Queries and keys",
            "measures": "Measures of all heads",
        },
    )
    strategy: Strategy = setting(
        "greedy",
        "Strategy",
        "Greedy takes the most likely token; sampling draws one by its probability, after temperature, top-k and "
        "top-p; beam search keeps the few most probable sequences.",
        choices={"greedy": "Greedy", "sampling": "Sampling", "beam": "Beam search"},
    )
    limit: int = setting(0, "Max new tokens", "How many tokens are written at most; 0: the usual number.", most=32)
    temperature: float = setting(
        1.0,
        "Temperature",
        "The logits are divided by it. Below 1 likely tokens gain, above 1 unlikely ones.",
        least=0.1,
        most=3,
    )
    top_k: int = setting(
        0,
        "Top-k",
        "Only this many of the most likely tokens can be drawn. Empty, or 0 in a link: all.",
        most=10_000,
    )
    top_p: float = setting(
        1.0, "Top-p", "Of these, the fewest that together reach this probability can be drawn.", least=0.05, most=1
    )
    draws: int = setting(0, "Seed of the draws", "The same seed draws the same numbers.", most=2**32 - 1)
    beams: int = setting(3, "Width", "How many sequences are kept at each step. 1 is greedy.", least=1, most=5)
    length_penalty: float = setting(
        0.6,
        "Length penalty",
        "The sum of log-probabilities is divided by ((5 + length) / 6) to this power; more favours long sequences.",
        most=2,
    )
    cached: bool = setting(
        False,
        "Key/value cache",
        "Keep the keys and values of earlier tokens instead of computing them again.",
    )
    step: int = setting(0, "Step", "The token that is being written, counted from 0.", most=31)
    row_layer: int = setting(
        -1,
        "Layer of the row",
        "The layer whose attention row is shown, counted from 0; -1: the last.",
        least=-1,
        most=11,
    )
    node: int = setting(-1, "Node", "The node of the tree, counted from 0; -1: the best.", least=-1, most=9_999)
    intent: str = setting(UNSAID, "What should it be?", _COMPARED.format("The mask"), kind="intent")
    intent_encoder: str = setting(
        UNSAID, "What should it be?", _COMPARED.format("The encoder's mask"), kind="intent"
    )
    intent_cross: str = setting(
        UNSAID, "What should it be?", _COMPARED.format("The mask of the cross-attention"), kind="intent"
    )
    intent_array: str = setting(UNSAID, "What should it be?", _COMPARED.format("Your array"), kind="intent")
    array_documents: str = setting(
        "",
        "Documents",
        "For packed sequences: the number of each token's document, 0 0 0 1 1, or the lengths of the documents, "
        "3 2. A semicolon separates the sequences of a batch.",
    )
    array_padding: str = setting(
        "",
        "Padding",
        "How many tokens each sequence has, 3, or 3 5 2, followed by “left” for padding on the left; or 1 for each "
        "token and 0 for each padding, 1 1 1 0 0, with a semicolon between sequences.",
    )
    passed_to: PassedTo = setting(
        "ask",
        "Where do you pass it?",
        "The same array means opposite things in different functions. It is judged as this one reads it.",
        choices={
            "ask": "Choose the function",
            "sdpa": "F.scaled_dot_product_attention: attn_mask",
            "mha_attn_mask": "nn.MultiheadAttention: attn_mask",
            "mha_key_padding": "nn.MultiheadAttention: key_padding_mask",
            "transformer": "nn.TransformerEncoder, nn.TransformerDecoder: mask, tgt_mask",
            "hugging_face_2d": "Hugging Face: attention_mask of two axes",
            "hugging_face_4d": "Hugging Face: attention_mask of four axes",
            "flex": "FlexAttention: what mask_mod looks up",
            "keras": "Keras MultiHeadAttention: attention_mask",
            "jax": "JAX, Flax: mask",
            "added": "Added to the scores by hand",
        },
    )
    against_intent: bool = setting(
        False,
        "B is what the mask should be",
        "Compare the masks of A with what the mask should be, as chosen in the Mask lab.",
    )
    array_heads: int = setting(
        0,
        "Heads of the attention",
        "An axis of B * n_heads has the heads of the first sequence, then those of the next. 0: as many as the "
        "model here has.",
        most=128,
    )
    one_row: OneRow = setting(
        "usual",
        "The one row is for",
        "A mask with one row is for one new query, as in decoding with a cache, or broadcasts to every query. As "
        "usual: (1, Tk) is one query, (B, 1, 1, Tk) every query.",
        choices={"usual": "As usual", "one": "One new query", "all": "Every query"},
    )
    keys_before: int = setting(
        -1,
        "Past length (KV cache)",
        "How many keys of the cache come before query 0. 0 aligns the first query with the first key (top-left); "
        "the number of keys minus that of queries aligns the last ones (bottom-right).",
        least=-1,
        most=2_048,
    )
    plane: int = setting(0, "Mask shown", "The mask of the array that is drawn, counted from 0.", most=65_535)
    crop_query: int = setting(0, "From query", "The first query drawn of a large mask.", most=2_047)
    crop_key: int = setting(0, "From key", "The first key drawn of a large mask.", most=2_047)
    asked_width: int = setting(
        0,
        "Width asked for",
        "The model width to return to when it can be divided by the number of heads; 0: none.",
        most=WIDEST,
    )


FIELDS: Mapping[str, Field] = {**fields_of(Settings), **fields_of(Selection)}
"""Every parameter by name."""


def default_stage(architecture: Architecture) -> str:
    """The stage to open on: the attention weights that the masks are for."""
    return f"{masked_attention(architecture)}.weights"


def masked_attention(architecture: Architecture) -> str:
    """The path, without a layer, of the attention that the masks are chosen for."""
    if architecture == "attention":
        return "attention"
    return f"{'encoder' if architecture == 'encoder' else 'decoder'}.self_attention"


def in_mask_order(names: Iterable[str]) -> tuple[str, ...]:
    """The known masks among ``names``, each once, in one order, so that equal choices are equal settings."""
    chosen = set(names)
    return tuple(name for name in MASK_NAMES if name in chosen)
