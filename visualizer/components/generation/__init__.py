"""What a model writes, one step after the other, and the tree of a beam search."""
