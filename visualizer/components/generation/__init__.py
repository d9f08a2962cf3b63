"""The steps in which a model writes, one after the other, and the tree of a beam search."""
