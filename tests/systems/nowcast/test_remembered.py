"""Weather that was drawn once is read afterwards, to the bit, and drawn again where it cannot be."""

from __future__ import annotations

import ast
import multiprocessing
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fewer.systems.nowcast.task.generated import weather_cache as cache
from fewer.systems.nowcast.task.generated import windows as module
from fewer.systems.nowcast.task.generated.weather_cache import cached_weather
from fewer.systems.nowcast.task.generated.windows import generated
from fewer.systems.nowcast.task.task import Nowcast, Settings
from fewer.systems.nowcast.task.windows import Windows
from tests.waiting import GIVE_UP_SECONDS, answers_of

torch.set_num_threads(1)
WANTED: dict[str, Any] = {"split": "test", "count": 2, "size": 24, "seed": 3}


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_LEAST", 0)
    return tmp_path / "cache" / "nowcast"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for weather: what is drawn does not matter here."""

    def draw(wish: module.Wish, device: str) -> dict[str, Tensor]:
        torch.manual_seed(wish.seed)
        satellite = torch.randn(wish.count, 4, 11, wish.size, wish.size).half()
        return {"satellite": satellite, "codes": torch.zeros(wish.count, 32, wish.size, wish.size, dtype=torch.uint8)}

    monkeypatch.setattr(module, "_drawn", draw)


def taken(**changes: Any) -> Windows:
    data = generated(**{**WANTED, **changes})
    return data.take(torch.arange(len(data)))


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def refuse_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(*arguments: Any) -> dict[str, Tensor]:
        raise AssertionError("drawn again")

    monkeypatch.setattr(module, "_drawn", draw)


def same(one: Windows, other: Windows) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_weather_is_drawn_once_and_then_read_to_the_bit(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    first = taken()
    assert len(files(folder)) == 1
    refuse_drawing(monkeypatch)
    assert same(taken(), first)
    with pytest.raises(AssertionError, match="drawn again"):
        taken(seed=4)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "change", [{"seed": 4}, {"split": "train"}, {"size": 30}, {"count": 3}, {"regions": ["roxi_0004"]}], ids=str
)
def test_other_weather_has_a_file_of_its_own(change: dict[str, Any], folder: Path) -> None:
    taken(), taken(**change)
    assert len(files(folder)) == 2


@pytest.mark.usefixtures("quick")
def test_a_damaged_file_is_drawn_anew(folder: Path) -> None:
    first = taken()
    (path,) = files(folder)
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:5], b""):
        path.write_bytes(damaged)
        assert same(taken(), first)
        assert path.read_bytes() == whole


@pytest.mark.usefixtures("quick")
def test_weather_that_other_code_drew_is_not_believed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    taken()
    monkeypatch.setattr(cache, "_drawn_by", lambda: "another")
    taken()
    assert len(files(folder)) == 2


def test_cached_weather_is_void_when_what_draws_it_changes_and_not_when_a_reader_does() -> None:
    task = Path(module.__file__).parents[1]
    names = {str(path.relative_to(task)) for path in cache.drawing_sources(task)}
    assert {"weather/clouds.py", "bands.py", "windows.py", "generated/windows.py"} <= names
    assert not [name for name in names if name.startswith(("files/", "models/", "scores/", "baselines/"))]
    # whatever drawing imports of the task decides bits too, save names of places, which the key's words hold
    drawn = [ast.parse(path.read_text()) for path in cache.drawing_sources(task)]
    imported = {node.module for tree in drawn for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    own = {part.split("nowcast.task.")[1].replace(".", "/") for part in imported if part and "nowcast.task." in part}
    assert {f"{part}.py" for part in own if (task / f"{part}.py").exists()} - names == {
        "files/layout.py",
        "generated/weather_cache.py",
    }


@pytest.mark.usefixtures("quick")
def test_a_cache_that_cannot_be_written_costs_time_and_not_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    first = taken()
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path / "file"))
    assert same(taken(), first)


@pytest.mark.usefixtures("quick")
def test_little_and_very_much_weather_is_not_kept(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    wanted = 2 * 24**2 * 120  # bytes
    for name, bound in (("_LEAST", wanted + 1), ("_MOST", wanted - 1)):
        with monkeypatch.context() as patch:
            patch.setattr(cache, name, bound)
            taken()
        assert not files(folder)
    taken()
    assert files(folder)


def test_what_was_read_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(cache, "_ALL", 10_000)
    for name in ("a", "b", "a", "c"):
        cached_weather(name, 4096, lambda: {"x": torch.zeros(1024)})
        for path in files(folder):  # all that was used before is an hour older now
            used = path.stat().st_mtime - 3600
            os.utime(path, (used, used))
    assert [path.name[0] for path in files(folder)] == ["a", "c"]


def _draw_slowly(marks: Path) -> Mapping[str, Tensor]:
    (marks / str(os.getpid())).touch()
    time.sleep(0.3)  # the others most likely ask meanwhile; what they must get does not depend on it
    return {"x": torch.full((8,), float(os.getpid()))}


def _ask(marks: Path, together: Any, answers: Any) -> None:
    together.wait(GIVE_UP_SECONDS)
    answers.put(cached_weather("both", 32, lambda: _draw_slowly(marks))["x"].tolist())


def test_processes_that_start_together_draw_once(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    context = multiprocessing.get_context("fork")
    answers: Any = context.Queue()
    together = context.Barrier(3)
    workers = [context.Process(target=_ask, args=(marks, together, answers)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = answers_of(answers, workers)
    assert found[0] == found[1] == found[2]
    assert len(list(marks.iterdir())) == 1


def test_a_task_draws_no_split_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_drawing(monkeypatch)
    task = Nowcast(Settings(size=24, width=4, positive_weight=2.0))
    task.networks()
    task.objectives()
    with pytest.raises(AssertionError, match="drawn again"):
        task.data("test")
