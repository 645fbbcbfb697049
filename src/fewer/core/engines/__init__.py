"""Engines: the same objectives trained one by one, in lock-step, or resumed to the bit."""

__all__ = ["ENGINES", "OPTIMIZERS", "PRECISIONS"]

ENGINES = ("auto", "plain", "cohort", "sparse")
OPTIMIZERS = ("adam", "adamw", "adabelief", "sgd")  # rules in `optimizer.update_`
PRECISIONS = ("float32", "float64", "bfloat16")
