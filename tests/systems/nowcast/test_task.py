"""The task: weather in, probabilities out, scored as the competition scores; trains, resumes, packs, votes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fewer.core.data import TensorData
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.task import Data
from fewer.packs.pack import load as load_pack
from fewer.run.job import Job
from fewer.run.load import load
from fewer.run.options import job_of
from fewer.run.packing import pack_run
from fewer.systems.nowcast.presets import PRESETS
from fewer.systems.nowcast.task.files.layout import Place
from fewer.systems.nowcast.task.generated.archive import write_archive
from fewer.systems.nowcast.task.losses import LOSSES
from fewer.systems.nowcast.task.sources import Joined
from fewer.systems.nowcast.task.task import Nowcast, Settings
from fewer.systems.nowcast.task.windows import FACTOR, LEADS, SEEN, Windows, center

torch.set_num_threads(1)
TINY: dict[str, Any] = {"size": 24, "width": 4, "train_windows": 8, "validation_windows": 4, "test_windows": 4}
WORDS = tuple(f"{name}={value}" for name, value in TINY.items())


def drawn(count: int, size: int, seed: int) -> Windows:
    """Still weather: a warm blob is rain, in the images' first band and, six times larger, under the radar."""
    torch.manual_seed(seed)
    inner = size // FACTOR
    satellite = 0.1 * torch.randn(count, SEEN, 11, size, size)
    wet = (torch.rand(count, 1, inner, inner) < 0.3).float()
    satellite[:, :, 0, center(size), center(size)] += 2 * wet
    rate = wet.repeat_interleave(FACTOR, 2).repeat_interleave(FACTOR, 3).expand(-1, LEADS, -1, -1).contiguous()
    valid = torch.ones_like(rate)
    valid[:, :, :, :2] = 0
    return Windows(satellite, torch.zeros(count, SEEN, size, size), rate, valid, torch.arange(count) % 3)


class Still(Nowcast):
    """The task on weather that a test understands."""

    in_memory = True

    def _split(self, split: str) -> Data[Windows]:
        if split not in self._data:
            seeds = {"train": 0, "validation": 1, "test": 2}
            data = TensorData(drawn(8 if split == "train" else 4, self.size, seeds[split]))
            data.in_memory = self.in_memory
            self._data[split] = data
        return self._data[split]


class OnDisk(Still):
    """The same, as if read from files."""

    in_memory = False


def still(**options: Any) -> Still:
    return Still(Settings(**{**TINY, **options}))


def training(steps: int, **options: Any) -> Training:
    optimizer = Optimizer("adamw", lr=1e-2, clip_value=2.0)
    return Training(**{"steps": steps, "batch": 4, "optimizer": optimizer, **options})


def test_the_weight_of_rain_is_counted_from_valid_training_pixels() -> None:
    task = still()
    data = task.data("train").take(torch.arange(8))
    share = float((data.rate[data.valid > 0] >= 0.2).float().mean())
    assert task.wet_share == pytest.approx(share)
    assert task.positive_weight == pytest.approx(math.log(1 / share))
    assert still(positive_weight=3.0).positive_weight == 3.0


def test_a_trained_model_forecasts_still_weather() -> None:
    task = still()
    engine = Plain(task, training(60), 0)
    before = evaluate(task, predictor(task, engine.state.modules_of(0)))["iou"]
    engine.advance(60)
    after = evaluate(task, predictor(task, engine.state.modules_of(0)))
    assert after["iou"] > 0.6 > before
    assert next(iter(after)) == "iou"
    assert {f"iou_hour_{hour}" for hour in range(1, 9)} <= set(after)


@pytest.mark.parametrize("loss", LOSSES)
def test_other_losses_descend_too(loss: str) -> None:
    task = still(loss=loss)
    engine = Plain(task, training(20), 0)
    engine.advance(4)
    first = engine.mean_losses()
    engine.advance(16)
    assert float(engine.mean_losses()) < float(first)


@pytest.mark.parametrize(
    ("model", "preset"), [("baseline", "baseline"), ("improved", "swin-adabelief"), ("vivit", "vivit")]
)
def test_every_model_trains_the_same_alone_and_in_a_cohort(model: str, preset: str) -> None:
    """Dropout, RReLU, turns and all: randomness is a function of the seed and the step."""
    task = still(model=model, augment=True)
    settings = job_of("nowcast", {"optimizer": PRESETS[f"paper-{preset}"]["optimizer"]}).training.optimizer
    chosen = training(2, precision="float64", optimizer=replace(settings, epsilon=1e-8))
    cohort, alone = Cohort(task, chosen, [4, 9]), Plain(task, chosen, 9)
    cohort.advance(2)
    alone.advance(2)
    difference = cohort.state.networks["net"].weights[1] - alone.state.networks["net"].weights[0]
    assert float(difference.abs().max()) < 1e-7


def test_data_from_disk_trains_as_data_in_memory() -> None:
    weights = []
    for kind in (Still, OnDisk):
        engine = Plain(kind(Settings(**TINY)), training(3), 0)
        engine.advance(3)
        weights.append(engine.state.networks["net"].weights)
    assert torch.equal(*weights)


def test_half_precision_trains_as_single_does_but_for_rounding() -> None:
    """Of the U-Nets' deepest 3D convolutions torch's CPU kernels sometimes give huge gradients in bfloat16."""
    found = []
    for precision in ("float32", "bfloat16"):
        engine = Plain(still(dropout=0.0, size=60), training(1, precision=precision), 0)
        batch = engine._sample()
        losses, gradients = engine.gradients(engine.objectives[0], batch)
        found.append((float(losses), gradients["net"]))
    (loss, gradient), (rounded, other) = found
    assert loss != rounded and rounded == pytest.approx(loss, rel=0.05)  # it did round
    assert gradient.dtype == other.dtype == torch.float32
    assert float(torch.cosine_similarity(gradient, other)) > 0.8


@pytest.mark.parametrize("model", ["improved", "baseline"])
def test_half_precision_on_a_cpu_is_refused_for_networks_with_volumes(model: str, tmp_path: Path) -> None:
    words = (*WORDS, f"model={model}")
    with pytest.raises(UserError, match=r"bfloat16 on a CPU for net.*expected float32.*--device cuda"):
        Job("nowcast", words, training(2, precision="bfloat16")).run(tmp_path / "volumes")
    assert not (tmp_path / "volumes").exists()
    Job("nowcast", WORDS, training(2, precision="bfloat16")).run(tmp_path / "maps")  # drift has 2D ones only


def test_a_batch_too_small_to_normalise_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match=r"one sample of 24 pixels.*--batch 2"):
        Plain(still(model="focus"), training(1, batch=1), 0).advance(1)
    Plain(still(model="focus", size=30), training(1, batch=1), 0).advance(1)
    modules = fresh_modules(still(model="focus"), 0)
    modules["net"].train(False)
    assert predictor(still(model="focus"), modules)(drawn(1, 24, 0)).shape == (1, LEADS, 24, 24)  # forecasts one by one


def test_training_on_all_learns_from_validation_and_says_so() -> None:
    task, plain = still(train_on_all=True), still()
    assert len(task.data("train")) == 12 and len(plain.data("train")) == 8
    everything = task.data("train").take(torch.tensor([11, 0, 8]))
    assert torch.equal(everything.rate[0], task.data("validation").take(torch.tensor([3])).rate[0])
    assert torch.equal(everything.rate[1], task._split("train").take(torch.tensor([0])).rate[0])
    metrics = evaluate(task, predictor(task, fresh_modules(task, 0)))
    assert metrics["trained_on_validation"] == 1.0
    assert "trained_on_validation" not in evaluate(plain, predictor(plain, fresh_modules(plain, 0)))


def test_joined_data_gives_samples_in_the_order_asked_for() -> None:
    first, second = TensorData(drawn(3, 24, 0)), TensorData(drawn(2, 24, 1))
    joined = Joined([first, second])
    taken = joined.take(torch.tensor([4, 1, 3]))
    whole = torch.cat([first.samples.rate, second.samples.rate])
    assert len(joined) == 5 and torch.equal(taken.rate, whole[[4, 1, 3]])


def test_a_majority_of_members_decides_and_a_tie_is_rain() -> None:
    votes = torch.tensor([[0.9, 0.9, 0.2], [0.4, 0.8, 0.1]])
    assert torch.equal(still().majority(votes) >= 0.5, torch.tensor([True, True, False]))


def test_harm_is_the_mean_over_each_samples_valid_pixels() -> None:
    task = still()
    modules = fresh_modules(task, 0)
    batch = task.data("test").take(torch.arange(4))
    blind = batch._replace(valid=batch.valid * torch.tensor([1.0, 0.0, 1.0, 1.0]).view(-1, 1, 1, 1))
    nets = NetworkSet(modules, training=False)
    harm = task.attack_loss(nets, blind, None)  # type: ignore[arg-type]
    chance: Tensor = task.predict(nets, task.inputs(batch), None)[0].detach().double()  # type: ignore[arg-type]
    seen, truth = batch.valid[0] > 0, batch.rate[0] >= 0.2
    expected = -torch.where(truth, chance.log(), (1 - chance).log())[seen].mean()
    assert float(harm[0].detach()) == pytest.approx(float(expected), rel=1e-4)
    assert float(harm[1].detach()) == 0.0


def test_a_folder_in_the_competitions_layout_trains_and_is_judged_by_validation(tmp_path: Path) -> None:
    write_archive(tmp_path / "w4c", size=24, places=[Place("boxi_0015", 2019)])
    task = Nowcast(Settings(data=str(tmp_path / "w4c"), width=4, train_on_all=True, augment=True))
    assert task.size == 24 and not task.data("train").in_memory
    assert len(task.data("train")) == len(task._split("train")) + len(task._split("validation"))
    engine = Plain(task, training(1), 0)
    engine.advance(1)
    metrics = evaluate(task, predictor(task, engine.state.modules_of(0)))
    assert metrics["judged_on_validation"] == metrics["trained_on_validation"] == 1.0
    assert metrics["pixels"] > 0
    with pytest.raises(UserError, match="leave size out"):
        Nowcast(Settings(data=str(tmp_path / "w4c"), size=48)).data("train")


def test_an_hours_iou_pools_its_four_lead_times() -> None:
    task = still()
    asking = task.evaluate("test")
    batch = next(asking)
    chance = (batch.rate >= 0.2).float()
    chance[:, 4:8] = 1.0  # the second hour forecasts rain everywhere
    with pytest.raises(StopIteration) as stop:
        asking.send(chance)
    share = float(batch.rate[:, 4:8][batch.valid[:, 4:8] > 0].ge(0.2).float().mean())
    assert stop.value.value["iou_hour_1"] == 1.0
    assert stop.value.value["iou_hour_2"] == pytest.approx(share)


@pytest.mark.parametrize("model", ["focus", "drift"])
def test_a_run_on_generated_weather_packs_and_predicts_the_same_without_torch(tmp_path: Path, model: str) -> None:
    job = Job("nowcast", (*WORDS, f"model={model}"), Training(steps=2, batch=4, validate_every=1))
    (metrics,) = job.run(tmp_path / "run")
    assert 0 <= metrics["iou"] <= 1 and metrics["chosen_step"] in (1, 2)
    run = load(tmp_path / "run")
    pack_run(run, tmp_path / "rain.pack")
    batch = run.task.data("test").take(torch.arange(3))
    expected = predictor(run.task, run.modules)(batch).numpy()
    given = load_pack(tmp_path / "rain.pack").predict(batch.satellite.numpy(), batch.missing.numpy())
    assert given.shape == (3, LEADS, 24, 24)
    assert np.abs(given - expected).max() < 1e-5
