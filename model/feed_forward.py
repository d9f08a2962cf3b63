"""The position-wise feed-forward network ("Attention Is All You Need", section 3.3)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from model.config import Activation
from model.dropout import Dropout
from model.tracing import TracedModule


class FeedForward(TracedModule):
    """Two linear layers with an activation between, the same at every position (equation 2).

    Args:
        d_model: width of input and output.
        d_ff: width of the hidden layer.
        activation: ``relu`` (the paper) or ``gelu`` (exact, with the error function).
        dropout: probability of dropping a hidden unit after the activation.
    """

    def __init__(self, d_model: int, d_ff: int, *, activation: Activation = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.activation = activation
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d_model) -> (B, T, d_model)."""
        tap = self.tap
        hidden = tap("hidden", self.w_1(x), "B T F")
        if self.activation == "relu":
            activation = tap("activation", F.relu(hidden), "B T F")
        else:
            activation = tap("activation", F.gelu(hidden), "B T F")
        if not self.dropout.active:
            return tap("output", self.w_2(activation), "B T D")
        dropped_activation = tap("dropped_activation", self.dropout(activation), "B T F")
        return tap("output", self.w_2(dropped_activation), "B T D")
