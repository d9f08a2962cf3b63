"""From what was chosen to numbers."""
