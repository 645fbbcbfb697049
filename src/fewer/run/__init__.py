"""One training, from words to a finished folder."""
