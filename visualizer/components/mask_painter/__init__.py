"""A mask painted cell by cell, with what else blocks a cell and what looks wrong."""
