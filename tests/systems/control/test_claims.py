"""Verdicts follow the numbers: turned around, they turn around."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewer.studies.claims import VERDICTS, Claim
from fewer.studies.order import studies
from fewer.systems.control.studies.claims import CLAIMS

ROOT = Path(__file__).parents[3]
BY_NAME: dict[str, Claim] = {claim.name: claim for claim in CLAIMS}
WORLDS = ("hopper", "halfcheetah", "walker2d")


def agent(environment: str, recipe: str, sparsity: float, seed: int, score: float, **more: Any) -> dict[str, Any]:
    row = {"environment": environment, "recipe": recipe, "sparsity": sparsity, "seed": seed}
    return {**row, "score": score + seed, "bc_score": score + seed, **more}


def record(pruned: float, recipe: str = "snip", others: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    rows = [agent(one, "dense", 0.0, seed, 100.0, **more) for one in WORLDS for seed in range(5)]
    rows += [agent(one, recipe, 0.95, seed, pruned, **more) for one in WORLDS for seed in range(5)]
    rows += [agent(one, name, 0.95, seed, 50.0, **more) for name in others for one in WORLDS for seed in range(5)]
    return {"details": {"agents": rows}}


def test_names_and_studies_are_known_and_each_stands_once() -> None:
    assert len(BY_NAME) == len(CLAIMS) >= 20
    assert {name for claim in CLAIMS for name in claim.studies} <= set(studies())


@pytest.mark.parametrize(("score", "kind"), [(100.0, "holds on ours"), (60.0, "fails")])
def test_performance_that_is_kept_or_lost_is_told(score: float, kind: str) -> None:
    both = {"control/fig1": record(score), "control/fig2": record(score, "grasp")}
    for name in ("majority-95", "snip-95", "grasp-95", "bc-95", "snip-range", "grasp-range"):
        found = BY_NAME[name].judge(both)
        assert found.kind == kind, name
        assert found.p is not None and (found.p < 0.2) == (kind == "fails")
    assert BY_NAME["hopper-exception"].judge(both).kind == ("fails" if kind == "holds on ours" else "holds on ours")


def test_a_lower_half_holds_partly() -> None:
    both = {"control/fig1": record(100.0), "control/fig2": record(60.0, "grasp")}
    assert BY_NAME["bc-95"].judge(both).kind == "partly"
    assert BY_NAME["alike"].judge(both).kind == "fails"


def test_curves_are_compared_by_their_means() -> None:
    def curved(found: dict[str, Any], dense: float, pruned: float) -> dict[str, Any]:
        for row in found["details"]["agents"]:
            level = (dense if row["recipe"] == "dense" else pruned) + row["seed"]
            row["curve"] = {"updates": [1, 2], "score": [level, level], "bc_score": [level, level]}
        return found

    same = {"control/fig1": curved(record(1.0), 80, 80), "control/fig2": curved(record(1.0, "grasp"), 80, 80)}
    assert BY_NAME["curves"].judge(same).kind == "holds on ours"
    slow = {"control/fig1": curved(record(1.0), 80, 30), "control/fig2": curved(record(1.0, "grasp"), 80, 30)}
    assert BY_NAME["curves"].judge(slow).kind == "fails"
    none = {"control/fig1": record(1.0), "control/fig2": record(1.0, "grasp")}
    assert BY_NAME["curves"].judge(none).kind == "untestable"


def test_more_batches_and_random_masks_are_held_against_the_criterion() -> None:
    found = {"control/rivals": record(90.0, "snip", ("random", "snip-batches"))}
    assert BY_NAME["more-batches"].judge(found).kind == "holds on ours"  # worse is no improvement
    assert BY_NAME["more-iterations"].judge(found).kind == "untestable"
    assert BY_NAME["subnetworks"].judge(found).kind == "holds on ours"
    better = {"control/rivals": record(20.0, "snip", ("random", "snip-batches"))}
    assert BY_NAME["more-batches"].judge(better).kind == "fails"
    assert BY_NAME["subnetworks"].judge(better).kind == "fails"


@pytest.mark.parametrize(("pruned", "kind"), [(100.0, "fails"), (40.0, "holds on ours")])
def test_other_logs_give_no_guarantee_where_one_kind_loses(pruned: float, kind: str) -> None:
    assert BY_NAME["other-logs"].judge({"control/data": record(pruned, kind="mixed")}).kind == kind


def test_layers_and_bytes_are_judged_from_the_published_numbers() -> None:
    names = ("control/fig3", "control/fig4", "control/table1")
    found = {name: json.loads((ROOT / "results" / f"{name.replace('/', '-')}.json").read_text()) for name in names}
    own = [claim for claim in CLAIMS if claim.studies and set(claim.studies) <= set(names)]
    assert len(own) == 11
    for claim in own:
        verdict = claim.judge(found)
        assert verdict.kind in VERDICTS and verdict.kind != "untestable" and verdict.numbers, claim.name
    layers = found["control/fig3"]["details"]["kept"]
    turned = {layer: {"snip": both["grasp"], "grasp": both["snip"]} for layer, both in layers.items()}
    before = BY_NAME["grasp-last-layer"].judge(found).kind
    details = {**found["control/fig3"]["details"], "kept": turned}
    after = BY_NAME["grasp-last-layer"].judge({"control/fig3": {"details": details}}).kind
    assert {before, after} == {"fails", "holds on ours"}
