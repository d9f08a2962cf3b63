"""Light, dark, or as the system has it."""
