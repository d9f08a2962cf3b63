"""The parts of the Generate view, one module each."""
