"""Every choice of the cell-free task, with its unit."""

from __future__ import annotations

from dataclasses import dataclass

from fewer.core.errors import UserError
from fewer.core.settings import check_choices, check_ranges, setting

__all__ = ["Settings"]

PLACEMENTS = ("uniform", "grid", "clustered", "poisson")
SHADOW_METHODS = ("fft", "claussen4", "claussen8", "claussen12", "spectral")
CLUSTER_RULES = ("distance", "rsrp", "learned")
MODELS = ("local", "distilled", "sage", "sage-literal")


@dataclass(frozen=True)
class Settings:
    """A deployment, what phones report, which access points are candidates, and the model that chooses."""

    access_points: int = setting(100, "number of access points (mean number for poisson)")
    side_m: float = setting(1000.0, "side of the square area", "m")
    placement: str = setting("uniform", "how access points are placed: " + ", ".join(PLACEMENTS))
    wrap: bool = setting(False, "whether opposite edges of the area touch")
    height_m: float = setting(10.0, "height of access points above phones", "m")
    exponent: float = setting(3.76, "path loss exponent")
    gain_at_1km_db: float = setting(-148.1, "median gain at 1 km; the paper prints its value at 1 m", "dB")
    shadowing_db: float = setting(8.0, "standard deviation of shadowing; 0: none", "dB")
    decorrelation_m: float = setting(50.0, "distance at which shadowing correlation is 1/e; 0: white", "m")
    site_correlation: float = setting(0.5, "correlation of shadowing between access points")
    shadowing: str = setting("fft", "map generator: " + ", ".join(SHADOW_METHODS))
    pixel_m: float = setting(5.0, "pixel of the shadow maps", "m")
    maps: str = setting("", "file with measured maps or a drive test (.npz or .csv); replaces the simulator")
    unheard: str = setting("", "numbers of that file that mark what was not heard, such as -999; empty: none")
    deployment_seed: int = setting(0, "seed of positions, maps and phones")
    measured: int = setting(3, "access points a phone measures, master included; 1 to 8, more to compare")
    error_db: float = setting(0.0, "standard deviation of the measurement error", "dB")
    quantum_db: float = setting(0.0, "resolution of reports; 3GPP: 1; 0: none", "dB")
    missing: float = setting(0.0, "share of reports that do not arrive; the master's always does")
    stale: float = setting(0.0, "share of reports taken before the phone moved on")
    stale_m: float = setting(10.0, "how far it moved since", "m")
    threshold_db: float = setting(10.0, "an access point serves if it is less than this below the master", "dB")
    candidates: int = setting(10, "candidate access points per master, master not counted")
    cluster_by: str = setting("distance", "how candidates are chosen: " + ", ".join(CLUSTER_RULES))
    model: str = setting(
        "local",
        "local (cost independent of size), distilled (the same, taught by kriging's map), sage (the paper's, "
        "inputs scaled), sage-literal (raw)",
    )
    width: int = setting(96, "hidden width of the local model")
    learn_missing: float = setting(0.1, "share of reports hidden while learning, so that it has seen missing ones")
    train_phones: int = setting(10_000, "phones to learn from")
    validation_phones: int = setting(2_000, "phones to choose by")
    test_phones: int = setting(8_000, "phones to judge by")

    @property
    def graph(self) -> bool:
        """Whether the model is the paper's graph network, in one reading or another."""
        return self.model.startswith("sage")

    def __post_init__(self) -> None:
        check_choices(self, _CHOICES)
        check_ranges(self, _RANGES)
        _ = self.unheard_db
        if self.candidates >= self.access_points and not self.maps:
            raise UserError(
                f"{self.candidates} candidates of {self.access_points} access points",
                "fewer candidates than access points",
                f"set candidates to at most {self.access_points - 1}",
            )
        if self.measured > self.candidates + 1:
            raise UserError(
                f"{self.measured} measured of {self.candidates} candidates and the master",
                "measured access points among the candidates",
                "measure fewer or raise candidates",
            )

    @property
    def unheard_db(self) -> tuple[float, ...]:
        """The numbers that mark what was not heard."""
        try:
            return tuple(float(word) for word in self.unheard.split(",") if word.strip())
        except ValueError:
            raise UserError(f"unheard={self.unheard!r}", "numbers, with commas between", "such as -999") from None


_CHOICES = {"placement": PLACEMENTS, "shadowing": SHADOW_METHODS, "cluster_by": CLUSTER_RULES, "model": MODELS}
_RANGES = (
    ("access_points", 2, 10_000_000),
    ("side_m", 1, 1e7),
    ("height_m", 0.1, 1e4),
    ("exponent", 0.1, 10),
    ("gain_at_1km_db", -500, 500),
    ("shadowing_db", 0, 50),
    ("decorrelation_m", 0, 1e6),
    ("site_correlation", 0, 1),
    ("pixel_m", 0.01, 1e5),
    ("deployment_seed", 0, 2**62),
    ("measured", 1, 1001),
    ("error_db", 0, 50),
    ("quantum_db", 0, 50),
    ("missing", 0, 1),
    ("stale", 0, 1),
    ("stale_m", 0, 1e5),
    ("threshold_db", 0.01, 200),
    ("candidates", 1, 1000),
    ("width", 4, 4096),
    ("learn_missing", 0, 1),
    ("train_phones", 1, 10**8),
    ("validation_phones", 1, 10**8),
    ("test_phones", 1, 10**8),
)
