"""What version 0.1.0 wrote still opens: `v0.1.0/` holds its runs, packs and sweep as they were, nothing left out.

run       fewer train vision --set network=cnn0 --set hidden=4 --steps 6 --batch 32 --choose-every 2 --patience 9
          --prune snip --sparsity 0.5 --harden pgd:0.1,steps=2,aim=margin
killed    the same, killed after its third step
control   fewer train control --set harm=value and few weights, --steps 3 --batch 16 --prune magnitude --sparsity 0.5
sweep     fewer sweep grid.toml, killed in its second cohort; sweep-table.json is the table of one that was not killed
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewer
from fewer import zoo
from fewer.cli import main
from fewer.core.errors import Notice
from fewer.core.files.run_folder import Folder

OLD = Path(__file__).parent / "v0.1.0"
SHAPES = {"run": (3, 1, 28, 28), "control": (3, 11)}
COMMAND = ["train", "vision", "--set", "network=cnn0", "--set", "hidden=4", "--steps", "6", "--batch", "32",
           "--patience", "9", "--prune", "snip", "--sparsity", "0.5", "--json"]  # fmt: skip
FORMER = ["--choose-every", "2", "--harden", "pgd:0.1,steps=2,aim=margin"]
NOW = ["--validate-every", "2", "--harden", "pgd:0.1,steps=2,attack_loss=margin"]
TOLD = [
    "fewer: --choose-every is now called --validate-every",
    "fewer: pgd:0.1,steps=2,aim=margin is now called pgd:0.1,steps=2,attack_loss=margin",
]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return shutil.copytree(OLD, tmp_path / "old")


def json_of(path: Path) -> Any:
    return json.loads(path.read_text())


def tensors(path: Path, name: str) -> dict[str, np.ndarray[Any, Any]]:
    return {key: tensor.numpy() for key, tensor in Folder(path).read_tensors(name).items()}


def agree(found: Any, recorded: Any) -> bool:
    """To what another processor may round otherwise."""
    assert found.keys() == recorded.keys()
    return all(np.allclose(found[key], recorded[key], rtol=1e-5, atol=1e-6) for key in recorded)


def said(capsys: pytest.CaptureFixture[str], name: str = "is now called") -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if name in line]


def test_a_run_evaluates_to_what_it_recorded(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = json_of(OLD / "run/metrics.json")
    assert fewer.load(old / "run").metrics == recorded
    assert main(["evaluate", str(old / "run"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert agree({name: found[name] for name in ("accuracy", "loss")}, {k: recorded[k] for k in ("accuracy", "loss")})


@pytest.mark.parametrize(("options", "lines"), [(FORMER, TOLD), (NOW, [])])
def test_a_finished_run_is_found_again_by_old_and_new_options(
    old: Path, capsys: pytest.CaptureFixture[str], options: list[str], lines: list[str]
) -> None:
    assert main([*COMMAND, *options, "--out", str(old / "run")]) == 0
    shown = capsys.readouterr()
    assert [line for line in shown.err.splitlines() if "is now called" in line] == lines
    assert json.loads(shown.out)["loss"] == json_of(OLD / "run/metrics.json")["loss"]


def test_a_killed_run_goes_on_and_ends_as_the_one_that_was_not_killed(old: Path) -> None:
    assert main([*COMMAND, *NOW, "--out", str(old / "killed")]) == 0
    assert agree(json_of(old / "killed/metrics.json"), json_of(OLD / "run/metrics.json"))
    for name in ("weights.safetensors", "mask.safetensors"):
        assert agree(tensors(old / "killed", name), tensors(OLD / "run", name))
    assert not (old / "killed/state.safetensors").exists()


def test_a_run_that_another_was_trained_from_is_read_by_the_next(old: Path, tmp_path: Path) -> None:
    words = ["--set", "network=cnn0", "--set", "hidden=4", "--steps", "1", "--batch", "8", "--json"]
    assert main(["train", "vision", *words, "--from", str(old / "run"), "--out", str(tmp_path / "next")]) == 0
    assert agree(tensors(tmp_path / "next", "mask.safetensors"), tensors(OLD / "run", "mask.safetensors"))


@pytest.mark.parametrize("name", SHAPES)
def test_packs_open_and_predict_what_they_did(name: str) -> None:
    shape = SHAPES[name]
    x = np.linspace(0, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    answer = fewer.open_pack(OLD / f"{name}.pack").predict(x)
    assert agree({name: answer}, {name: json_of(OLD / "predicted.json")[name]})


@pytest.mark.parametrize("name", SHAPES)
def test_a_run_packs_to_the_weights_that_its_pack_has(name: str, old: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        again, before = fewer.pack(old / name, tmp_path / "again.pack"), fewer.open_pack(OLD / f"{name}.pack")
    for key, value in before.tensors().items():
        # a constant or a mean of simulated logs is computed anew when a run is packed; other processors round otherwise
        computed = key.startswith(("constant", "lifted_tensor"))
        close = 2e-6 * (1 + float(np.abs(value).max(initial=0.0))) if computed else 0.0
        assert np.abs(again.tensors()[key] - value).max(initial=0.0) <= close, key
    assert {**again.settings, "versions": {}} == {**before.settings, "versions": {}}


def test_a_setting_that_has_another_name_now_is_read_with_one_line(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(old / "control"), "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines() == ["fewer: harm is now called attack_loss"]
    assert json.loads(shown.out)["length"] == json_of(OLD / "control/metrics.json")["length"]


def test_a_killed_sweep_finds_its_points_and_ends_as_the_one_that_was_not_killed(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = {path: path.read_bytes() for path in (old / "sweep/points").rglob("*.safetensors")}
    assert main(["sweep", str(OLD / "grid.toml"), "--out", str(old / "sweep"), "--on", "here", "--json"]) == 0
    assert "fewer: here is now called inline" in capsys.readouterr().err.splitlines()
    rows, recorded = json_of(old / "sweep/table.json"), json_of(OLD / "sweep-table.json")
    for row, before in zip(rows, recorded, strict=True):
        assert agree(row.pop("metrics"), before.pop("figures"))
        assert row == before
    assert all(path.read_bytes() == content for path, content in done.items())
    assert len(list((old / "sweep/points").iterdir())) == len(recorded)


def test_where_a_sweep_runs_may_be_said_in_old_words(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["sweep", "no-such-grid.toml", "--out", str(tmp_path / "sweep"), "--on", "local"]) == 2
    assert said(capsys) == ["fewer: local is now called processes"]


@pytest.mark.parametrize("name", zoo.names())
def test_every_shipped_pack_opens(name: str) -> None:
    assert fewer.open_pack(name).settings["task"] in name.replace("digits", "vision").replace("photos", "vision")
