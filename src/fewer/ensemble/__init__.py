"""Several predictors as one: a mean, a weighted mean, a vote, or the best of them."""

__all__ = ["HOW"]

# functions (task, members, split) -> predictor, imported when they are called: help needs no torch
HOW = {
    "best": "fewer.ensemble.combine:best",
    "majority": "fewer.ensemble.combine:majority",
    "mean": "fewer.ensemble.combine:mean",
    "weighted": "fewer.ensemble.combine:weighted",
}
