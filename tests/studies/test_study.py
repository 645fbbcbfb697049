"""What `reproduce` writes, and what it refuses to write over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.studies.order import Order
from fewer.studies.study import made_on, reproduce
from tests.studies.toy_study import Toy

ROOT = Path(__file__).parents[2]
GPU_OR_DATA = (
    "control/fig1", "control/fig2", "matrix", "transfer", "nowcast/table1", "nowcast/table2", "nowcast/fig1",
    "vision/table2", "vision/table3", "vision/fig2-3", "vision/fig9-12", "vision/lightest",
)  # fmt: skip


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Those of a study."""
    return Toy().install(monkeypatch).rows


def test_a_study_never_replaces_a_file_by_one_with_fewer_rows(rows: list[list[int]], tmp_path: Path) -> None:
    rows += [[1], [2], [3]]
    reproduce(Order("toy/table", "quick", tmp_path))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"toy-table.json", "toy.png"} and before["toy.png"] == b"3 rows"
    rows.pop()
    with pytest.raises(UserError, match=r"2 rows over the 3 in .*toy-table.json; expected at least 3 rows; .*--out"):
        reproduce(Order("toy/table", "quick", tmp_path))
    rows.clear()
    with pytest.raises(UserError, match="nothing to show for toy/table"):
        reproduce(Order("toy/table", "quick", tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    rows += [[1]]
    (tmp_path / "toy-table.json").unlink()  # whoever insists
    reproduce(Order("toy/table", "quick", tmp_path))
    assert json.loads((tmp_path / "toy-table.json").read_text())["rows"] == [[1]]
    assert (tmp_path / "toy.png").read_bytes() == b"1 rows"


def test_a_record_has_the_settings_and_all_commands_that_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Toy(rows=[[1]]).install(monkeypatch)
    reproduce(Order("toy/table", "quick", tmp_path))
    record = json.loads((tmp_path / "toy-table.json").read_text())
    assert record["settings"] == {"a": 1} and record["commands"] == [record["command"]]
    toy.commands = ["fewer reproduce toy/table --pieces all --out DIR", record["command"]]
    reproduce(Order("toy/table", "quick", tmp_path))
    assert json.loads((tmp_path / "toy-table.json").read_text())["commands"] == toy.commands


def test_a_study_without_rows_writes_nothing(rows: list[list[int]], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to show"):
        reproduce(Order("toy/table", "quick", tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_quick_study_does_not_replace_a_full_one(rows: list[list[int]], tmp_path: Path) -> None:
    rows += [[1]]
    reproduce(Order("toy/table", "full", tmp_path))
    rows += [[2]]
    with pytest.raises(UserError, match="quick over the 1 rows of scale full"):
        reproduce(Order("toy/table", "quick", tmp_path))
    assert reproduce(Order("toy/table", "full", tmp_path)).rows == [[1], [2]]


def test_a_file_that_is_no_result_is_not_replaced(rows: list[list[int]], tmp_path: Path) -> None:
    rows += [[1]]
    for content in ("my notes", "[1, 2]", "3", '{"rows": 3}'):
        (tmp_path / "toy-table.json").write_text(content)
        with pytest.raises(UserError, match="no result of a study"):
            reproduce(Order("toy/table", "quick", tmp_path))
        assert (tmp_path / "toy-table.json").read_text() == content


@pytest.mark.parametrize("name", GPU_OR_DATA)
def test_a_full_study_that_cannot_run_here_says_so_and_keeps_the_good_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("FEWER_MNIST", raising=False)
    (tmp_path / "pieces").mkdir()  # of other studies
    path = tmp_path / f"{name.replace('/', '-')}.json"
    good = (ROOT / "results" / path.name).read_bytes()
    path.write_bytes(good)
    assert main(["reproduce", name, "--scale", "full", "--out", str(tmp_path)]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("fewer:") and "expected" in last
    assert path.read_bytes() == good and {each.name for each in tmp_path.iterdir()} == {path.name, "pieces"}


def test_agents_of_a_quick_study_are_not_shown_as_those_of_a_full_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    path = tmp_path / "agents" / "hopper" / "dense-seed0.json"
    path.parent.mkdir(parents=True)
    agent = {"environment": "hopper", "recipe": "dense", "sparsity": 0.0, "seed": 0, "steps": 400, "episodes": 4}
    path.write_text(json.dumps({**agent, "score": 1.0, "bc_score": 1.0}))
    with pytest.raises(UserError, match="judged by 4 episodes; expected agents of one scale, judged by 20"):
        reproduce(Order("control/fig1", "full", tmp_path))


def test_a_full_study_of_digits_is_not_made_of_the_embedded_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fewer.systems.vision.studies.place import images

    monkeypatch.delenv("FEWER_MNIST", raising=False)
    assert images(Order("vision/table2", "quick", tmp_path)) == "digits"
    with pytest.raises(UserError, match=r"no --data and no FEWER_MNIST.*fewer data vision"):
        images(Order("vision/table2", "full", tmp_path))


def test_numbers_are_said_to_come_from_where_the_pieces_were_made() -> None:
    assert made_on([], "a laptop") == made_on(["a laptop"], "a laptop") == "a laptop"
    assert made_on(["one GPU"], "a laptop") == "one GPU (put together on a laptop)"
    assert made_on(["one GPU", "a laptop"], "a laptop") == "one GPU and a laptop (put together on a laptop)"
