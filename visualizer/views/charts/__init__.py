"""The charts below a picture: each answers one question, and is drawn when it is asked for."""
