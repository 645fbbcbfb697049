"""Claims of Section III: sizes, thresholds, and what more capacity does."""

from __future__ import annotations

import statistics

from fewer.studies.claims import Claim, Records, Verdict
from fewer.studies.permutation import permutation_p
from fewer.systems.vision.studies.capacity import PAPER
from fewer.systems.vision.studies.claims.evidence import Row, claim, half_way, mean, of, percents, spread, tested
from fewer.systems.vision.studies.measure import stood
from fewer.systems.vision.studies.remarks import explained

__all__ = ["CAPACITY"]

_TABLES = {"pgd": "vision/table2", "fgsm": "vision/table3"}
_KEYS = {"pgd": "pgd40", "fgsm": "fgsm"}
_CLOSE = 5.0  # points: two trainings of one recipe differ by as much
_TRIED = "three seeds of the recipe as printed, 50 epochs; what other readings of it give is in vision/mismatch"
_SMALL, _LARGE = range(3), range(3, 6)


def _paper(records: Records, attack: str, scale: int) -> list[Row]:
    found: list[Row] = of(records, _TABLES[attack], f"paper-{attack}-cnn{scale}")
    return found


def _values(records: Records, recipe: str, attack: str, key: str) -> list[list[float]]:
    """By scale, one value for each seed."""
    return [percents(of(records, _TABLES[attack], f"{recipe}-{attack}-cnn{n}"), key) for n in range(6)]


@claim("table1-parameters", "Table I", "The six networks have 5,590, 20k, 80k, 320k, 1.2m and 4.8m parameters.",
       "vision/table1")  # fmt: skip
def _parameters(records: Records) -> Verdict:
    ours = [row[5] for row in records["vision/table1"]["rows"]]
    printed = [5590, 20e3, 80e3, 320e3, 1.2e6, 4.8e6]
    off = [abs(mine / theirs - 1) for mine, theirs in zip(ours, printed)]
    numbers = f"weights {', '.join(f'{n:,}' for n in ours)}; off by at most {100 * max(off):.0f} %"
    return Verdict("holds" if off[0] == 0 and max(off) < 0.1 else "partly", numbers)


@claim("converged", "Section III-A", "After 50 epochs every model has clearly converged.", *_TABLES.values())
def _converged(records: Records) -> Verdict:
    rows = [row for attack in _TABLES for scale in range(6) for row in _paper(records, attack, scale)]
    guessing = sum(stood(dict(row), 10)[0] == row["steps"] for row in rows)
    falling = 0
    for row in rows:
        losses = [loss for _, loss in row["losses"] if loss is not None]
        tenth = max(1, len(losses) // 10)
        falling += statistics.fmean(losses[-tenth:]) < 0.98 * statistics.fmean(losses[-2 * tenth : -tenth])
    numbers = (
        f"of {len(rows)} trainings {guessing} end at the loss of guessing, and in {falling} the loss of the last tenth "
        "lies over 2 % below that of the tenth before"
    )
    return Verdict("holds" if guessing + falling == 0 else "fails", numbers, why=_TRIED)


def _threshold(attack: str) -> Claim:
    table, key = _TABLES[attack], _KEYS[attack]

    @claim(f"{attack}-threshold", "Section III-B" + (", Table II" if attack == "pgd" else ", Table III"),
           f"Under {attack.upper()}, networks up to scale 2 are not robust (3 to 7 %), from scale 3 on they are (over "
           "70 %).", table)  # fmt: skip
    def judge(records: Records) -> Verdict:
        ours = [percents(_paper(records, attack, scale), key) for scale in range(6)]
        small = [statistics.fmean(ours[scale]) < 15 for scale in _SMALL]
        large = [statistics.fmean(ours[scale]) > 70 for scale in _LARGE]
        p = permutation_p([v for n in _SMALL for v in ours[n]], [v for n in _LARGE for v in ours[n]])
        numbers = ", ".join(f"scale {n} {spread(each)}" for n, each in enumerate(ours))
        kind = "holds" if all(small + large) else "fails" if not any(small) else "partly"
        return Verdict(kind, numbers, p, why="" if kind == "holds" else _TRIED)

    return judge


@claim("threshold-is-capacity", "Section III-B",
       "There is a threshold of capacity below which an unpruned network cannot depict the boundary: small networks "
       "cannot be made robust.", "vision/table2")  # fmt: skip
def _needed(records: Records) -> Verdict:
    cured = _values(records, "cured", "pgd", "pgd40")
    printed = _values(records, "paper", "pgd", "pgd40")
    numbers = "; ".join(f"scale {n}: cured {spread(cured[n])}, paper's recipe {spread(printed[n])}" for n in _SMALL)
    p = permutation_p([v for n in _SMALL for v in cured[n]], [v for n in _SMALL for v in printed[n]])
    robust = all(statistics.fmean(cured[n]) > 50 for n in _SMALL)
    why = "a ramped budget and Adam make the same networks robust" if robust else ""
    return Verdict("fails" if robust else "holds", numbers, p, why=why)


def _helps(attack: str) -> Claim:
    @claim(f"capacity-helps-{attack}", "Sections I and III-C",
           f"More capacity gives better accuracy on images attacked with {attack.upper()}.",
           _TABLES[attack])  # fmt: skip
    def judge(records: Records) -> Verdict:
        parts, numbers, p = [], [], None
        for recipe in ("paper", "cured"):
            values = _values(records, recipe, attack, _KEYS[attack])
            small, large = ([v for n in part for v in values[n]] for part in (_SMALL, _LARGE))
            parts.append(half_way([statistics.fmean(each) for each in values]))
            numbers.append(f"{recipe} recipe: scales 0 to 2 {spread(small)}, 3 to 5 {spread(large)}")
            p = permutation_p(small, large) if p is None else p
        return Verdict(tested(parts), "; ".join(numbers), p)

    return judge


def _large_values(attack: str) -> Claim:
    @claim(f"{attack}-values-large", "Table II" if attack == "pgd" else "Table III",
           f"{attack.upper()}-trained networks of scales 3, 4 and 5 keep "
           f"{', '.join(str(PAPER[attack][n][1]) for n in _LARGE)} % under {attack.upper()}.",
           _TABLES[attack])  # fmt: skip
    def judge(records: Records) -> Verdict:
        ours = {n: percents(_paper(records, attack, n), _KEYS[attack]) for n in _LARGE}
        close = [abs(statistics.fmean(each) - PAPER[attack][n][1]) <= _CLOSE for n, each in ours.items()]
        numbers = ", ".join(f"scale {n} {spread(each)}" for n, each in ours.items())
        return Verdict(tested(close), numbers, why="" if all(close) else f"judged within {_CLOSE:.0f} points")

    return judge


def _small_values(attack: str) -> Claim:
    @claim(f"{attack}-values-small", "Table II" if attack == "pgd" else "Table III",
           f"{attack.upper()}-trained networks of scales 0, 1 and 2 have "
           f"{', '.join(str(PAPER[attack][n][0]) for n in _SMALL)} % clean and "
           f"{', '.join(str(PAPER[attack][n][1]) for n in _SMALL)} % attacked accuracy.",
           _TABLES[attack], "vision/mismatch")  # fmt: skip
    def judge(records: Records) -> Verdict:
        ways = {way: s for (kind, way), s in explained(records["vision/mismatch"]).items() if kind == attack}
        whole = [way for way, scales in ways.items() if all(scales.values()) and set(_SMALL) <= set(scales)]
        rows = [_paper(records, attack, n) for n in _SMALL]
        numbers = ", ".join(
            f"scale {n}: {mean(each, 'clean'):.1f} clean, {spread(percents(each, _KEYS[attack]))} attacked"
            for n, each in zip(_SMALL, rows)
        )
        if "printed, its own attack" in whole:
            return Verdict("holds", numbers)
        counts = {way: sum(met for n, met in scales.items() if n < 3) for way, scales in ways.items()}
        most = max(counts, key=lambda way: counts[way], default="")
        why = (
            f"{len(ways)} other ways were tried; at all scales: {', '.join(whole) or 'none'}; at most of them: {most}, "
            f"{counts.get(most, 0)} of 3; scale 3 {'too' if any(3 in s for s in ways.values()) else 'was not tried'}"
        )
        return Verdict("partly" if whole else "fails", numbers, why=why)

    return judge


def _standard(records: Records) -> dict[int, list[float]]:
    """Clean accuracy of the standard networks that were trained, by scale."""
    details = records["vision/table2"]["details"]
    found = {n: details.get(f"paper-standard-cnn{n}", []) for n in range(6)}
    if sum(map(bool, found.values())) < 3:
        raise LookupError("fewer than three scales of standard networks")
    return {n: percents(rows, "clean") for n, rows in found.items() if rows}


@claim("more-than-standard", "Abstract, Section VI", "Adversarial training needs more capacity than standard training.",
       "vision/table2")  # fmt: skip
def _more(records: Records) -> Verdict:
    standard = _standard(records)
    found, numbers = {}, []
    for name, values in (
        ("standard, clean", standard),
        ("paper's recipe, PGD-40", dict(enumerate(_values(records, "paper", "pgd", "pgd40")))),
        ("cured, PGD-40", dict(enumerate(_values(records, "cured", "pgd", "pgd40")))),
    ):
        means = {n: statistics.fmean(values[n]) for n in standard}
        found[name] = next(n for n, value in means.items() if value >= max(means.values()) - 1)
        told = ", ".join(f"{value:.1f} at scale {n}" for n, value in means.items())
        numbers.append(f"{name}: within a point of its best from scale {found[name]} on ({told})")
    first, *others = found.values()
    return Verdict(tested([other > first for other in others]), "; ".join(numbers))


@claim("hardening-costs-clean", "Section III-C", "Training with attacked images hurts generalisation to clean ones.",
       "vision/table2")  # fmt: skip
def _costs(records: Records) -> Verdict:
    standard = _standard(records)
    parts, numbers = [], []
    for recipe in ("paper", "cured"):
        hardened = _values(records, recipe, "pgd", "clean")
        gaps = {n: statistics.fmean(values) - statistics.fmean(hardened[n]) for n, values in standard.items()}
        parts += [gap > 0 for gap in gaps.values()]
        told = ", ".join(f"{gap:.1f} at scale {n}" for n, gap in gaps.items())
        numbers.append(f"{recipe} recipe, points below standard: {told}")
    cured = _values(records, "cured", "pgd", "clean")
    flat = [v for values in standard.values() for v in values], [v for n in standard for v in cured[n]]
    return Verdict(tested(parts), "; ".join(numbers), permutation_p(*flat))


@claim("pgd-is-stronger", "Section II-B", "Of the two ways to train, PGD performs best: it is the more robust.",
       *_TABLES.values())  # fmt: skip
def _stronger(records: Records) -> Verdict:
    parts, numbers, p = [], [], None
    for recipe in ("cured", "paper"):
        pgd, fgsm = (_values(records, recipe, attack, "pgd40") for attack in ("pgd", "fgsm"))
        parts += [statistics.fmean(a) > statistics.fmean(b) for a, b in zip(pgd, fgsm)]
        flat = [[v for each in values for v in each] for values in (pgd, fgsm)]
        numbers.append(f"{recipe} recipe under PGD-40: PGD-trained {spread(flat[0])}, FGSM-trained {spread(flat[1])}")
        p = permutation_p(*flat) if p is None else p
    return Verdict(tested(parts), "; ".join(numbers), p)


@claim("fgsm-defends", "Sections II-B and III", "FGSM training makes a robust model.", "vision/table3")
def _fgsm(records: Records) -> Verdict:
    gaps = [(mean(_paper(records, "fgsm", n), "fgsm"), mean(_paper(records, "fgsm", n), "pgd40")) for n in range(6)]
    numbers = ", ".join(
        f"scale {n} {one:.1f} % under FGSM and {other:.1f} % under PGD-40" for n, (one, other) in enumerate(gaps)
    )
    return Verdict(tested([other > 50 for _, other in gaps]), numbers, why="PGD-40 is tried on what FGSM trained")


def _grown(kind: str, says: str) -> Claim:
    @claim(f"{kind}-helps", "Section I", says, "vision/deeper")
    def judge(records: Records) -> Verdict:
        parts, numbers, plain, grown = [], [], list[float](), list[float]()
        for n in _SMALL:
            base = percents(of(records, "vision/deeper", f"cured-pgd-cnn{n}"), "pgd40")
            more = percents(of(records, "vision/deeper", f"cured-pgd-cnn{n}-{kind}"), "pgd40")
            parts.append(statistics.fmean(more) > statistics.fmean(base))
            numbers.append(f"scale {n}: {spread(base)} to {spread(more)}")
            plain, grown = plain + base, grown + more
        return Verdict(tested(parts), f"PGD-40, {'; '.join(numbers)}", permutation_p(plain, grown))

    return judge


@claim("boundary", "Figure 4", "Hardening moves the decision boundary out of the ball around an image.", "vision/fig4")
def _boundary(records: Records) -> Verdict:
    found = {name: of(records, "vision/fig4", name) for name in ("standard", "hardened")}
    numbers = "; ".join(
        f"{name}: {100 * each['kept']:.1f} % of the drawn ball in the right class, median distance "
        f"{each['distance']:.2f}"
        for name, each in found.items()
    )
    wider = found["hardened"]["distance"] > found["standard"]["distance"]
    return Verdict(tested([wider, found["hardened"]["kept"] > found["standard"]["kept"]]), f"{numbers}; one seed")


@claim("other-data", "Sections I and III-A", "The same is planned for CIFAR-10 and CIFAR-100.")
def _others(records: Records) -> Verdict:
    return Verdict("untestable", why="a plan without numbers; `vision/cifar-robust` is the like of it on CIFAR-10")


CAPACITY = (
    _parameters, _converged, _threshold("pgd"), _threshold("fgsm"), _needed, _helps("pgd"), _helps("fgsm"),
    _large_values("pgd"), _large_values("fgsm"), _small_values("pgd"), _small_values("fgsm"), _more, _costs, _stronger,
    _fgsm, _grown("deep", "A deeper network, with added layers, is more accurate under attack."),
    _grown("wide", "A wider network, with added neurons, is more accurate under attack."), _boundary, _others,
)  # fmt: skip
