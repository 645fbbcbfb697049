"""Several predictors as one: a mean, a weighted mean, a vote, or the best of them."""
