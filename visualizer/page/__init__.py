"""The parts of the page around every view."""
