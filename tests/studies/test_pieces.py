"""Pieces of any study: listed for each, made in order, late ones last."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.core.registry import SYSTEMS
from fewer.core.system import imported
from fewer.studies import making
from fewer.studies.making import make_pieces
from fewer.studies.order import Order
from fewer.studies.pieces import listed, pieces_of, silent

STUDIES = [name for place in SYSTEMS.values() for name, study in imported(place).studies.items() if study.pieces]


@pytest.mark.parametrize("scale", ["quick", "full"])
@pytest.mark.parametrize("study", STUDIES)
def test_every_study_of_pieces_lists_them_without_making_any(study: str, scale: str, tmp_path: Path) -> None:
    order = Order(study, scale, tmp_path / "none", silent)
    assert pieces_of(order).every and all(listed(order).values())
    assert not order.out.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["vision/table1", "--pieces", "all"], "pieces of vision/table1"),
        (["vision/table1", "--list"], "pieces of vision/table1"),
        (["vision/table99", "--list"], "table99"),
        (["vision/table2", "--pieces", "all", "--set", "seed=1"], "did you mean 'seeds'"),
        (["vision/table2", "--pieces", "all", "--scale", "large"], "scale 'large'"),
        (["vision/table2", "--seeds", "1"], "--pieces"),
        (["vision/table2", "--processes", "2"], "--pieces"),
    ],
)
def test_a_mistake_about_pieces_is_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", *words]) == 2
    said = capsys.readouterr()
    assert told in said.err and said.err.count("\n") == 1 and said.out == ""


def test_a_piece_that_is_named_twice_is_made_once(tmp_path: Path) -> None:
    order = Order("nowcast/table1", "quick", tmp_path, silent, ("seconds=1",))
    assert make_pieces(order, ["truth", "climatology", "truth"]) == ["truth", "climatology"]
    with pytest.raises(UserError, match="at least one"):
        make_pieces(order, ["truth"], 0)


def test_pieces_that_need_others_wait_for_them_when_several_processes_make_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[list[str]] = []
    monkeypatch.setattr(making, "make_together", lambda order, names, count: groups.append(list(names)))
    make_pieces(Order("vision/lightest", "quick", tmp_path, silent), ["hydra", "small-dense", "suite-small-3"], 2)
    assert groups == [["small-dense"], ["hydra", "suite-small-3"]]
