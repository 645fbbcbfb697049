"""How many weights there are and how many are left: of all parameters, with the prunable ones beside."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Count"]


@dataclass(frozen=True)
class Count:
    """Parameters of every network but the target copies, biases and norms included, and the prunable among them."""

    weights: int
    kept: int
    prunable: int
    kept_prunable: int

    @property
    def density(self) -> float:
        """The share kept of all parameters."""
        return self.kept / max(self.weights, 1)

    @property
    def prunable_density(self) -> float:
        """The share kept of the prunable ones."""
        return self.kept_prunable / max(self.prunable, 1)

    def metrics(self) -> dict[str, float]:
        """By the names under which a command tells them."""
        return {
            "weights": self.weights, "kept_weights": self.kept,
            "prunable_weights": self.prunable, "kept_prunable_weights": self.kept_prunable, "density": self.density,
        }  # fmt: skip

    def __str__(self) -> str:
        every = f"{self.kept:,} of {self.weights:,} ({100 * self.density:.3g} %)"
        part = f"{self.kept_prunable:,} of {self.prunable:,} ({100 * self.prunable_density:.3g} %)"
        return f"{every}; of the prunable ones {part}"
