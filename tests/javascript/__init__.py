"""The JavaScript of the pictures."""
