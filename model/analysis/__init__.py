"""Analyses of a model's work on its input: measures of heads, influence, reach, and the check against PyTorch."""
