"""The map of the whole model, on which one stage is current."""
