"""What the studies of every method train of this system."""

from fewer.studies.matrix.cases import Case

__all__ = ["CASE"]

CASE = Case(
    "fgsm:0.1", "deviations of an observation", "fast:0.1",
    quick={"steps": 1500, "batch": 100, "set.environment": "walker2d", "set.algorithm": "plain-bc",
           "set.transitions": 20000, "set.hidden": "128,128", "set.episodes": 5, "set.horizon": 300},
    tiny={"steps": 2, "batch": 8, "set.environment": "walker2d", "set.algorithm": "td3bc", "set.transitions": 300,
          "set.hidden": "128,128", "set.episodes": 1, "set.horizon": 5},
    full={"set.environment": "walker2d", "set.algorithm": "plain-bc", "steps": 100_000},
    search={"settings": ["algorithm=plain-bc"]}, max_loss=0.03,
)  # fmt: skip
