"""The tokens of the run, one chip each."""
