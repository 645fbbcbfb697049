"""A run can end with the weights that did best on validation, replica by replica, also after a kill, and stop early."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import Loop, fit
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.best_checkpoint import BestCheckpoint
from fewer.core.files.run_folder import BEST, Folder
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job
from fewer.run.load import load
from tests.toys import Fit

HERE = f"{__name__}:Peaked"


class Peaked(Fit):
    """Validation likes weights that have moved a certain way and no further: the best is in the middle of the run."""

    far = 0.35

    def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
        batch = self.samples.samples
        answer = yield batch
        error = float((answer - batch.y).square().mean())
        return {"score": -abs(error - self.far), "error": error}


def training(**options: Any) -> Training:
    chosen = {"steps": 60, "validate_every": 5, "batch": 10, "precision": "float64", **options}
    return Training(optimizer=Optimizer("adam", 3e-3), **chosen)


def weights(engine: Engine, replica: int = 0) -> Tensor:
    return engine.state.networks["net"].weights[replica].clone()


def by_hand(seed: int, steps: int = 60) -> tuple[int, Tensor]:
    """Every fifth step's weights judged separately, and the best."""
    engine, looks = Plain(Peaked(), training(validate_every=0), seed), []
    for _ in range(steps // 5):
        engine.advance(5)
        answer = engine.modules["net"](engine.task.data("train").take(torch.arange(60)).x)
        error = float((answer - engine.task.data("train").take(torch.arange(60)).y).square().mean())
        looks.append((-abs(error - Peaked.far), engine.count, weights(engine)))
    best = max(looks, key=lambda look: look[0])
    return best[1], best[2]


@pytest.mark.parametrize("seed", [3, 7])
def test_a_run_ends_with_the_weights_that_did_best(seed: int) -> None:
    engine = Plain(Peaked(), training(), seed)
    fit(engine)
    step, expected = by_hand(seed)
    assert engine.chosen == (step,) and 5 < step < 60
    assert torch.equal(weights(engine), expected)


def test_each_replica_of_a_cohort_has_its_own_best() -> None:
    engine = Cohort(Peaked(), training(), [3, 7])
    fit(engine)
    for replica, seed in enumerate((3, 7)):
        step, expected = by_hand(seed)
        assert engine.chosen[replica] == step
        assert torch.allclose(weights(engine, replica), expected, rtol=0, atol=1e-9)


def test_training_stops_when_patience_is_at_an_end() -> None:
    engine = Plain(Peaked(), training(patience=2), 3)
    fit(engine)
    assert engine.count == engine.chosen[0] + 10 < 60
    whole = Plain(Peaked(), training(), 3)
    fit(whole)
    assert torch.equal(weights(engine), weights(whole))


def test_a_killed_run_goes_on_to_the_same_choice(tmp_path: Path) -> None:
    whole = Plain(Peaked(), training(patience=3), 3)
    fit(whole)
    folder = Folder(tmp_path)

    class Kill(Exception):
        pass

    def stop(line: dict[str, Any]) -> None:
        if line["step"] >= 20:
            raise Kill

    with pytest.raises(Kill):
        fit(Plain(Peaked(), training(patience=3), 3), folder, loop=Loop(log_every=4, save_seconds=0, on_log=stop))
    assert (tmp_path / BEST).exists() and (tmp_path / "state.safetensors").exists()
    again = Plain(Peaked(), training(patience=3), 3)
    fit(again, folder)
    assert again.chosen == whole.chosen and again.count == whole.count
    assert torch.equal(weights(again), weights(whole))


def test_a_best_from_before_the_kill_that_lies_ahead_changes_nothing(tmp_path: Path) -> None:
    """The best was written, the state was not: the run starts again and must not stop or choose otherwise."""
    folder, options = Folder(tmp_path), training(patience=2)
    first = Plain(Peaked(), options, 3)
    fit(first, folder)
    (tmp_path / "state.safetensors").unlink(missing_ok=True)
    again = Plain(Peaked(), options, 3)
    fit(again, folder)
    assert again.chosen == first.chosen and again.count == first.count
    assert torch.equal(weights(again), weights(first))


def test_a_score_that_is_no_number_is_never_the_best() -> None:
    class Broken(Peaked):
        def evaluate(self, split: str) -> Generator[Any, Tensor, dict[str, float]]:
            yield self.samples.samples
            return {"score": float("nan")}

    engine = Plain(Broken(), training(), 0)
    choice = BestCheckpoint(engine, None)
    choice.validate(engine)
    assert not choice.kept


def test_a_run_says_which_step_was_chosen_and_leaves_no_spare_files(tmp_path: Path) -> None:
    (metrics,) = Job(HERE, training=training(), seeds=(3,)).run(tmp_path / "run")
    assert metrics["chosen_step"] == by_hand(3)[0]
    assert not (tmp_path / "run" / BEST).exists()
    assert load(tmp_path / "run").metrics == metrics
    lines = [line for line in Folder(tmp_path / "run").lines() if "validation/score" in line]
    assert [line["step"] for line in lines] == list(range(5, 61, 5))


def test_what_cannot_be_chosen_is_refused() -> None:
    with pytest.raises(UserError, match="validate_every"):
        Training(patience=3)
    with pytest.raises(UserError, match="gradual"):
        Job(HERE, training=training(), prune=Pruning("magnitude", 0.5, when="gradual"))
    with pytest.raises(UserError, match="compile"):
        Job(HERE, training=Training(compile=True), seeds=(0, 1))
