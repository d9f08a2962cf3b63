"""How far something is, or how it is shared: a bar with a line of words each."""
