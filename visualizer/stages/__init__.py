"""The knowledge about a stage: its inputs, its text, its checks, how its numbers came to be."""
