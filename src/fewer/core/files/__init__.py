"""Files of a run: whole or absent, never half written, and nothing that could execute."""
