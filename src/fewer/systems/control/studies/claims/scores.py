"""What the control paper says of scores, judged by ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fewer.studies.claims import Claim, Records, Verdict
from fewer.studies.permutation import permutation_p
from fewer.studies.words import listed
from fewer.systems.control.studies.agents import ALGORITHMS, spelled
from fewer.systems.control.studies.score_remarks import CHANCE, scores_of

__all__ = ["SCORES"]

FIGURES = {"snip": "control/fig1", "grasp": "control/fig2"}
DATA = "our own experts' logs, environments v5"
RETAINED = 0.95  # of the dense mean: what we call no loss
TRIED = (
    "BCQ's last weights at a constant rate scatter, so the rate falls over the second half; more batches, iterations, "
    "layer-wise quotas and drop-and-grow are in control/rivals"
)


class Pair(NamedTuple):
    """Scores of pruned agents beside those that they are compared with."""

    name: str
    pruned: list[float]
    other: list[float]

    @property
    def share(self) -> float:
        """Of the others' mean."""
        return (sum(self.pruned) / len(self.pruned)) / (sum(self.other) / len(self.other))

    @property
    def p(self) -> float:
        return permutation_p(self.pruned, self.other)

    @property
    def lower(self) -> bool:
        """Told apart, and below."""
        return self.share < 1 and self.p < CHANCE

    @property
    def retained(self) -> bool:
        """Neither told apart below, nor less in the mean than what we call no loss."""
        return not self.lower and self.share >= RETAINED

    def told(self) -> str:
        """With the number of seeds."""
        means = (sum(group) / len(group) for group in (self.pruned, self.other))
        return "{} {:.1f} against {:.1f} (p {:.3f})".format(self.name, *means, self.p)


def _agents(records: Records, study: str) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = records[study]["details"]["agents"]
    return found


def _environments(agents: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["environment"] for row in agents))


def _pairs(records: Records, criterion: str, sparsity: float = 0.95) -> list[Pair]:
    """Pruned against dense, each algorithm on each environment."""
    agents = _agents(records, FIGURES[criterion])
    return [
        Pair(f"{algorithm} on {spelled(environment)} under {criterion}", pruned, dense)
        for environment in _environments(agents)
        for algorithm, key in ALGORITHMS.items()
        if (pruned := scores_of(agents, key, environment=environment, recipe=criterion, sparsity=sparsity))
        and (dense := scores_of(agents, key, environment=environment, recipe="dense"))
    ]


def _verdict(pairs: Sequence[Pair], fine: Sequence[bool], why: str = "", most: bool = False) -> Verdict:
    """Holds where all (or `most`: more than half) of the pairs are fine, partly where some are."""
    if not pairs or min(len(pair.pruned) for pair in pairs) < 3:
        return Verdict("untestable", why="fewer than three seeds of what it compares are trained")
    good = sum(fine)
    holds = 2 * good > len(pairs) if most else good == len(pairs)
    kind = "holds on ours" if holds else "partly" if good else "fails"
    seeds = min(len(pair.pruned) for pair in pairs)
    numbers = f"{good} of {len(pairs)}, {seeds} seeds each: {'; '.join(pair.told() for pair in pairs)}"
    smallest = min(1.0, min(pair.p for pair in pairs) * len(pairs))
    return Verdict(kind, numbers, smallest, DATA, "" if holds else why)


def _exception(pair: Pair) -> bool:
    return pair.name.startswith("BCQ on Hopper")


def _majority(records: Records) -> Verdict:
    pairs = _pairs(records, "snip") + _pairs(records, "grasp")
    return _verdict(pairs, [pair.retained for pair in pairs], TRIED, most=True)


def _as_dense(criterion: str, records: Records) -> Verdict:
    pairs = [pair for pair in _pairs(records, criterion) if not _exception(pair)]
    return _verdict(pairs, [pair.retained for pair in pairs], TRIED)


def _hopper(records: Records) -> Verdict:
    pairs = [pair for name in FIGURES for pair in _pairs(records, name) if _exception(pair)]
    why = (
        "observations are normalised here; raw ones let SNIP cut every action off from Hopper's critic with some "
        "seeds, which may be what the paper met: --scale paper trains such masks"
    )
    return _verdict(pairs, [pair.lower for pair in pairs], why)


def _algorithm(name: str, records: Records) -> Verdict:
    pairs = [pair for one in FIGURES for pair in _pairs(records, one) if pair.name.startswith(f"{name} on")]
    return _verdict(pairs, [pair.retained for pair in pairs], TRIED)


def _range(criterion: str, records: Records) -> Verdict:
    """Every sparsity up to 95 %."""
    agents = _agents(records, FIGURES[criterion])
    shares = sorted({row["sparsity"] for row in agents if 0 < row["sparsity"] <= 0.95})
    pairs = [
        pair._replace(name=f"{100 * share:g} % {pair.name}")
        for share in shares
        for pair in _pairs(records, criterion, share)
        if not _exception(pair)
    ]
    lost = [pair for pair in pairs if not pair.retained]
    found = _verdict(pairs, [pair.retained for pair in pairs], TRIED)
    kept = f"{len(pairs) - len(lost)} of {len(pairs)} at {listed(f'{100 * share:g}' for share in shares)} %"
    return Verdict(
        found.kind, f"{kept}; below: {'; '.join(pair.told() for pair in lost) or 'none'}", found.p, DATA, found.why
    )


def _both_alike(records: Records) -> Verdict:
    """SNIP against GraSP."""
    both = [{pair.name.partition(" under")[0]: pair for pair in _pairs(records, name)} for name in FIGURES]
    pairs = [Pair(f"{name}, SNIP", both[0][name].pruned, both[1][name].pruned) for name in both[0] if name in both[1]]
    return _verdict(pairs, [pair.p >= CHANCE for pair in pairs], "told apart where p is below 0.05")


def _curves(records: Records) -> Verdict:
    """The mean of a learning curve, pruned against dense: as fast and as high."""
    pairs = []
    for criterion, study in FIGURES.items():
        agents = [
            {**row, **{f"{key} mean": sum(row["curve"][key]) / len(row["curve"][key]) for key in ALGORITHMS.values()}}
            for row in _agents(records, study)
            if "curve" in row
        ]
        for environment in _environments(agents):
            for algorithm, key in ALGORITHMS.items():
                pruned, dense = (
                    scores_of(agents, f"{key} mean", environment=environment, recipe=recipe)
                    for recipe in (criterion, "dense")
                )
                if pruned and dense:
                    pairs.append(Pair(f"{algorithm} on {spelled(environment)} under {criterion}", pruned, dense))
    if not pairs:
        return Verdict("untestable", why="no learning curves are kept yet")
    return _verdict(
        pairs, [pair.retained for pair in pairs], "the mean of the curve is below dense's where it is lower"
    )


def _tried(kind: str, records: Records) -> Verdict:
    """More of a criterion against its single batch."""
    agents = _agents(records, "control/rivals")
    pairs = [
        Pair(f"{algorithm} on {spelled(environment)} under {criterion}-{kind}", more, single)
        for criterion in FIGURES
        for environment in _environments(agents)
        for algorithm, key in ALGORITHMS.items()
        if len(more := scores_of(agents, key, environment=environment, recipe=f"{criterion}-{kind}")) > 2
        and (single := scores_of(agents, key, environment=environment, recipe=criterion))
    ]
    better = [pair.share > 1 and pair.p < CHANCE for pair in pairs]
    return _verdict(pairs, [not one for one in better], "better where p is below 0.05 and the mean is higher")


def _relevant(records: Records) -> Verdict:
    """SNIP's and GraSP's sub-networks against random ones of the same size."""
    agents = _agents(records, "control/rivals")
    pairs = [
        Pair(f"random instead of {criterion}, {algorithm} on {spelled(environment)}", chance, own)
        for criterion in FIGURES
        for environment in _environments(agents)
        for algorithm, key in ALGORITHMS.items()
        if (own := scores_of(agents, key, environment=environment, recipe=criterion))
        and (chance := scores_of(agents, key, environment=environment, recipe="random"))
    ]
    return _verdict(pairs, [pair.lower for pair in pairs], "not told apart from random masks where p is not below 0.05")


def _other_logs(records: Records) -> Verdict:
    """Future work: no guarantee where logs are not an expert's; it holds if some kind loses what the expert's keeps."""
    agents = [row for row in _agents(records, "control/data") if row["kind"] != "expert"]
    pairs = [
        Pair(f"{algorithm} on {spelled(environment)} under {recipe}, {kind} logs", own, dense)
        for kind, environment, recipe in dict.fromkeys(
            (row["kind"], row["environment"], row["recipe"]) for row in agents
        )
        if recipe != "dense"
        for algorithm, key in ALGORITHMS.items()
        if (own := scores_of(agents, key, kind=kind, environment=environment, recipe=recipe))
        and (dense := scores_of(agents, key, kind=kind, environment=environment, recipe="dense"))
    ]
    found = _verdict(pairs, [pair.lower for pair in pairs], "")
    if found.kind == "untestable":
        return found
    lost = any(pair.lower for pair in pairs)
    why = "" if lost else "no kind of logs was found on which a pruned policy is told apart below a dense one"
    return Verdict("holds on ours" if lost else "fails", found.numbers, found.p, "generated logs", why)


_1, _2, _R = ("control/fig1",), ("control/fig2",), ("control/rivals",)
_BOTH = _1 + _2
_TEXT, _FIGURES = "Section 4", "Figures 1 and 2"

SCORES = (
    Claim("majority-95", "Abstract", "With 95 % of the weights pruned, most experiments retain their performance.",
          _BOTH, _majority),
    Claim("snip-95", "Section 4, Figure 1", "Under SNIP all but BCQ on Hopper perform as dense networks at 95 %.",
          _1, partial(_as_dense, "snip")),
    Claim("grasp-95", "Section 4, Figure 2", "Under GraSP all but BCQ on Hopper perform as dense networks at 95 %.",
          _2, partial(_as_dense, "grasp")),
    Claim("hopper-exception", _TEXT, "BCQ on Hopper does not keep its performance at 95 %.", _BOTH, _hopper),
    Claim("bc-95", _FIGURES, "BC keeps its performance at 95 % on all three environments.",
          _BOTH, partial(_algorithm, "BC")),
    Claim("snip-range", "Figure 1", "Under SNIP performance is consistent from 10 to 95 %.",
          _1, partial(_range, "snip")),
    Claim("grasp-range", "Figure 2", "Under GraSP performance is consistent from 10 to 95 %.",
          _2, partial(_range, "grasp")),
    Claim("curves", _FIGURES, "Pruned agents follow the dense ones throughout training, not only at its end.",
          _BOTH, _curves),
    Claim("alike", _TEXT, "Both criteria perform alike.", _BOTH, _both_alike),
    Claim("subnetworks", _TEXT, "The criteria find the sub-networks that matter: random ones do worse.",
          _R, _relevant),
    Claim("more-batches", _TEXT, "A larger batch for the criterion brings no improvement over a single one.",
          _R, partial(_tried, "batches")),
    Claim("more-iterations", _TEXT, "More pruning iterations bring no improvement over a single one.",
          _R, partial(_tried, "rounds")),
    Claim("other-logs", "Section 5", "Single-shot pruning guarantees no performance where logs are not an expert's.",
          ("control/data",), _other_logs),
)  # fmt: skip
