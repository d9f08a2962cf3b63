"""What the server answers beside the page: arrays by their address."""
