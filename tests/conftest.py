"""Property tests draw the same examples on every run, and none fails for being slow on a busy machine."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
