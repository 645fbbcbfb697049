"""Claims of Sections I, V and VI: lottery tickets, and lighter robust networks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fewer.studies.claims import Claim, Records, Verdict
from fewer.studies.permutation import permutation_p
from fewer.systems.vision.studies.claims.evidence import claim, mean, of, percents, spread, tested
from fewer.systems.vision.studies.lottery import PRINTED, READINGS

__all__ = ["TICKETS"]

_STUDY = "vision/fig9-12"
_READINGS = ("rate", "half", "text")  # those with numbers are told, the first decides
_SIMILAR = 1.0  # point of accuracy that counts as no change
_DECLINE = 5.0  # points that count as a decline


def _line(records: Records, reading: str, kind: str, start: str, key: str) -> dict[int, list[float]]:
    """One value for each seed, by round."""
    found: dict[int, list[float]] = {}
    for row in of(records, _STUDY, f"{reading}-{kind}"):
        if row["start"] == start:
            found.setdefault(row["round"], []).append(100 * row[key])
    return found


def _there(records: Records, kind: str) -> list[str]:
    details = records[_STUDY]["details"]
    return [reading for reading in _READINGS if f"{reading}-{kind}" in details] or ["rate"]


def _told(line: dict[int, list[float]], *rounds: int) -> str:
    return ", ".join(f"round {number} {spread(line[number])}" for number in rounds if number in line)


@claim("percentages", "Section V", "Pruning 30 % a round leaves 11.9, 1.5, 0.6 and, after 20 rounds, 0.2 %.", _STUDY)
def _percentages(records: Records) -> Verdict:
    parts, numbers = [], []
    for number, printed in PRINTED.items():
        row = next(
            row for row in of(records, _STUDY, "rate-normal") if row["round"] == number and row["start"] == "reset"
        )
        weights = 100 * row["kept"] / row["weights"]
        counted = 100 * (row["kept"] + _BIASES) / (row["weights"] + _BIASES)
        parts += [round(weights, 1) == printed, round(counted, 1) == printed]
        numbers.append(f"round {number}: {weights:.2f} % of the weights, {counted:.2f} % with biases ({printed})")
    why = "they are those of 784-300-100-10 with its biases, never pruned; the text's network has another layer"
    return Verdict(tested(parts), "; ".join(numbers), why=why)


_BIASES = 410  # 300 + 100 + 10


@claim("normal-holds", "Figure 9", "Normally trained tickets hold their accuracy until 98.5 % is pruned.", _STUDY)
def _normal(records: Records) -> Verdict:
    parts, numbers = [], []
    for reading in _there(records, "normal"):
        line = _line(records, reading, "normal", "reset", "clean")
        parts.append(statistics.fmean(line[0]) - min(statistics.fmean(line[n]) for n in range(13)) <= _SIMILAR)
        numbers.append(f"{reading}: {_told(line, 0, 6, 12, 15, 20)}")
    return Verdict(tested(parts), "; ".join(numbers), why=f"judged within {_SIMILAR:g} point of the unpruned network")


@claim("random-declines-early", "Figure 9",
       "With new random weights the accuracy falls much earlier, from 88.1 % pruned on.", _STUDY)  # fmt: skip
def _early(records: Records) -> Verdict:
    parts, numbers, first, new = [], [], list[float](), list[float]()
    for reading in _there(records, "normal"):
        reset, fresh = (_line(records, reading, "normal", start, "clean") for start in ("reset", "fresh"))
        whole = statistics.fmean(fresh[0])
        falls = next((n for n in sorted(fresh) if whole - statistics.fmean(fresh[n]) > _SIMILAR), None)
        kept = next(
            (n for n in sorted(reset) if statistics.fmean(reset[0]) - statistics.fmean(reset[n]) > _SIMILAR), None
        )
        parts += [falls is not None and (kept is None or falls < kept), falls is not None and 5 <= falls <= 8]
        numbers.append(f"{reading}: falls by over {_SIMILAR:g} point from round {falls}, tickets from round {kept}")
        first, new = first + reset[12], new + fresh[12]
    return Verdict(tested(parts), "; ".join(numbers), permutation_p(first, new))


@claim(
    "adversarial-holds", "Figure 11", "FGSM-trained tickets keep their clean accuracy to the end, 0.2 % left.", _STUDY
)
def _end(records: Records) -> Verdict:
    parts, numbers = [], []
    for reading in _there(records, "fgsm"):
        line = _line(records, reading, "fgsm", "reset", "clean")
        last = max(line)
        parts.append(last >= 20 and statistics.fmean(line[0]) - statistics.fmean(line[last]) <= _DECLINE)
        numbers.append(f"{reading}: {_told(line, 0, 6, 12, 15, last)}")
    why = f"tried: {'; '.join(READINGS[reading].line for reading in _there(records, 'fgsm'))}"
    return Verdict(tested(parts), "; ".join(numbers), why="" if all(parts) else why)


@claim("random-declines-later", "Figure 11",
       "With FGSM training and new random weights the clean accuracy falls only at 0.6 % left, later than normally.",
       _STUDY)  # fmt: skip
def _later(records: Records) -> Verdict:
    parts, numbers = [], []
    for reading in _there(records, "fgsm"):
        begins = {}
        for kind in ("normal", "fgsm"):
            line = _line(records, reading, kind, "fresh", "clean")
            whole = statistics.fmean(line[0])
            begins[kind] = next((n for n in sorted(line) if whole - statistics.fmean(line[n]) > _DECLINE), 99)
        parts.append(begins["fgsm"] > begins["normal"])
        numbers.append(
            f"{reading}: falls by over {_DECLINE:g} points in round {begins['fgsm']}, normally {begins['normal']}"
        )
    return Verdict(tested(parts), "; ".join(numbers), why=f"judged at {_DECLINE:g} points below the unpruned network")


def _tried(numbers: Sequence[str]) -> str:
    return f"tried in {len(numbers)} of {len(READINGS)} readings of the pruning rate, the paper's rounds and epochs"


def _better(kind: str, key: str, where: str, says: str) -> Claim:
    @claim(f"reset-beats-random-{kind}-{key}", where, says, _STUDY)
    def judge(records: Records) -> Verdict:
        parts, numbers, first, new = [], [], list[float](), list[float]()
        for reading in _there(records, kind):
            reset, fresh = (_line(records, reading, kind, start, key) for start in ("reset", "fresh"))
            rounds = [number for number in reset if 6 <= number <= 15]
            won = sum(statistics.fmean(reset[n]) > statistics.fmean(fresh[n]) for n in rounds)
            parts += [won > len(rounds) / 2, won > 0.8 * len(rounds)]
            numbers.append(
                f"{reading}: ahead in {won} of {len(rounds)} rounds from 6 to 15; round 12 {spread(reset[12])} against "
                f"{spread(fresh[12])}"
            )
            first, new = first + reset[12], new + fresh[12]
        return Verdict(tested(parts), "; ".join(numbers), permutation_p(first, new), why=_tried(numbers))

    return judge


@claim("adversarial-training-defends", "Figures 10 and 12",
       "FGSM training raises the accuracy under FGSM, whatever share is pruned.", _STUDY)  # fmt: skip
def _defends(records: Records) -> Verdict:
    parts, numbers = [], []
    for reading in _there(records, "fgsm"):
        normal, hardened = (_line(records, reading, kind, "reset", "fgsm") for kind in ("normal", "fgsm"))
        gains = [statistics.fmean(hardened[n]) - statistics.fmean(normal[n]) for n in hardened]
        parts += [gain > 0 for gain in gains]
        numbers.append(f"{reading}: {min(gains):+.1f} to {max(gains):+.1f} points in rounds 0 to {max(hardened)}")
    return Verdict(tested(parts), "; ".join(numbers))


@claim(
    "defends-under-pgd", "Sections V-B and VI", "Such tickets are smaller networks with the same robustness.", _STUDY
)
def _under_pgd(records: Records) -> Verdict:
    fgsm = {key: _line(records, "rate", "fgsm", "reset", key) for key in ("fgsm", "pgd40")}
    parts = [abs(statistics.fmean(fgsm["fgsm"][12]) - statistics.fmean(fgsm["fgsm"][0])) <= _DECLINE]
    parts.append(statistics.fmean(fgsm["pgd40"][12]) > 20)
    numbers = f"FGSM-trained under FGSM {_told(fgsm['fgsm'], 0, 12)}; under PGD-40 {_told(fgsm['pgd40'], 0, 12)}"
    if "rate-pgd" in records[_STUDY]["details"]:
        pgd = _line(records, "rate", "pgd", "reset", "pgd40")
        parts.append(statistics.fmean(pgd[12]) >= statistics.fmean(pgd[0]) - _DECLINE)
        numbers += f"; PGD-trained under PGD-40 {_told(pgd, 0, 12)}"
    return Verdict(tested(parts), numbers, why="" if all(parts) else "PGD-40 is tried beside the paper's FGSM")


@claim("hardened-tickets-clean", "Section V-B",
       "After pruning over 98 % of the weights, adversarially trained tickets have the higher clean accuracy.",
       _STUDY)  # fmt: skip
def _clean(records: Records) -> Verdict:
    parts, numbers, first, second = [], [], list[float](), list[float]()
    for reading in _there(records, "fgsm"):
        normal, hardened = (_line(records, reading, kind, "reset", "clean") for kind in ("normal", "fgsm"))
        rounds = [number for number in hardened if number >= 12]
        gains = [statistics.fmean(hardened[n]) - statistics.fmean(normal[n]) for n in rounds]
        parts += [gain > 0 for gain in gains]
        numbers.append(f"{reading}: {min(gains):+.1f} to {max(gains):+.1f} points in rounds 12 to {max(rounds)}")
        for n in rounds:
            first, second = first + hardened[n], second + normal[n]
    return Verdict(tested(parts), "; ".join(numbers), permutation_p(first, second), why=_tried(numbers))


@claim("tickets-more-robust", "Section I, after Cosentino et al.",
       "Lottery tickets are more robust than the dense network they come from.", _STUDY)  # fmt: skip
def _tickets(records: Records) -> Verdict:
    parts, numbers = [], []
    for kind, key in (("normal", "fgsm"), ("fgsm", "fgsm"), ("pgd", "pgd40")):
        if f"rate-{kind}" in records[_STUDY]["details"]:
            line = _line(records, "rate", kind, "reset", key)
            parts.append(statistics.fmean(line[6]) > statistics.fmean(line[0]))
            numbers.append(f"{kind}-trained, {key}: {_told(line, 0, 6, 12)}")
    if not parts:
        of(records, _STUDY, "rate-normal")
    return Verdict(tested(parts), "; ".join(numbers), why="judged at 11.9 % left")


@claim("lighter-and-robust", "Sections I and VI", "A network can lose capacity and keep its adversarial robustness.",
       "vision/lightest")  # fmt: skip
def _lighter(records: Records) -> Verdict:
    rows = [
        row for row in of(records, "vision/lightest", "runs") if "pgd40" in row and row["piece"] == "cured-pgd-cnn2"
    ]
    dense, pruned = ([row for row in rows if (row["density"] == 1) is whole] for whole in (True, False))
    lost = mean(dense, "pgd40") - mean(pruned, "pgd40")
    numbers = (
        f"scale 2 under PGD-40: {spread(percents(dense, 'pgd40'))} with {dense[0]['kept']:,} weights, "
        f"{spread(percents(pruned, 'pgd40'))} with {pruned[0]['kept']:,}"
    )
    p = permutation_p(percents(dense, "pgd40"), percents(pruned, "pgd40"))
    return Verdict("holds" if lost < 3 else "partly" if lost < 10 else "fails", numbers, p)


@claim("flat-after", "Section V-A", "After 0.2 % left, further rounds change the accuracy seldom.")
def _flat(records: Records) -> Verdict:
    return Verdict("untestable", why="the paper shows 20 of its 40 rounds, and so many are trained here")


TICKETS = (
    _percentages, _normal, _early, _end, _later,
    _better("normal", "clean", "Figure 9", "Normally trained, tickets are more accurate than new random weights."),
    _better("fgsm", "clean", "Figure 11", "FGSM-trained, tickets are more accurate than new random weights."),
    _better("fgsm", "fgsm", "Figure 12", "FGSM-trained, tickets stand FGSM better than new random weights."),
    _defends, _under_pgd, _clean, _tickets, _lighter, _flat,
)  # fmt: skip
