"""The server's answers beside the page: arrays by their address."""
