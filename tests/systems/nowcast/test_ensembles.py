"""Several forecasts as one, and the best of them in each region-year."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fewer.cli import main
from fewer.core.data import TensorData
from fewer.core.engines.evaluate import evaluate
from fewer.ensemble.combine import combine
from fewer.ensemble.groups import choices
from fewer.systems.nowcast.task.task import Nowcast
from fewer.systems.nowcast.task.windows import LEADS, SEEN, Windows


def windows(places: list[int], seed: int) -> TensorData[Windows]:
    """Rain that a member can read off the first image, if it knows how."""
    random = torch.Generator().manual_seed(seed)
    rate = (torch.rand(len(places), LEADS, 6, 6, generator=random) < 0.3).float()
    satellite = torch.zeros(len(places), SEEN, 11, 6, 6)
    return TensorData(
        Windows(satellite, satellite[:, :, 0], rate, torch.ones_like(rate), torch.tensor(places))
    )  # fmt: skip


class Ready(Nowcast):
    """The task with windows of these tests; validation and test have places in another order."""

    def _split(self, split: str) -> TensorData[Windows]:
        return windows([0, 1, 0, 1, 2] if split == "validation" else [2, 1, 0, 0, 1], 1 if split == "test" else 0)


def knows(places: set[int]) -> object:
    """A member that is right in these places and forecasts no rain elsewhere."""

    def predict(batch: Windows) -> Tensor:
        right = torch.tensor([float(int(place) in places) for place in batch.place])
        return 0.9 * batch.rate * right.view(-1, 1, 1, 1)

    return predict


MEMBERS = [knows({0}), knows({1, 2}), knows(set())]


def test_the_best_of_each_region_is_right_everywhere_where_no_member_is() -> None:
    task = Ready()
    each = [evaluate(task, member)["iou"] for member in MEMBERS]  # type: ignore[arg-type]
    assert each == pytest.approx([1 / 3, 2 / 3, 0])
    best = combine(task, MEMBERS, "best")  # type: ignore[arg-type]
    assert evaluate(task, best)["iou"] == 1.0


def test_the_member_of_each_group_is_chosen_where_it_is_asked_and_a_new_group_gets_the_best_overall() -> None:
    chosen = choices(Ready(), MEMBERS, "validation")  # type: ignore[arg-type]
    assert chosen == {0: 0, 1: 1, 2: 1, -1: 1}
    batch = windows([7, 0], 3).take(torch.arange(2))
    answer = combine(Ready(), MEMBERS, "best")(batch)  # type: ignore[arg-type]
    assert torch.equal(answer[1] > 0.5, batch.rate[1] > 0)  # place 0 by the first member
    assert answer[0].max() == 0  # place 7 by the second, which does not know it


def test_a_tie_of_votes_is_rain() -> None:
    task, batch = Ready(), windows([0, 1], 0).take(torch.arange(2))
    wet, dry = (lambda batch, p=p: torch.full_like(batch.rate, p) for p in (0.6, 0.1))
    half = combine(task, [wet, dry], "majority")(batch)
    assert bool((half >= 0.5).all())
    third = combine(task, [wet, dry, dry], "majority")(batch)
    assert bool((third < 0.5).all())
    mean = combine(task, [wet, dry], "mean")(batch)
    assert float(mean.mean()) == pytest.approx(0.35)  # where the mean is not rain


def test_weights_follow_the_figures_on_validation() -> None:
    task = Ready()
    found = combine(task, MEMBERS, "weighted")(windows([0, 1], 0).take(torch.arange(2)))  # type: ignore[arg-type]
    # metrics 1/3, 2/3 and 0: a third and two thirds of 0.9
    assert float(found[0].max()) == pytest.approx(0.3) and float(found[1].max()) == pytest.approx(0.6)


def test_choosing_on_the_test_windows_must_be_asked_for_and_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["size=24", "width=2", "train_windows=2", "validation_windows=2", "test_windows=2"]
    sets = [word for pair in small for word in ("--set", pair)]
    runs = [str(tmp_path / name) for name in ("one", "two")]
    for seed, run in enumerate(runs):
        assert (
            main(["train", "nowcast", *sets, "--steps", "1", "--batch", "2", "--seeds", str(seed), "--out", run]) == 0
        )
    capsys.readouterr()
    assert main(["vote", *runs, "--how", "best", "--json"]) == 0
    assert "chosen_on_the_split_it_is_counted_on" not in json.loads(capsys.readouterr().out)["best"]
    assert main(["vote", *runs, "--how", "best", "--choose-on", "test", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["best"]["chosen_on_the_split_it_is_counted_on"] == 1.0
    assert found["best"]["iou"] >= max(member["iou"] for member in found["members"].values()) - 1e-9
