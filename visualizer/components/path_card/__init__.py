"""The card of one stop of a path."""
