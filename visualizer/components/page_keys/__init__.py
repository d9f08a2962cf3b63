"""Keys for the whole page, with an overview of all keys."""
