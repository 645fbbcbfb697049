"""What the studies of every method train of this system."""

from fewer.studies.matrix.cases import Case

__all__ = ["CASE"]

CASE = Case(
    "pgd:0.1,steps=5", "deviations of a band", "fast:0.1",
    # short trainings never dare to say rain, and a threshold would see no difference between them
    metric="average_precision",
    quick={"steps": 120, "batch": 16, "optimizer.lr": 2e-3, "set.model": "focus", "set.size": 24,
           "set.width": 8, "set.train_windows": 400, "set.augment": True, "set.validation_windows": 8,
           "set.test_windows": 48, "prune.samples": 8},
    tiny={"steps": 2, "batch": 2, "set.model": "focus", "set.size": 24, "set.width": 8, "set.train_windows": 6,
          "set.validation_windows": 2, "set.test_windows": 2, "prune.samples": 2},
    full={"set.model": "focus", "prune.samples": 16}, attacked_at=("tiny", "quick"),
)  # fmt: skip
