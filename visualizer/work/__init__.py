"""Slow work: the caches of what was computed, and jobs, for one session or for all."""
