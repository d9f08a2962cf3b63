"""Any model: what was recorded of a pass of another model."""
