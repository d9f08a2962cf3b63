"""Pictures in a notebook: drawn where they stand, without a server."""
