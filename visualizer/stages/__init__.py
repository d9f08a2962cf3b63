"""The stages explained: their inputs, their texts, their checks, the derivations of their numbers."""
