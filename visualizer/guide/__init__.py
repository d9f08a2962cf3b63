"""A path through the model: stops that say in plain words what to look at, with the numbers of the run."""
