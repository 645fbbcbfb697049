"""The cell-free paper's sentences about measurements, phones and access points, and those nobody can test here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from fewer.studies.claims import Claim, Records, Verdict
from fewer.studies.words import between

__all__ = ["SCALE_CLAIMS"]

_SIMULATED = "the paper's simulation"
_NETWORK = "the paper's network"
_ROUNDING = 1e-5  # of a probability in float32
_LITTLE = 10.0  # per cent of spectral efficiency
_ENOUGH = 0.8  # of the average precision that the true map gives


def _three(records: Records) -> Verdict:
    """Average precision from three measurements, master left out, as a share of what the true map would give."""
    told, shares = [], []
    for name, own in records["cellfree/selectors"]["details"].items():
        if _NETWORK not in own:  # what selectors cost
            continue
        ours, best = (mean(one["other_average_precision"] for one in own[who]) for who in (_NETWORK, "ceiling"))
        shares.append(ours / best)
        told.append(f"{name} dB: {ours:.3f} of {best:.3f}")
    kind = "holds" if min(shares) > _ENOUGH else "partly" if max(shares) > _ENOUGH else "fails"
    said = f"average precision without the master, and of the true map: {'; '.join(told)}"
    return Verdict(kind, said, data=_SIMULATED, why=f"enough is said of {_ENOUGH:.0%} of the true map's")


def _efficiency(records: Records) -> Verdict:
    """What three measurements lose of the spectral efficiency that all of them give."""
    rows, told, fits = records["cellfree/se"]["rows"], [], []
    for place, what in enumerate(records["cellfree/se"]["columns"][2:6], start=2):
        lost, near = ([float(row[place]) for row in rows if (row[0] == "nearest 3") is is_near]
                      for is_near in (False, True))  # fmt: skip
        fits.append(max(lost) < _LITTLE)
        told.append(f"{what}: {between(lost)} by learned selectors, {between(near)} by the three closest")
    why = "kriging and boosting stand for the paper's network, which the study of efficiency does not train"
    kind = "holds on ours" if all(fits) else "partly" if any(fits) else "fails"
    return Verdict(kind, "; ".join(told), data=_SIMULATED, why=why)


def _any_number(records: Records) -> Verdict:
    """The same answers whatever the number of phones."""
    own: Mapping[str, Sequence[Mapping[str, float]]] = records["cellfree/phones"]["details"]
    most = max(one["difference"] for each in own.values() for one in each)
    told = f"a probability changes by at most {most:.0e} between graphs of 1 and of 1,000 phones"
    return Verdict("holds" if most < _ROUNDING else "fails", told, data=_SIMULATED)


def _more_phones(records: Records) -> Verdict:
    """A phone costs no more among more of them."""
    own: Mapping[str, Sequence[Mapping[str, float]]] = records["cellfree/phones"]["details"]
    cost = {int(name): [one["kept_us"] for one in each] for name, each in own.items() if name.isdecimal()}
    sizes = sorted(cost)
    told = "; ".join(f"{size} phones: {mean(cost[size]):.1f} us a phone" for size in sizes)
    first, last = cost[sizes[0]], cost[sizes[-1]]
    return Verdict("holds" if mean(last) <= mean(first) else "fails", told, data=_SIMULATED)


def _cache(records: Records) -> Verdict:
    """Cached embeddings answer the same, sooner."""
    own: Mapping[str, Mapping[str, float]] = records["cellfree/cached"]["details"]
    saved = {size: [one[f"whole {n}"] / one[f"cached {n}"] for n in (1, 100)] for size, one in own.items()}
    phones: Mapping[str, Sequence[Mapping[str, float]]] = records["cellfree/phones"]["details"]
    same = max(one["difference"] for each in phones.values() for one in each) < _ROUNDING
    told = "; ".join(f"{size} access points: {one:.0f} times as fast alone, {many:.1f} times in batches of 100"
                     for size, (one, many) in saved.items())  # fmt: skip
    faster = all(ratio > 1 for pair in saved.values() for ratio in pair)
    return Verdict("holds" if same and faster else "fails", told, data="fresh networks, timed")


def _more_access_points(records: Records) -> Verdict:
    """Weights and cost a phone grow with the number of access points."""
    own: Mapping[str, Mapping[str, float]] = records["cellfree/cached"]["details"]
    first, last = next(iter(own)), list(own)[-1]
    grown = {what: own[last][what] / own[first][what] for what in ("weights", "cached 100")}
    told = (f"from {first} to {last} access points the weights grow {grown['weights']:.0f}-fold and the cost of a "
            f"phone {grown['cached 100']:.1f}-fold")  # fmt: skip
    return Verdict("holds" if min(grown.values()) > 1.5 else "fails", told, data="fresh networks, timed")


def _less_than_proximity(records: Records) -> Verdict:
    """Proximity's cost hardly grows where the network's does."""
    own: Mapping[str, Mapping[str, float]] = records["cellfree/cached"]["details"]
    first, last = next(iter(own)), list(own)[-1]
    ours, near = (own[last][f"{who} 100"] / own[first][f"{who} 100"] for who in ("cached", "nearest"))
    told = f"from {first} to {last} access points a phone costs {ours:.1f} times as much, by proximity {near:.1f} times"
    return Verdict("holds" if ours > near else "fails", told, data="fresh networks, timed")


def _untestable(why: str) -> Verdict:
    return Verdict("untestable", why=why)


SCALE_CLAIMS: tuple[Claim, ...] = (
    Claim("three-measurements", "Abstract, Section V", "three measurements are enough to predict the other links",
          ("cellfree/selectors",), _three),
    Claim("no-full-measurement", "Section V", "measuring and sorting all access points is not needed", ("cellfree/se",),
          _efficiency),
    Claim("any-number-of-phones", "Section III-C, IV", "the number of phones at inference may differ from training's",
          ("cellfree/phones",), _any_number),
    Claim("scales-with-phones", "Abstract, Section V", "the algorithm is scalable in the number of phones",
          ("cellfree/phones",), _more_phones),
    Claim("cached-embeddings", "Section III-D", "access points' embeddings do not depend on phones; caching them saves "
          "computation", ("cellfree/cached", "cellfree/phones"), _cache),
    Claim("access-points-cost", "Section IV", "more access points make the network more complex", ("cellfree/cached",),
          _more_access_points),
    Claim("proximity-scales-better", "Section V", "proximity scales better in the number of access points",
          ("cellfree/cached",), _less_than_proximity),
    Claim("delay", "Section I", "measuring all access points delays initial access and handover", (),
          lambda records: _untestable("procedures of a live network, which nothing here simulates")),
    Claim("cell-free-wins", "Section I", "cell-free networks have a higher spectral efficiency than cellular ones", (),
          lambda records: _untestable("the paper cites it; no cellular network is simulated here")),
)  # fmt: skip
