"""Claims about the paper's sentences follow the numbers of records, whichever way they point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fewer.run.lottery import tickets
from fewer.run.options import job_of
from fewer.studies.claims import VERDICTS, Verdict
from fewer.systems.vision.presets import PRESETS
from fewer.systems.vision.studies.claims import CLAIMS

JUDGES = {claim.name: claim.judge for claim in CLAIMS}
PGD_PAPER = (5.5, 4.25, 3.11, 83.96, 71.90, 84.87)


def row(clean: float, fgsm: float, pgd40: float, seed: int = 0) -> dict[str, Any]:
    losses = [[step, 1.0] for step in range(10, 101, 10)]
    found = {"clean": clean / 100, "fgsm": fgsm / 100, "pgd40": pgd40 / 100, "seed": seed}
    return {**found, "steps": 100, "losses": losses, "points": []}


def table2(paper: tuple[float, ...], cured: tuple[float, ...], standard: tuple[float, ...]) -> dict[str, Any]:
    details = {}
    for scale in range(6):
        for name, value in (("paper-pgd", paper[scale]), ("cured-pgd", cured[scale])):
            details[f"{name}-cnn{scale}"] = [row(95, value, value + seed / 10, seed) for seed in range(3)]
        details[f"paper-standard-cnn{scale}"] = [row(standard[scale], 0, 0, seed) for seed in range(3)]
    return {"vision/table2": {"details": details}}


def line(start: str, kept: Mapping[int, float], key: str = "clean") -> list[dict[str, Any]]:
    return [
        {"round": number, "start": start, "seed": seed, **dict.fromkeys(("clean", "fgsm", "pgd40"), 0.0),
         key: (value + seed / 10) / 100, "kept": round(266_200 * 0.7**number), "weights": 266_200}
        for number, value in kept.items()
        for seed in range(3)
    ]  # fmt: skip


def test_a_threshold_holds_where_small_networks_fail_and_large_ones_do_not() -> None:
    flat = (80.0,) * 6
    as_printed: Verdict = JUDGES["pgd-threshold"](table2(PGD_PAPER, flat, flat))
    assert as_printed.kind == "holds" and as_printed.p is not None and as_printed.p < 0.001
    assert JUDGES["pgd-threshold"](table2(flat, flat, flat)).kind == "fails"
    assert JUDGES["pgd-values-large"](table2(PGD_PAPER, flat, flat)).kind == "holds"
    assert JUDGES["threshold-is-capacity"](table2(PGD_PAPER, flat, flat)).kind == "fails"
    assert JUDGES["threshold-is-capacity"](table2(PGD_PAPER, PGD_PAPER, flat)).kind == "holds"


def test_more_capacity_than_standard_is_judged_by_where_each_comes_close_to_its_best() -> None:
    rising, early = (10.0, 20, 30, 84, 84, 85), (90.0, 98, 98, 98, 98, 98)
    assert JUDGES["more-than-standard"](table2(rising, rising, early)).kind == "holds"
    assert JUDGES["more-than-standard"](table2(early, early, rising)).kind == "fails"


def test_tickets_are_judged_at_the_rounds_that_the_paper_names() -> None:
    flat, falling = dict.fromkeys(range(21), 97.0), {number: 97.0 - 3 * number for number in range(21)}
    records = {"vision/fig9-12": {"details": {"rate-normal": line("reset", flat) + line("fresh", falling)}}}
    assert JUDGES["normal-holds"](records).kind == "holds"
    assert JUDGES["reset-beats-random-normal-clean"](records).kind == "holds"
    percentages = JUDGES["percentages"](records)
    assert percentages.kind == "partly" and "round 20: 0.08 % of the weights, 0.23 % with biases" in percentages.numbers
    turned = {"vision/fig9-12": {"details": {"rate-normal": line("reset", falling) + line("fresh", flat)}}}
    assert JUDGES["normal-holds"](turned).kind == "fails"
    assert JUDGES["reset-beats-random-normal-clean"](turned).kind == "fails"


def test_a_training_that_is_not_in_the_record_is_asked_for_by_name() -> None:
    with pytest.raises(LookupError, match="rate-fgsm"):
        JUDGES["adversarial-holds"]({"vision/fig9-12": {"details": {}}})


def test_names_are_different_and_verdicts_known() -> None:
    assert len(JUDGES) == len(CLAIMS) >= 25
    assert {JUDGES["other-data"]({}).kind, JUDGES["flat-after"]({}).kind} <= set(VERDICTS)


def test_presets_are_words_of_train_and_both_readings_of_the_rate_end_after_twenty_rounds() -> None:
    jobs = {name: job_of("vision", words) for name, words in PRESETS.items()}
    assert (jobs["paper-pgd-cnn5"].harden, jobs["paper-fgsm-cnn0"].harden) == ("paper:0.3", "paper-fgsm:0.3")
    assert jobs["paper-standard-cnn1"].harden is None
    training = jobs["paper"].training
    assert (training.steps, training.batch, training.optimizer.kind) == (23_438, 128, "sgd")
    assert (training.optimizer.warmup, training.optimizer.decay_from) == (0, 1.0)
    rate, percent = (tickets(jobs[name].prune) for name in ("paper-lottery", "paper-lottery-percent"))
    assert (rate.rounds, rate.rate) == (20, pytest.approx(0.3))
    assert (percent.rounds, (1 - percent.rate) ** 20) == (20, pytest.approx(0.002))
