"""What stands around every view."""
