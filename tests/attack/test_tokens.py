"""Inputs that are whole numbers, such as tokens, cannot be moved a little: said before anything is trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from fewer.attack.attacks.fgsm import fgsm
from fewer.cli import main
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.custom.contract import check
from tests.tokens import Rated, Tagged

Lines = pytest.CaptureFixture[str]
KINDS = ["Tagged", "Rated"]


@pytest.fixture(scope="module", params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tokens") / "run"
    assert main(["train", f"tests.tokens:{request.param}", "--out", str(out), "--json"]) == 0
    return out


@pytest.mark.parametrize("attack", ["pgd:0.1", "fgsm:0.1"])
def test_an_attack_on_tokens_is_refused_in_one_line(run: Path, attack: str, capsys: Lines) -> None:
    assert main(["evaluate", str(run), "--attack", attack]) == 2
    said = capsys.readouterr().err.strip()
    assert "int64" in said and "\n" not in said


@pytest.mark.parametrize("recipe", ["pgd:0.1", "fgsm:0.1,mix=0.5", "free:0.1"])
@pytest.mark.parametrize("kind", KINDS)
def test_hardening_on_tokens_is_refused_before_anything_is_trained(
    kind: str, recipe: str, tmp_path: Path, capsys: Lines
) -> None:
    assert main(["train", f"tests.tokens:{kind}", "--harden", recipe, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err.strip()
    assert "int64" in said and "\n" not in said
    assert not (tmp_path / "run").exists()


def test_an_attack_used_from_python_refuses_tokens_too() -> None:
    task = Rated()
    nets, noise = NetworkSet(task.networks(), training=False), Stream(torch.tensor(0), torch.tensor(0), torch.float32)
    with pytest.raises(UserError, match="int64"):
        fgsm(task, 0.1)(nets, task.data("train").take(torch.arange(2)), noise)


@pytest.mark.parametrize("task", [Tagged(), Rated()], ids=KINDS)
def test_the_contract_says_that_tokens_cannot_be_attacked_and_why(task: Tagged | Rated) -> None:
    outcomes = {outcome.name: outcome for outcome in check(task)}
    perturbable = outcomes["an attack can replace the perturbable input"]
    assert perturbable.fault is None and perturbable.skipped is not None and "int64" in perturbable.skipped
    assert not [outcome for outcome in outcomes.values() if outcome.fault]


def test_a_check_that_does_not_apply_is_shown_as_skipped_and_fails_nothing(capsys: Lines) -> None:
    assert main(["check", "tests.tokens:Rated"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if "perturbable" in line).startswith("skip")
    assert next(line for line in lines if "logits" in line).startswith("skip")
    assert main(["check", "tests.tokens:Rated", "--json"]) == 0
    found = {row["check"]: row for row in json.loads(capsys.readouterr().out)}
    assert "int64" in found["an attack can replace the perturbable input"]["skipped"]
    agreed = dict.fromkeys(("fault", "skipped", "note", "cost", "remedy"))
    assert found["names agree"] == {"check": "names agree", **agreed}
