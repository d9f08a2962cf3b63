"""The server's side of a page: its pictures, whose turn it is, and what tunes the process."""
