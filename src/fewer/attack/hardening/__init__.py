"""Adversarial training: recipes, losses, and signs that it went wrong."""
