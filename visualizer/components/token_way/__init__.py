"""One token's way through the model."""
