"""How a page is served: its pictures, whose turn it is, and what tunes the process."""
