"""How good a forecast is, and how sure the score."""
