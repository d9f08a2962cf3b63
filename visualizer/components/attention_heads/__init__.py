"""Every head of every layer, as grids or as lines."""
