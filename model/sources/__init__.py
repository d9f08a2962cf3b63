"""Sources of weights."""
