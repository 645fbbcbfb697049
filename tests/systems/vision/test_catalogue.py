"""Pieces of the vision studies from the command line."""

from __future__ import annotations

import pytest

from fewer.cli import main
from fewer.core.files.run_folder import Folder
from fewer.systems.vision.studies import catalogue as vision_catalogue
from fewer.systems.vision.studies.place import Place
from fewer.systems.vision.studies.recipe import gradual
from tests.systems.vision.small import tiny

LIGHTEST = ["reproduce", "vision/lightest", "--scale", "full"]


def test_pieces_are_listed_by_study_and_unknown_ones_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*LIGHTEST, "--list", "--seeds", "0"]) == 0
    listed = capsys.readouterr().out
    assert "small-3            small-cnn, 1 replicas, 1 in a cohort: 9400 cohort steps" in listed
    assert all(name in listed for name in ("suite-small-1", "hydra", "features", "cured-pgd-cnn3", "--set together="))
    for study, piece in (("table3", "paper-fgsm-cnn5"), ("fig2-3", "cured-pgd-cnn0"), ("fig9-12", "lottery-rate-pgd")):
        assert main(["reproduce", f"vision/{study}", "--scale", "full", "--list"]) == 0
        assert piece in capsys.readouterr().out and piece not in listed
    assert main([*LIGHTEST, "--pieces", "smal-3"]) == 2
    assert "small-3" in capsys.readouterr().err
    assert main([*LIGHTEST, "--pieces", "small-3", "--seeds", "a"]) == 2
    monkeypatch.delenv("FEWER_MNIST", raising=False)
    assert main([*LIGHTEST, "--pieces", "small-3", "--out", "nowhere"]) == 2
    assert "no FEWER_MNIST" in capsys.readouterr().err


def test_a_piece_runs_from_the_command_line(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision_catalogue, "where", lambda *_: place)
    monkeypatch.setattr(vision_catalogue, "images", lambda order: place.source)
    small = {"small-3": tiny(prunings=(gradual(0.1, 10),))}
    monkeypatch.setattr(vision_catalogue.lightest, "light_pieces", lambda scale: small)
    monkeypatch.setattr(vision_catalogue.lightest, "small_pieces", lambda scale: small)
    assert main([*LIGHTEST, "--pieces", "small-3", "--seeds", "5", "--out", str(place.out)]) == 0
    assert Folder(place.out / "pieces" / "tiny" / "magnitude-10-seed5").finished
