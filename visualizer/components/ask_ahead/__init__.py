"""Numbers that are asked for before the picture that draws them is mounted."""
