"""What the studies of every method train of this system."""

from fewer.studies.matrix.cases import Case

__all__ = ["CASE"]

CASE = Case(
    "pgd:0.1,steps=10", "pixels, 0 to 1", "fast:0.1",
    quick={"steps": 400, "batch": 64, "set.network": "mlp"},
    tiny={"steps": 3, "batch": 8, "set.network": "cnn0", "set.classes": "3,7"},
    full={"set.network": "cnn2", "steps": 6000},
    search={"settings": ["network=mlp"]}, max_loss=0.005,
)  # fmt: skip
