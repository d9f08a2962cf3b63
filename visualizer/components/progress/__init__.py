"""The progress of something, or the shares of it: a bar with a line of words each."""
