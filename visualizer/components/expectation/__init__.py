"""Marks on a covered matrix: what a person expects in it, and later what was computed beside it."""
