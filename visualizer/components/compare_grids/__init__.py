"""The same heads under two masks, and their difference."""
