"""The text form of attacks, their titles, and what the suite holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from fewer.attack.attacks import ATTACKS
from fewer.attack.threat import Threat, parse, suite
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.systems.vision.task.task import Vision

from .examples import Regression, stream


def test_a_text_names_attack_budget_and_options() -> None:
    (threat,) = parse("pgd:0.3,steps=40,step=0.01,restarts=10,norm=2")
    assert threat == Threat("pgd", 0.3, 2.0, {"steps": 40, "step": 0.01, "restarts": 10}, every=True)
    assert [threat.kind for threat in parse("fgsm:0.1+pgd:0.1")] == ["fgsm", "pgd"]


def test_titles_say_everything_that_makes_a_number_comparable() -> None:
    titles = {text: parse(text)[0].title for text in ("fgsm:0.3", "pgd:0.3", "pgd:2,steps=100,restarts=10,norm=2")}
    assert titles["fgsm:0.3"] == "FGSM, L-inf 0.3"
    assert titles["pgd:0.3"] == "PGD-40, L-inf 0.3, step 0.01"
    assert titles["pgd:2,steps=100,restarts=10,norm=2"] == "PGD-100 x 10, L2 2, step 0.0666667"
    assert parse("pgd:0.3,start=centre")[0].title == "PGD-40, L-inf 0.3, step 0.01, no random start"
    assert len({threat.title for threat in suite(0.3)}) == 7


def test_the_suite_is_the_published_one() -> None:
    kinds = [threat.kind for threat in parse("suite:0.3")]
    assert kinds == ["fgsm", "pgd", "pgd", "apgd", "apgd-t", "fab-t", "square"]
    assert parse("suite:0.3")[-1].title == "Square (5000 queries), L-inf 0.3"
    assert all(threat.norm == 2 for threat in parse("suite:2,norm=2"))
    assert [threat.every for threat in suite(0.3)[:3]] == [True, True, False]


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_that_is_registered_stays_in_its_ball_and_says_its_name(
    name: str, mlp: Vision, fragile_mlp: NetworkSet, images: Callable[[int], Any]
) -> None:
    few = {"steps": 3, "restarts": 2, "targets": 2, "queries": 4}
    threat = Threat(name, 0.1, options={key: few[key] for key in ATTACKS[name].options if key in few})
    batch = images(6)
    moved = threat.on(mlp)(fragile_mlp, batch, stream()).pixels
    assert float((moved - batch.pixels).abs().max()) <= 0.1 + 1e-6
    assert float(moved.min()) >= 0 and float(moved.max()) <= 1
    assert threat.title.endswith("L-inf 0.1") or ", L-inf 0.1, " in threat.title


@pytest.mark.parametrize("text", ["fab-t:0.1", "apgd-t:0.1"])
def test_margin_attacks_refuse_a_task_without_classes(text: str) -> None:
    with pytest.raises(UserError, match="labels, logits"):
        parse(text)[0].on(Regression())


@pytest.mark.parametrize(
    "text",
    ["", "pgd", "pgd:", "pgd:x", "pgd:-0.3", "pgd:nan", "pgd:inf", "deepfool:0.3", "pgd:0.3,beta=1", "pgd:0.3,steps=0"]
    + ["pgd:0.3,steps=-4", "pgd:0.3,steps=1.5", "pgd:0.3,norm=1", "square:0.3,queries=0", "square:0.3,norm=3"]
    + ["suite:-1", "fgsm:0.3,steps=2", "pgd:0.3,step=nan", "pgd:0.3+", "pgd:0.3,,", "pgd:0.3,start=here"],
)
def test_a_malformed_attack_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse(text)
    assert "expected" in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("wrong", [{"budget": -1.0}, {"budget": math.nan}, {"norm": 3.0}, {"options": {"queries": 3}}])
def test_a_senseless_threat_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Threat(**{"kind": "pgd", "budget": 0.3, **wrong})
