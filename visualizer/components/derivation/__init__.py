"""The derivation of one number."""
