"""`fewer doctor` says what there is, and what is missing for what."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from fewer.cli import main
from fewer.cli.about import doctor
from fewer.core.machine import requirements
from fewer.core.machine.requirements import extras
from fewer.core.registry import systems

LINES = [
    "numpy>=2.0",
    "torch>=2.11; extra == 'train'",
    "fewer[train]; extra == 'fields'",
    "nowhere-to-be-found>=3; extra == 'fields'",
    "winonly; sys_platform == 'win32' and extra == 'fields'",
    "elsewhere; sys_platform != 'linux' and extra == 'train'",
]


def test_an_extra_includes_what_it_names_and_leaves_other_platforms_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(requirements, "_installed", lambda name: {"torch": "2.9.1+cpu", "numpy": "2.3"}.get(name, ""))
    found = extras(LINES)
    assert set(found) == {"train", "fields"} and [need.name for need in found["train"].needs] == ["torch"]
    assert found["train"].trouble == "torch 2.9.1+cpu is older than 2.11"
    assert found["fields"].trouble == "torch 2.9.1+cpu is older than 2.11, nowhere-to-be-found is not installed"


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kernels"]["packs, predicting"] in ("avx512", "avx2", "portable", None)
    assert found["threads"]["cores"] >= 1 and ("why" in found["gpu"]) == (found["gpu"]["name"] is None)
    assert found["extras"]["train"]["installed"]["torch"]
    assert {system.install[6:-1] for system in systems().values() if system.install} <= set(found["extras"])


def test_people_are_told_what_is_missing_for_what_and_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "_installed", lambda name: "" if name == "onnx" else "99999")
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "packs as ONNX: onnx is not installed; pip install 'fewer[export]'" in said
    assert "Nothing is missing" not in said and "kernels" in said and "GPU" in said
    monkeypatch.setattr(requirements, "_installed", lambda name: "99999")
    monkeypatch.setattr("fewer.packs.compiled.missing", lambda: "")
    assert main(["doctor"]) == 0
    assert "Nothing is missing." in capsys.readouterr().out


def test_without_torch_it_says_so_and_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_torch", lambda: None)
    monkeypatch.setattr("fewer.packs.runtime.chain._runtime", None)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "torch is not installed" in said and "none: slow" in said and "install a C compiler" in said


@pytest.mark.parametrize(("cuda", "expected"), [(None, "processors alone"), ("12.8", "no device or driver")])
def test_why_there_is_no_gpu(cuda: str | None, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: False), version=SimpleNamespace(cuda=cuda), __version__="2.11"
    )
    monkeypatch.setattr(doctor, "_torch", lambda: torch)
    assert expected in doctor._gpu()["why"]
