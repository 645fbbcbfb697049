"""Every testable sentence of the cell-free paper, judged by our results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from fewer.studies.claims import Claim, Records, Verdict
from fewer.studies.permutation import permutation_p
from fewer.systems.cellfree.studies.scale_claims import SCALE_CLAIMS
from fewer.systems.cellfree.studies.statistics import PAPER

__all__ = ["CLAIMS"]

_FAR = 2.0  # spreads over deployments
_CLEAR = 0.05  # p below which a difference is more than chance
_SIMULATED = "the paper's simulation; it gives no deviation or correlation of shadowing, no optimiser and no epochs"
_FITTED = "the paper's simulation, 8 dB of shadowing with 0.5 between access points chosen so that these statistics fit"
_READINGS = {"paper": "literal", "paper-density": "literal, densities", "improved": "improved"}
_TRIED = "readings of areas, maps, clusters, deviation, optimiser and epochs: cellfree/readings"

Values = Mapping[str, Sequence[Mapping[str, float]]]  # by network, of every deployment


def _told(values: Sequence[float]) -> str:
    spread = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{mean(values):.3f}{spread} ({len(values)})"


def _statistic(what: str, size: int, candidates: int) -> Claim:
    paper = PAPER[what, size, candidates]
    words = {
        "ignored": f"{paper:.0%} of the positive links are ignored by clusters of {candidates} at {size} access points",
        "power_share": f"positive links carry {paper:.0%} of the uplink power at 10 dB",
        "closest_three": f"of the 3 access points closest to the master {paper:.0%} have a positive link",
        "closest": f"the access point closest to the master has a positive link with probability {paper:.0%}",
    }

    def judge(records: Records) -> Verdict:
        own: Mapping[str, Values] = records["cellfree/statistics"]["details"]
        key, fits, told = f"L={size} c={candidates}", [], []
        for name, values in own.items():
            if name.startswith("no shadowing"):
                continue
            here = [one[what] for one in values[key]]
            fits.append(abs(mean(here) - paper) <= _FAR * stdev(here))
            told.append(f"{name}: {_told(here)}")
        kind = "holds" if all(fits) else "partly" if any(fits) else "fails"
        return Verdict(kind, "; ".join(told), data=_FITTED, why="" if all(fits) else _TRIED)

    name = f"statistics-{what.replace('_', '-')}-{size}-{candidates}"
    return Claim(name, "Section IV", words[what], ("cellfree/statistics",), judge)


def _of(records: Records, study: str, reading: str, metric: str, size: int, candidates: int) -> list[float]:
    return [one[metric] for one in records[study]["details"][reading][f"L={size} c={candidates}"]]


def _number(
    metric: str, study: str, paper: float, *, sizes: Sequence[int], above: bool
) -> Callable[[Records], Verdict]:
    """Whether means are above the paper's bound, or within two spreads of its number; literal readings decide."""

    def judge(records: Records) -> Verdict:
        fits, literal, told = [], [], []
        for reading in records[study]["details"]:
            for size in sizes:
                here = _of(records, study, reading, metric, size, 10)
                fits.append(mean(here) > paper if above else abs(mean(here) - paper) <= _FAR * stdev(here))
                literal += fits[-1:] if reading != "improved" else []
                told.append(f"{_READINGS[reading]}, {size} access points: {_told(here)}")
        kind = "holds" if all(literal) else "partly" if any(fits) else "fails"
        return Verdict(kind, "; ".join(told), data=_SIMULATED, why="" if kind == "holds" else _TRIED)

    return judge


def _rises(metric: str, study: str, size: int, sign: int) -> Callable[[Records], Verdict]:
    """From 10 to 20 candidates, in every reading; p is of the reading with the most deployments."""

    def judge(records: Records) -> Verdict:
        fits, told, tests = [], [], []
        for reading in records[study]["details"]:
            few, many = (_of(records, study, reading, metric, size, candidates) for candidates in (10, 20))
            fits.append(sign * (mean(many) - mean(few)) > 0)
            tests.append((-len(few), permutation_p(few, many)))
            told.append(f"{_READINGS[reading]}: {_told(few)} to {_told(many)}")
        p = min(tests)[1]
        kind = "fails" if not any(fits) else "holds" if all(fits) and p < _CLEAR else "partly"
        return Verdict(kind, "; ".join(told), p, _SIMULATED)

    return judge


def _density(records: Records) -> Verdict:
    """Same performance at 50 and at 100 access points; a difference that is more than chance contradicts it."""
    same, told, tests = [], [], []
    for study, metric in (("fig2", "precision"), ("fig2", "recall"), ("fig3", "auc"), ("fig3", "average_precision")):
        for reading in records[f"cellfree/{study}"]["details"]:
            large, small = (_of(records, f"cellfree/{study}", reading, metric, size, 10) for size in (100, 50))
            p = permutation_p(large, small)
            tests.append(p)
            # three deployments a side cannot go below 0.1
            same.append(p >= (_CLEAR if min(len(large), len(small)) > 3 else 0.1 + 1e-9))
            told.append(f"{metric}, {_READINGS[reading]}: {_told(large)} and {_told(small)}, p {p:.2g}")
    kind = "fails" if not any(same) else "holds" if all(same) else "partly"
    why = "" if kind == "holds" else "both readings of the areas, literal and improved network"
    return Verdict(kind, "; ".join(told), min(tests), _SIMULATED, why)


def _cap(records: Records) -> Verdict:
    """Recall cannot pass 1 - ignored."""
    own: Mapping[str, Values] = records["cellfree/fig2"]["details"]
    rows = [one for values in own.values() for each in values.values() for one in each]
    below = sum(one["recall"] <= 1 - one["ignored"] + 1e-9 for one in rows)
    least = min(1 - one["ignored"] - one["recall"] for one in rows)
    kind = "holds" if below == len(rows) else "fails"
    return Verdict(kind, f"{below} of {len(rows)} trainings, the closest {least:.3f} below it", data=_SIMULATED)


def _imbalance(records: Records) -> Verdict:
    """More candidates, a smaller share of positives."""
    own: Mapping[str, Values] = records["cellfree/statistics"]["details"]
    fits, told, tests = [], [], []
    for size in (100, 50):
        few, many = ([one["positive"] for one in own[_first(own)][f"L={size} c={c}"]] for c in (10, 20))
        fits.append(mean(many) < mean(few))
        tests.append(permutation_p(few, many))
        told.append(f"{size} access points: positive {_told(few)} of 10 candidates and the master, {_told(many)} of 20")
    return Verdict(
        "holds" if all(fits) else "partly" if any(fits) else "fails", "; ".join(told), max(tests), _SIMULATED
    )


def _first(found: Mapping[str, Any]) -> str:
    return next(iter(found))


def _power_control(records: Records) -> Verdict:
    """A fixed number of strongest links takes weak ones: phones that fewer than three access points serve."""
    own: Mapping[str, Values] = records["cellfree/statistics"]["details"]
    here = [one["fewer_than_three"] for one in own[_first(own)]["L=100 c=10"]]
    told = f"{_told(here)} of the phones have fewer than three links within 10 dB of the strongest, so that three "
    return Verdict("holds" if mean(here) > 0 else "fails", f"{told}strongest would take weaker ones", data=_SIMULATED)


def _shadowing(records: Records) -> Verdict:
    """Proximity is good where there is no shadowing."""
    own: Mapping[str, Values] = records["cellfree/statistics"]["details"]
    flat = next(name for name in own if name.startswith("no shadowing"))
    told, fits, tests = [], [], []
    for what in ("closest", "closest_three", "ignored"):
        without, shadowed = ([one[what] for one in own[name]["L=100 c=10"]] for name in (flat, _first(own)))
        fits.append((mean(without) > mean(shadowed)) == (what != "ignored"))
        tests.append(permutation_p(without, shadowed))
        told.append(f"{what.replace('_', ' ')} {_told(without)} without shadowing, {_told(shadowed)} with it")
    kind = "holds" if all(fits) else "partly" if any(fits) else "fails"
    return Verdict(kind, "; ".join(told), max(tests), _SIMULATED)


def _map(records: Records) -> Verdict:
    """What a network learns of a map is less where a place says nothing of the next."""
    own: Mapping[str, Sequence[Mapping[str, float]]] = records["cellfree/readings"]["details"]
    white, known = ([one["other_average_precision"] for one in own[name]] for name in ("paper-white", "paper-ten"))
    told = f"average precision without the master {_told(known)} on correlated maps, {_told(white)} on white ones"
    kind, p = "holds" if mean(known) > mean(white) else "fails", permutation_p(known, white)
    return Verdict(kind, told, p, _SIMULATED, "three deployments a side cannot have a p below 0.1" if p >= 0.1 else "")


def _proximity(metric: str) -> Callable[[Records], Verdict]:
    """The paper's network against the three closest, on the same phones."""

    def judge(records: Records) -> Verdict:
        fits, told, tests = [], [], []
        details = records["cellfree/selectors"]["details"]
        for name, own in details.items():
            if name == "costs":
                continue
            ours, near = ([one[metric] for one in own[who]] for who in ("the paper's network", "nearest 3"))
            fits.append(mean(ours) > mean(near))
            tests.append(permutation_p(ours, near))
            told.append(f"{name}: {_told(ours)} against {_told(near)}")
        kind = "holds" if all(fits) else "partly" if any(fits) else "fails"
        return Verdict(kind, "; ".join(told), max(tests), _SIMULATED)

    return judge


_FIG2, _FIG3, _READ = ("cellfree/fig2",), ("cellfree/fig3",), ("cellfree/readings",)
_SELECTORS, _STATISTICS = ("cellfree/selectors",), ("cellfree/statistics",)

CLAIMS: tuple[Claim, ...] = (
    *(_statistic(*key) for key in PAPER),
    Claim("fixed-number", "Section III-D", "a fixed number of strongest access points includes far weaker ones",
          _STATISTICS, _power_control),
    Claim("imbalance", "Section IV", "more candidates mean a smaller share of positive links", _STATISTICS, _imbalance),
    Claim("fig2-precision", "Figure 2, abstract", "precision up to 0.83 at 100 access points and 10 candidates", _FIG2,
          _number("precision", "cellfree/fig2", 0.83, sizes=(100,), above=False)),
    Claim("fig2-recall", "Figure 2, abstract", "recall up to 0.68 at 100 access points and 10 candidates", _FIG2,
          _number("recall", "cellfree/fig2", 0.68, sizes=(100,), above=False)),
    Claim("fig2-cap", "Section IV", "recall is bounded by what the initial clusters leave", _FIG2, _cap),
    Claim("fig2-recall-rises", "Figure 2", "20 candidates instead of 10 raise recall, 100 access points", _FIG2,
          _rises("recall", "cellfree/fig2", 100, +1)),
    Claim("fig2-precision-falls", "Figure 2", "20 candidates instead of 10 cost precision, 100 access points", _FIG2,
          _rises("precision", "cellfree/fig2", 100, -1)),
    Claim("fig2-50-recall-rises", "Figure 2", "20 candidates instead of 10 raise recall, 50 access points", _FIG2,
          _rises("recall", "cellfree/fig2", 50, +1)),
    Claim("fig2-50-precision-falls", "Figure 2", "20 candidates instead of 10 cost precision, 50 access points", _FIG2,
          _rises("precision", "cellfree/fig2", 50, -1)),
    Claim("fig3-auc", "Figure 3", "AUC above 0.9 at 10 candidates in both networks", _FIG3,
          _number("auc", "cellfree/fig3", 0.9, sizes=(100, 50), above=True)),
    Claim("fig3-ap", "Figure 3", "average precision above 0.8 at 10 candidates in both networks", _FIG3,
          _number("average_precision", "cellfree/fig3", 0.8, sizes=(100, 50), above=True)),
    Claim("fig3-ap-falls", "Figure 3", "more candidates cost much average precision, 100 access points", _FIG3,
          _rises("average_precision", "cellfree/fig3", 100, -1)),
    Claim("fig3-50-ap-falls", "Figure 3", "more candidates cost much average precision, 50 access points", _FIG3,
          _rises("average_precision", "cellfree/fig3", 50, -1)),
    Claim("density", "Section IV", "the density of access points does not matter", (*_FIG2, *_FIG3), _density),
    Claim("shadowing-hurts-proximity", "Sections I, V", "shadowing is what makes proximity choose wrongly", _STATISTICS,
          _shadowing),
    Claim("static-map", "Sections I, V", "the network uses the static map of correlated shadowing", _READ, _map),
    Claim("beats-proximity-precision", "Sections IV, V", "higher precision than the three closest to the master",
          _SELECTORS, _proximity("precision")),
    Claim("beats-proximity", "Abstract", "predicts the potential access points better than proximity does",
          _SELECTORS, _proximity("other_average_precision")),
    *SCALE_CLAIMS,
)  # fmt: skip
