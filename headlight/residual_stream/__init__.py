"""A residual stream, taken apart: what each stage is a sum of, what wrote to it, and the numbers of each part."""
