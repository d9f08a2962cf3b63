"""Matrices side by side."""
