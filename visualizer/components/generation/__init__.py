"""A model's writing, one step after the other, and the tree of a beam search."""
