"""What the studies of every method train of this system."""

from fewer.studies.matrix.cases import Case

__all__ = ["CASE"]

CASE = Case(
    "pgd:3,steps=10", "dB", "fast:3",
    quick={"steps": 600, "set.access_points": 50, "set.train_phones": 4000, "set.validation_phones": 500,
           "set.test_phones": 1500, "set.learn_missing": 0.0},
    tiny={"steps": 3, "batch": 8, "set.access_points": 12, "set.candidates": 4,
          "set.train_phones": 120, "set.validation_phones": 20, "set.test_phones": 60, "set.learn_missing": 0.0},
    full={"steps": 10_000},
    max_loss=0.005,
)  # fmt: skip
