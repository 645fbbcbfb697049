"""Neural networks that do the same job with fewer weights, fewer measurements and fewer surprises."""

__version__ = "0.1.0"
