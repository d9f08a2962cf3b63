"""Names that need no tensor, for who offers a choice before PyTorch is loaded."""

MASK_NAMES = ("causal", "padding", "sliding_window", "prefix", "strided", "custom")
"""The masks of ``model.masks.MASKS``, in the order in which they are named and combined."""
