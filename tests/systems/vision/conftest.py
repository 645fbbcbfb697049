"""A place where pieces of the vision studies are trained on few digits and meet a short attack."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewer.systems.vision.studies import measure
from fewer.systems.vision.studies.place import Place
from tests.systems.vision.small import digits_file, quiet


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six hundred digits to train with and a hundred to test."""
    return digits_file(tmp_path_factory.mktemp("digits"), 600, 100)


@pytest.fixture
def place(digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Thirty images are attacked, by four steps of PGD instead of forty."""
    monkeypatch.setattr(measure, "ATTACKS", "fgsm:0.3+pgd:0.3,steps=4,step=0.1")
    return Place(tmp_path, digits, limit=30, log=quiet)
