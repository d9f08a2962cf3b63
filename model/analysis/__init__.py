"""What a model does with its input: measures of heads, influence, reach, and the check against PyTorch."""
