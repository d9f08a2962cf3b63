"""A self-attention by itself over embedded tokens: what is left of a Transformer's layer without all else.

Without a residual connection nothing ties the width of its output to that of its input, so that published examples
choose both: d_in is ``d_model`` here, d_out a choice of its own.
"""

from __future__ import annotations

from torch import Tensor

from model.config import TransformerConfig
from model.layers import attention_of
from model.masks import LayerMasks, for_each_layer
from model.tracing import TracedModule
from model.transformer import InputEmbedding


class AttentionAlone(TracedModule):
    """Embeddings and one multi-head self-attention, with neither residual connection, norm nor logits.

    Weights are PyTorch's defaults until one of ``WEIGHT_SOURCES`` fills them.

    Raises:
        ValueError: the architecture is that of a Transformer.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        if config.architecture != "attention":
            raise ValueError(f"architecture ({config.architecture}) must be attention: others are a Transformer")
        self.config = config
        self.inputs = InputEmbedding(config, config.vocab_size)
        self.attention = attention_of(config)

    def forward(
        self, source: Tensor, *, source_mask: LayerMasks = None, source_positions: Tensor | None = None
    ) -> Tensor:
        """Token ids to what the attention finds for each of them.

        Args:
            source: (B, T) token ids.
            source_mask: broadcastable to (B, H, T, T), True = may attend; or a sequence of one such mask.
            source_positions: where each token stands, as ``Transformer`` takes them.

        Returns:
            (B, T, d_out).
        """
        x = self.inputs(source, source_positions)
        (mask,) = for_each_layer(source_mask, 1)
        output: Tensor = self.attention(x, x, x, mask)
        return output
