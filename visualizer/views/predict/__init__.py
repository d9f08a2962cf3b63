"""Predict, then reveal: what a person expects of a covered result, beside what was computed."""
