"""Everything a person can choose, as frozen values, and the link that carries them."""
