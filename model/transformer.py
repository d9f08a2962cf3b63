"""The whole Transformer ("Attention Is All You Need", figure 1)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from model.config import TransformerConfig
from model.dropout import Dropout
from model.layers import DecoderLayer, EncoderLayer
from model.masks import LayerMasks, for_each_layer
from model.positional_encoding import POSITIONS
from model.tracing import TracedModule


class InputEmbedding(TracedModule):
    """Token ids to vectors: embedding times sqrt(d_model), plus positions (sections 3.4 and 3.5)."""

    def __init__(self, config: TransformerConfig, vocab_size: int) -> None:
        super().__init__()
        self.d_model, self.max_len = config.d_model, config.max_len
        self.tokens = nn.Embedding(vocab_size, config.d_model)
        self.positions = POSITIONS[config.positions](config.max_len, config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """(B, T) token ids -> (B, T, d_model).

        Args:
            ids: (B, T).
            positions: where each token stands, (T,) or (B, T) int64; 0, 1, 2, ... unless given.

        Raises:
            ValueError: a position is negative or beyond ``max_len``.
        """
        length = ids.shape[-1] if positions is None else int(positions.max()) + 1
        if length > self.max_len:
            raise ValueError(f"the sequence has {length} tokens: max_len ({self.max_len}) is the most")
        if positions is None:
            positions = torch.arange(length)
        elif positions.min() < 0:
            raise ValueError(f"a position ({int(positions.min())}) must be 0 or more")
        tap = self.tap
        embedding = tap("embedding", self.tokens(ids), "B T D")
        scaled_embedding = tap("scaled_embedding", embedding * math.sqrt(self.d_model), "B T D")
        positional_encoding = tap(
            "positional_encoding",
            self.positions(positions).to(embedding.dtype),
            "T D" if positions.dim() == 1 else "B T D",
        )
        return tap(
            "embedded",
            self.dropout(scaled_embedding + positional_encoding),
            "B T D",
        )


class Encoder(TracedModule):
    """Embeddings and ``n_layers`` encoder layers; with pre-norm or ``final_norm``, a last norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inputs = InputEmbedding(config, config.vocab_size)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.norm = _last_norm(config)

    def forward(self, ids: Tensor, mask: LayerMasks = None, positions: Tensor | None = None) -> Tensor:
        """(B, T) token ids -> (B, T, d_model).

        ``mask`` is broadcastable to (B, H, T, T), True = may attend, and holds for every layer; or one per layer.
        ``positions`` are those of ``InputEmbedding``.
        """
        x = self.inputs(ids, positions)
        for layer, layer_mask in zip(self.layers, for_each_layer(mask, len(self.layers)), strict=True):
            x = layer(x, layer_mask)
        return x if self.norm is None else self.tap("norm", self.norm(x), "B T D")


class Decoder(TracedModule):
    """Embeddings and ``decoder_depth`` decoder layers; with pre-norm or ``final_norm``, a last norm.

    Without an encoder there is nothing to cross-attend to, and a layer is that of the encoder.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inputs = InputEmbedding(config, config.output_vocab_size)
        self.takes_memory = config.architecture == "encoder-decoder"
        layer = DecoderLayer if self.takes_memory else EncoderLayer
        self.layers = nn.ModuleList(layer(config) for _ in range(config.decoder_depth))
        self.norm = _last_norm(config)

    def forward(
        self,
        ids: Tensor,
        memory: Tensor | None = None,
        mask: LayerMasks = None,
        memory_mask: LayerMasks = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Decode a target.

        Args:
            ids: (B, T) token ids.
            memory: (B, S, d_model), the encoder's output; None in a decoder without cross-attention.
            mask: broadcastable to (B, H, T, T), True = may attend; or one per layer.
            memory_mask: broadcastable to (B, H, T, S), True = may attend; or one per layer.
            positions: where each token stands, as ``InputEmbedding`` takes them.

        Returns:
            (B, T, d_model).

        Raises:
            ValueError: the memory is missing, or given to a decoder without cross-attention.
        """
        if (memory is not None) != self.takes_memory:
            raise ValueError(f"memory: this decoder has {'a' if self.takes_memory else 'no'} cross-attention")
        x = self.inputs(ids, positions)
        n_layers = len(self.layers)
        masks = zip(for_each_layer(mask, n_layers), for_each_layer(memory_mask, n_layers), strict=True)
        for layer, (own, crossing) in zip(self.layers, masks, strict=True):
            x = layer(x, own) if memory is None else layer(x, memory, own, crossing)
        return x if self.norm is None else self.tap("norm", self.norm(x), "B T D")


class Transformer(TracedModule):
    """Encoder, decoder or both, with the final linear layer and softmax.

    Weights are PyTorch's defaults until one of ``WEIGHT_SOURCES`` fills them.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        if config.architecture == "attention":
            raise ValueError("architecture (attention) is no Transformer: build AttentionAlone")
        self.config = config
        self.encoder = Encoder(config) if config.architecture != "decoder" else None
        self.decoder = Decoder(config) if config.architecture != "encoder" else None
        self.unembedding = nn.Linear(config.d_model, config.output_vocab_size, bias=config.unembedding_bias)
        if config.tied_embeddings:
            self._tie()

    def forward(
        self,
        source: Tensor,
        target: Tensor | None = None,
        *,
        source_mask: LayerMasks = None,
        target_mask: LayerMasks = None,
        memory_mask: LayerMasks = None,
        source_positions: Tensor | None = None,
        target_positions: Tensor | None = None,
    ) -> Tensor:
        """Token ids to the probability of every token of the vocabulary at every position.

        A mask holds for every layer; a sequence of masks has one, or None, per layer. Positions count from 0 unless
        they are given, (T,) or (B, T) int64; ``positions_from_first_token`` gives those of a padded batch.

        Args:
            source: (B, S) token ids; for the ``decoder`` architecture its only sequence.
            target: (B, T) token ids, only for ``encoder-decoder``.
            source_mask: self-attention over ``source``, broadcastable to (B, H, S, S), True = may attend.
            target_mask: self-attention over ``target``, broadcastable to (B, H, T, T).
            memory_mask: cross-attention from ``target`` to ``source``, broadcastable to (B, H, T, S).
            source_positions: where each token of ``source`` stands.
            target_positions: where each token of ``target`` stands.

        Returns:
            (B, T, output_vocab_size), each position summing to one; over ``source`` where there is no target.

        Raises:
            ValueError: a target is missing, or it or one of its masks is given to an architecture that has none.
        """
        if (target is not None) != (self.config.architecture == "encoder-decoder"):
            raise ValueError(f"architecture ({self.config.architecture}): only encoder-decoder takes a target")
        if target is None and not (target_mask is None and memory_mask is None):
            raise ValueError(f"architecture ({self.config.architecture}) has one sequence: mask it by source_mask")
        if target is None and target_positions is not None:
            raise ValueError(f"architecture ({self.config.architecture}) has one sequence: give source_positions")
        if self.encoder is None:
            x = self._run_decoder(source, None, source_mask, None, source_positions)
        elif target is None:
            x = self.encoder(source, source_mask, source_positions)
        else:
            memory = self.encoder(source, source_mask, source_positions)
            x = self._run_decoder(target, memory, target_mask, memory_mask, target_positions)
        logits = self.tap("logits", self.unembedding(x), "B T V")
        return self.tap("probabilities", logits.softmax(-1), "B T V")

    def _run_decoder(
        self,
        ids: Tensor,
        memory: Tensor | None,
        mask: LayerMasks,
        memory_mask: LayerMasks,
        positions: Tensor | None,
    ) -> Tensor:
        if self.decoder is None:
            raise ValueError("architecture (encoder) has no decoder")
        x: Tensor = self.decoder(ids, memory, mask, memory_mask, positions)
        return x

    def _tie(self) -> None:
        """Give the final linear layer and the embeddings of its vocabulary one matrix."""
        for part in (self.encoder, self.decoder):
            if part is not None and (part is self.decoder or self.config.target_vocab_size is None):
                part.inputs.tokens.weight = self.unembedding.weight


def _last_norm(config: TransformerConfig) -> nn.LayerNorm | None:
    """Pre-norm leaves the last layer's sum unnormalised, so that one norm more is needed; else it is a choice."""
    has_one = config.norm == "pre" or config.final_norm
    return nn.LayerNorm(config.d_model, eps=config.layer_norm_eps) if has_one else None
