"""Claims of Sections I and IV: how useful features are, how robust, and what pruning by them does."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fewer.studies.claims import Claim, Records, Verdict
from fewer.studies.permutation import permutation_p
from fewer.systems.vision.studies.claims.evidence import Row, claim, of, percents, spread, tested
from fewer.systems.vision.studies.features import PRINTED, correlation

__all__ = ["FEATURES"]

_STUDY = "vision/fig5-8"
_STRONG = "10 x 0.05"


def _networks(records: Records, name: str) -> list[Row]:
    """The seeds of a network that tells threes from sevens."""
    found = of(records, _STUDY, f"3 against 7, {name}")
    return found if isinstance(found, list) else [found]


def _robust(rows: Sequence[Row], search: str) -> list[int]:
    return [sum(value > 0 for value in row["robust"][search]["robust_raw"]) for row in rows]


def _told(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


@claim("most-useful", "Figure 6", "Most features of a standard network have an effect, and it is useful.", _STUDY)
def _most(records: Records) -> Verdict:
    rows = _networks(records, "standard")
    useful = [sum(value > 0 for value in row["raw"]) for row in rows]
    dead = [sum(row["dead"]) for row in rows]
    numbers = f"useful {_told(useful)} of 100, dead {_told(dead)} (one number a seed)"
    return Verdict(tested([count > 50 for count in useful]), numbers)


@claim("harm-is-small", "Figure 6", "The few harmful features are only a little below zero.", _STUDY)
def _harm(records: Records) -> Verdict:
    rows = _networks(records, "standard")
    worst = [max((-value for value in row["raw"] if value < 0), default=0.0) for row in rows]
    typical = [statistics.median(value for value in row["raw"] if value > 0) for row in rows]
    counts = [sum(value < 0 for value in row["raw"]) for row in rows]
    numbers = (
        f"{_told(counts)} harmful; the worst {_told([round(v, 4) for v in worst])} below zero, where the median useful "
        f"one is {_told([round(v, 3) for v in typical])} above (one number a seed)"
    )
    small = [bad < good / 2 and count < 20 for bad, good, count in zip(worst, typical, counts)]
    return Verdict(tested(small), numbers)


@claim("usefulness-is-effect", "Figure 7", "The more useful a normalised feature is, the larger its effect.", _STUDY)
def _effect(records: Records) -> Verdict:
    found = [correlation(row) for row in _networks(records, "standard")]
    numbers = f"correlation {_told([round(all_, 2) for _, all_ in found])}; of living features alone " + _told(
        [round(living, 2) for living, _ in found]
    )
    return Verdict(tested([living > 0.3 and all_ > 0.3 for living, all_ in found]), f"{numbers} (one number a seed)")


@claim("none-robust-printed", "Figure 8",
       "Under PGD of 3 steps of 0.01 none of the 100 features of a standard network is robustly useful.",
       _STUDY)  # fmt: skip
def _printed(records: Records) -> Verdict:
    counts = _robust(_networks(records, "standard"), PRINTED)
    kind = "holds" if max(counts) == 0 else "fails"
    why = "three steps of 0.01 reach 0.03 of the ball of 0.3" if kind == "fails" else ""
    return Verdict(kind, f"robust features of 100: {_told(counts)} (one number a seed)", why=why)


@claim("none-robust", "Figure 8, Section IV-A",
       "No feature of a standard network is robustly useful in a ball of 0.3.", _STUDY)  # fmt: skip
def _none(records: Records) -> Verdict:
    counts = _robust(_networks(records, "standard"), _STRONG)
    kind = "holds" if max(counts) == 0 else "partly" if max(counts) <= 5 else "fails"
    return Verdict(kind, f"robust features of 100 under a search of {_STRONG}: {_told(counts)} (one number a seed)")


@claim("robust-by-hardening", "Sections IV-A and VI",
       "Robust features come from adversarial training, not from standard training.", _STUDY)  # fmt: skip
def _hardened(records: Records) -> Verdict:
    standard, hardened = (_robust(_networks(records, name), _STRONG) for name in ("standard", "hardened"))
    numbers = f"robust features of 100: standard {_told(standard)}, hardened {_told(hardened)} (one number a seed)"
    return Verdict("holds" if min(hardened) > max(standard) else "fails", numbers, permutation_p(standard, hardened))


def _pruned(other: str) -> Claim:
    @claim(f"usefulness-beats-{other}", "Section I",
           f"Pruning the least robustly useful features keeps more robustness than pruning by {other}.",
           "vision/shrink")  # fmt: skip
    def judge(records: Records) -> Verdict:
        points = of(records, "vision/shrink", "points")
        sizes = sorted({point["features"] for point in points}, reverse=True)[1:]
        parts, numbers, ours, theirs = [], [], list[float](), list[float]()
        for size in sizes:
            values = [
                percents([p for p in points if p["features"] == size and p.get("method") == measure], "pgd40")
                for measure in ("robust", other)
            ]
            if not all(values):
                return Verdict("untestable", why="the kept record was measured with another attack")
            parts.append(statistics.fmean(values[0]) > statistics.fmean(values[1]))
            numbers.append(f"{size} features: {spread(values[0])} against {spread(values[1])}")
            ours, theirs = ours + values[0], theirs + values[1]
        return Verdict(tested(parts), f"PGD-40, {'; '.join(numbers)}", permutation_p(ours, theirs))

    return judge


FEATURES = (_most, _harm, _effect, _printed, _none, _hardened, _pruned("magnitude"), _pruned("random"))
