"""A training at one moment, at rest or while it runs."""
