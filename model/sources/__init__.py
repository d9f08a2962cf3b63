"""The sources of weights."""
