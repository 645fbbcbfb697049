"""A pack of a measured network needs no other file: names, places and the map go along."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.packs.pack import load
from fewer.serve.app import Application
from fewer.serve.models import open_models
from fewer.systems.cellfree.carried import opened
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.survey import World
from tests.systems.cellfree.test_formats import NAMES, POINTS, SOUTH, WEST, drive, wide

SETTINGS = {"candidates": 3, "measured": 3}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack whose drive test is gone."""
    folder = tmp_path_factory.mktemp("drive")
    (folder / "drive.csv").write_text(wide())
    words = ["--set", f"maps={folder / 'drive.csv'}", "--set", "candidates=3", "--steps", "3", "--batch", "8", "--json"]
    assert main(["train", "cellfree", *words, "--out", str(folder / "run")]) == 0
    assert main(["pack", str(folder / "run"), "-o", str(folder / "net.pack"), "--json"]) == 0
    assert main(["pack", str(folder / "run"), "-o", str(folder / "bare.pack"), "--bare", "--json"]) == 0
    (folder / "drive.csv").unlink()
    return folder / "net.pack"


@pytest.fixture(scope="module")
def client(packed: Path) -> Iterator[TestClient]:
    with TestClient(Application(open_models([str(packed)]))) as found:
        yield found


def test_the_page_gets_names_and_a_map_at_its_own_coordinates(client: TestClient) -> None:
    area = client.get("/v1/cellfree/map").json()
    assert area["names"] == list(NAMES) and np.allclose(area["access_points"], POINTS)
    assert area["corner_m"][0] >= WEST and area["corner_m"][1] >= SOUTH
    where = drive()[0][5]
    found = client.post("/v1/cellfree/place", json={"x_m": where[0], "y_m": where[1]}).json()
    assert found["names"] == [NAMES[one] for one in found["access_points"]]
    heard = drive()[1][5]
    assert found["rsrp_db"][0] == pytest.approx(np.nanmax(heard), abs=0.06)


def test_answers_of_one_and_of_many_phones_have_names(client: TestClient) -> None:
    one = client.post("/v1/cellfree/predict", json={"master": 1, "rsrp_db": [-60.0, None, -80.0]}).json()
    assert one["names"][0] == "mast" and len(one["names"]) == len(one["access_points"])
    many = client.post("/v1/cellfree/predict", json={"master": [1, 2], "rsrp_db": [[-60.0, -70.0, -80.0]] * 2}).json()
    assert [phone["names"][0] for phone in many["phones"]] == ["mast", "Süd-3"]


def test_people_are_told_names_and_programs_everything(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(packed), "--info"]) == 0
    said = capsys.readouterr().out
    assert "roof, mast, Süd-3, tower" in said and "40 rows" in said and "positions_m" in said
    assert main(["run", str(packed), "--info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["carried"]["access_points"] == list(NAMES)


def test_a_bare_pack_predicts_the_same_and_is_smaller(packed: Path) -> None:
    bare = packed.with_name("bare.pack")
    assert bare.stat().st_size < packed.stat().st_size and "carried" not in load(bare).settings
    given = {"master": [1], "rsrp_db": [[-60.0, -70.0, -80.0]], "reported": [[1.0, 1.0, 1.0]]}
    assert np.array_equal(load(bare).predict(**given), load(packed).predict(**given))


def test_a_map_of_pixels_is_carried_too(tmp_path: Path) -> None:
    from fewer.systems.cellfree.carried import carry
    from fewer.systems.cellfree.task.task import CellFree

    maps = np.random.default_rng(0).uniform(-110, -60, (4, 300, 200))
    np.savez(tmp_path / "m.npz", access_points=POINTS, maps_db=maps, pixel_m=1.0, origin_m=[WEST, SOUTH])
    settings = Settings(maps=str(tmp_path / "m.npz"), train_phones=20, candidates=3)
    task = CellFree(settings)
    carried = carry(task)
    found = opened(json.loads(json.dumps(carried)), settings).deployment
    assert np.array(carried["map_tenth_db"]).shape == (4, 150, 100) and carried["access_points"] == list("0123")
    centres = np.array([[WEST + 2 * column + 1, SOUTH + 2 * row + 1] for row in (0, 60) for column in (0, 99)])
    assert np.abs(found.gain_db(centres) - task.world.deployment.gain_db(centres)).max() <= 0.0501
    assert carry(CellFree(Settings(train_phones=20))) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"positions_m": [[0.0, 1.0]]},
        {"positions_m": [[0.0, 1.0], [1.0, "x"], [1.0, 1.0], [2.0, 2.0]]},
        {"candidates": [[9, 1, 2, 3]] * 4},
        {"candidates": [[0, 1]] * 4},
        {"measured": []},
        {"area": {}},
        {"places_m": []},
        {"rsrp_tenth_db": [[1, 2]]},
        {"silent_db": "low"},
    ],
)
def test_a_map_that_does_not_fit_together_is_a_word_to_the_page(change: dict[str, object], packed: Path) -> None:
    carried = {**load(packed).settings["carried"], **change}
    with pytest.raises(UserError):
        opened(carried, Settings(maps="gone.csv", **SETTINGS))  # type: ignore[arg-type]


def test_training_has_seen_missing_reports_and_never_a_missing_master(tmp_path: Path) -> None:
    import torch

    from fewer.core.seed import Stream
    from fewer.systems.cellfree.task.task import CellFree, phones_of

    task = CellFree(Settings(access_points=12, side_m=300, candidates=4, train_phones=2000))
    batch = phones_of(task.survey("train"))
    (objective,) = task.objectives()
    assert objective.augment is not None and bool(batch.reported.all())
    seen = objective.augment(batch, Stream(torch.tensor(0), torch.tensor(0)))
    share = 1 - seen.reported.mean(dim=0)
    assert share[0] == 0 and (share[1:] - 0.1).abs().max() < 0.03
    assert bool((seen.rsrp_db[seen.reported == 0] == 0).all()) and torch.equal(seen.gap_db, batch.gap_db)
    assert CellFree(Settings(access_points=12, candidates=4, learn_missing=0.0)).objectives()[0].augment is None
    assert World.make(Settings(access_points=12, candidates=4)).survey(50, part="test").reported.all()
