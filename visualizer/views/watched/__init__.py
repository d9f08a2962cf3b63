"""Models that were not built here: recordings of any model, and pretrained ones, in the views that they have."""
