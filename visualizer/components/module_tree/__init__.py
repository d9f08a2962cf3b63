"""The operations of any model by module, of which one is chosen."""
