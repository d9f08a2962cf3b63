"""Tasks, training from explicit seeds, and checkpoints."""
