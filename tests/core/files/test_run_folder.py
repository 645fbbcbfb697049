"""Run folders: whole files or none, and one clear line for everything that can be wrong with one."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fewer.core.engines.base import Training
from fewer.core.engines.loop import Loop
from fewer.core.errors import UserError
from fewer.core.files import atomic as whole
from fewer.core.files.run_folder import Folder
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job
from fewer.run.load import load
from tests.toys import Patches


def job(**options: Any) -> Job:
    described: dict[str, Any] = {"settings": ("network=cnn0", "classes=3,7"), "training": Training(steps=6, batch=16)}
    return Job("vision", **{**described, **options})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pruned run, finished."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    job(prune=Pruning("magnitude", 0.5)).run(out)
    return out


@contextlib.contextmanager
def refused(*words: str) -> Iterator[None]:
    with pytest.raises(UserError) as caught:
        yield
    line = str(caught.value)
    assert "\n" not in line and all(word in line for word in words), line


def copied(source: Path, target: Path) -> Path:
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_a_finished_run_holds_what_is_promised_and_nothing_else(finished: Path) -> None:
    names = {path.name for path in finished.iterdir()} ^ {"checksums.json"}
    assert names == {".lock", "config.json", "metrics.json", "metrics.jsonl", "weights.safetensors", "mask.safetensors"}
    assert json.loads((finished / "config.json").read_text())["versions"]["torch"] == torch.__version__


def test_pruned_weights_are_exactly_zero_in_the_saved_file(finished: Path) -> None:
    run = load(finished)
    for key, mask in run.mask["net"].items():
        weight = run.modules["net"].get_parameter(key)
        assert not bool(weight[~mask].any()) and bool(weight[mask].any())


def test_loading_gives_the_figures_that_training_gave(finished: Path) -> None:
    from fewer.core.engines.evaluate import evaluate, predictor

    run = load(finished)
    assert evaluate(run.task, predictor(run.task, run.modules)) == run.metrics


def test_the_same_job_again_reads_the_result_and_trains_nothing(finished: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in finished.iterdir()}
    again = job(prune=Pruning("magnitude", 0.5)).run(finished)
    assert again == [json.loads((finished / "metrics.json").read_text())]
    assert before == {path.name: path.stat().st_mtime_ns for path in finished.iterdir() if path.name != ".lock"} | {
        ".lock": before[".lock"]
    }


def test_a_folder_with_another_configuration_is_refused_with_the_difference(finished: Path) -> None:
    with refused("prune.sparsity was 0.5, now 0.9", "--out"):
        job(prune=Pruning("magnitude", 0.9)).run(finished)
    with refused("training.steps was 6, now 7"):
        job(prune=Pruning("magnitude", 0.5), training=Training(steps=7, batch=16)).run(finished)


def test_a_folder_that_is_no_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with refused("thesis.tex", "no run"):
        job().run(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with refused("config.json"):
        load(tmp_path)
    with refused("missing"):
        load(tmp_path / "missing")


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with refused("out"):
        job().run(tmp_path / "out")


@pytest.mark.parametrize("name", ["weights.safetensors", "mask.safetensors", "config.json", "metrics.json"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_refused_by_name(finished: Path, tmp_path: Path, name: str, share: float) -> None:
    run = copied(finished, tmp_path / "run")
    content = (run / name).read_bytes()
    (run / name).write_bytes(content[: int(share * len(content))])
    with refused(name):
        load(run)


@pytest.mark.parametrize(
    "config",
    ["[]", "{}", "null", '{"training": "x", "task": "vision"}', '"text"'],
)
def test_a_config_that_is_json_but_no_config_is_refused(finished: Path, tmp_path: Path, config: str) -> None:
    run = copied(finished, tmp_path / "run")
    (run / "config.json").write_text(config)
    with refused("config.json"):
        load(run)


def test_weights_of_another_network_are_refused(finished: Path, tmp_path: Path) -> None:
    run = copied(finished, tmp_path / "run")
    (run / "config.json").write_text((run / "config.json").read_text().replace("network=cnn0", "network=mlp"))
    (run / "checksums.json").unlink()
    with refused("do not fit"):
        load(run)


def test_weights_without_one_of_the_networks_are_refused(finished: Path, tmp_path: Path) -> None:
    run = copied(finished, tmp_path / "run")
    Folder(run).write_tensors("weights.safetensors", {"other/weight": torch.zeros(2)})
    with refused("do not fit"):
        load(run)


def test_an_unfinished_run_is_refused(finished: Path, tmp_path: Path) -> None:
    run = copied(finished, tmp_path / "run")
    (run / "metrics.json").unlink()
    with refused("not finished", "again"):
        load(run)


class Stop(Exception):
    pass


def interrupted(out: Path, **options: Any) -> None:
    """Train with a state saved at every log line, and stop in the middle."""

    def stop(line: dict[str, Any]) -> None:
        if line["step"] == 4:
            raise Stop

    with pytest.raises(Stop):
        job(**options).run(out, loop=Loop(log_every=2, save_seconds=0.0, on_log=stop))
    assert (out / "state.safetensors").exists()


def test_a_truncated_state_is_refused_and_everything_else_stays(tmp_path: Path) -> None:
    out = tmp_path / "run"
    interrupted(out)
    state = (out / "state.safetensors").read_bytes()
    (out / "state.safetensors").write_bytes(state[:200])
    with refused("state.safetensors", "damaged"):
        job().run(out)
    assert (out / "config.json").exists() and (out / "metrics.jsonl").exists()


def test_the_state_of_another_run_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "run"
    interrupted(out)
    Folder(out).write_tensors("state.safetensors", {"step": torch.tensor(4), "mask/other": torch.zeros(2)})
    with refused("state"):
        job().run(out)


@pytest.mark.parametrize(
    ("number", "word"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "--out"), (errno.EACCES, "permissions")]
)
def test_a_disk_that_refuses_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, word: str
) -> None:
    whole.write_atomically(tmp_path / "file", b"good")

    def fail(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(whole.os, "fsync", fail)
    with refused("file", word):
        whole.write_atomically(tmp_path / "file", b"better")
    assert (tmp_path / "file").read_bytes() == b"good"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_fills_up_in_a_training_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, real, left = tmp_path / "run", os.fsync, [5]

    def fill(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(whole.os, "fsync", fill)
    with refused("No space left", "nothing that was saved is lost"):
        job().run(out, loop=Loop(log_every=1, save_seconds=0.0))
    saved = Folder(out).read_tensors("state.safetensors")
    monkeypatch.setattr(whole.os, "fsync", real)
    assert int(saved["step"]) >= 1
    job().run(out, loop=Loop(log_every=1))
    job().run(tmp_path / "straight", loop=Loop(log_every=1))
    for name in ("weights.safetensors", "metrics.json", "metrics.jsonl"):
        assert (out / name).read_bytes() == (tmp_path / "straight" / name).read_bytes(), name


def test_a_second_training_into_the_same_folder_is_refused(tmp_path: Path) -> None:
    with Folder(tmp_path / "run").locked(), refused("another process", "wait"):
        job().run(tmp_path / "run")
    job(training=Training(steps=0)).run(tmp_path / "run")


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": ("network=cnn0", "classes=3,77")}, {"settings": ("netwrk=cnn0",)}, {"harden": "pgd"},
        {"prune": Pruning("magnitude", 0.9999)}, {"start_from": "nowhere"},
        {"prune": Pruning("magnitude", 0.9999), "seeds": (0, 1), "engine": "plain"},
    ],
)  # fmt: skip
def test_a_job_that_cannot_begin_leaves_the_folder_to_the_corrected_one(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        job(**wrong).run(tmp_path / "run")
    job(training=Training(steps=1, batch=8)).run(tmp_path / "run")


def test_seeds_one_by_one_and_as_a_cohort_give_folders_of_the_same_shape(tmp_path: Path) -> None:
    metrics = {}
    for engine in ("plain", "cohort"):
        precise = Training(steps=4, batch=8, precision="float64")
        metrics[engine] = job(seeds=(2, 5), engine=engine, training=precise).run(tmp_path / engine)
        run = load(tmp_path / engine / "seed-5")
        assert run.metrics == metrics[engine][1]
        with refused("2 replicas", "seed-"):
            load(tmp_path / engine)
    for one, other in zip(metrics["plain"], metrics["cohort"]):
        assert one == pytest.approx(other, rel=1e-6)


def test_going_on_from_a_run_takes_its_weights_and_its_mask(finished: Path, tmp_path: Path) -> None:
    job(start_from=str(finished), training=Training(steps=0, batch=8)).run(tmp_path / "same")
    before, after = load(finished), load(tmp_path / "same")
    for key, value in before.modules["net"].state_dict().items():
        assert torch.equal(value, after.modules["net"].state_dict()[key])
    job(start_from=str(finished), prune=Pruning("magnitude", 0.8)).run(tmp_path / "sparser")
    for key, mask in load(tmp_path / "sparser").mask["net"].items():
        assert bool((before.mask["net"][key] | ~mask).all())


def test_going_on_from_another_network_is_refused(finished: Path, tmp_path: Path) -> None:
    with refused("do not fit"):
        job(start_from=str(finished), settings=("network=mlp", "classes=3,7")).run(tmp_path / "other")


@pytest.mark.parametrize("seeds", [(), (1, 1), (-1,), (2**70,)])
def test_seeds_that_are_none_are_refused(seeds: tuple[int, ...]) -> None:
    with refused("seeds"):
        job(seeds=seeds)


def test_bfloat16_is_refused_where_it_would_be_ignored() -> None:
    with refused("bfloat16", "plain"):
        job(seeds=(0, 1), engine="cohort", training=Training(steps=2, precision="bfloat16"))


class Normed(Patches):
    """A batch norm's counter is a whole number, and a buffer that no state dict holds belongs to the network too."""

    def networks(self) -> dict[str, nn.Module]:
        networks = super().networks()
        networks["net"].register_buffer("scratch", torch.full((2,), 3.0), persistent=False)
        return networks


def test_norms_and_passing_buffers_are_saved_and_loaded(tmp_path: Path) -> None:
    own = Job(f"{__name__}:Normed", training=Training(steps=3, batch=8))
    metrics = own.run(tmp_path / "run")[0]
    run = load(tmp_path / "run")
    assert int(run.modules["net"].get_buffer("norm.num_batches_tracked")) == 3
    assert run.modules["net"].get_buffer("scratch").tolist() == [3.0, 3.0]
    assert run.metrics == metrics


def test_a_figure_that_could_not_be_computed_is_null_in_the_file_and_nan_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    row = {"accuracy": 0.5, "precision": float("nan"), "loss": math.inf}
    for content in (row, {"replicas": [row]}):
        folder.write_json("metrics.json", content)
        assert '"precision": null' in (tmp_path / "metrics.json").read_text()
        (found,) = folder.metrics()
        assert found["accuracy"] == 0.5 and math.isnan(found["precision"]) and math.isnan(found["loss"])


def test_what_a_cohort_killed_while_it_wrote_a_replica_left_is_cleared_when_it_goes_on(tmp_path: Path) -> None:
    cohort = job(seeds=(2, 5), engine="cohort", training=Training(steps=2, batch=8))
    cohort.run(tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    half = tmp_path / "run" / "seed-5" / ".weights.safetensors.123.part"
    half.write_bytes(b"half")
    cohort.run(tmp_path / "run")
    assert not half.exists() and (tmp_path / "run" / "seed-5" / "metrics.json").exists()
