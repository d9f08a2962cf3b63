"""Training in the background, and the parts of the view that show it."""
