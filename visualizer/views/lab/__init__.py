"""The parts of the Mask lab, one module each."""
