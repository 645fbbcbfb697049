"""Files of tensors that do not lie: a flipped bit is found, and a training goes on from the state before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from fewer.core.engines.base import Training
from fewer.core.engines.loop import Loop
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files import checkpoint
from fewer.core.files.run_folder import BEST, Damaged, Folder
from fewer.pruning.pruning import Pruning
from fewer.run.job import Job
from fewer.run.load import load
from tests.toys import Fit

RESULTS = ("weights.safetensors", "mask.safetensors", "metrics.json", "metrics.jsonl")


def job(**training: Any) -> Job:
    return Job(
        "tests.toys:Fit", training=Training(**{"steps": 12, "batch": 8, **training}), prune=Pruning("magnitude", 0.5)
    )


def interrupted(out: Path, **training: Any) -> Path:
    """States of steps 4 and 6 are there, and the training is not finished."""

    def stop(line: dict[str, Any]) -> None:
        if line["step"] == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job(**training).run(out, loop=Loop(log_every=2, save_seconds=0.0, on_log=stop))
    return out


def flip(path: Path, place: float = 0.9) -> None:
    """One bit of the file."""
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(content)


def steps(out: Path) -> dict[str, int]:
    return {path.name: int(Folder(out).read_tensors(path.name)["step"]) for path in out.glob("state*.safetensors")}


def test_no_flipped_bit_gives_other_numbers(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    written = {
        "step": torch.tensor(7), "net/weight": torch.tensor([1.5, -2.0, 0.0]), "mask": torch.tensor([True, False]),
        "none": torch.zeros(0, 3), "half": torch.ones(2, dtype=torch.bfloat16),
    }  # fmt: skip
    folder.write_tensors("file", written)
    content = (tmp_path / "file").read_bytes()
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "file").write_bytes(changed)
        try:
            found = folder.read_tensors("file")
        except Damaged:
            continue
        assert found.keys() == written.keys() and all(torch.equal(found[name], written[name]) for name in written)


def test_files_without_a_checksum_are_still_read(tmp_path: Path) -> None:
    save_file({"a": torch.arange(3)}, tmp_path / "old.safetensors")
    assert Folder(tmp_path).read_tensors("old.safetensors")["a"].tolist() == [0, 1, 2]


def test_a_damaged_state_is_told_and_the_one_before_ends_with_the_same_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job().run(tmp_path / "straight", loop=Loop(log_every=2))
    out = interrupted(tmp_path / "run")
    assert steps(out) == {"state.safetensors": 6, "state.previous.safetensors": 4}
    flip(out / "state.safetensors")
    job().run(out, loop=Loop(log_every=2))
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "state.safetensors is damaged" in said and "state before" in said
    for name in RESULTS:
        assert (out / name).read_bytes() == (tmp_path / "straight" / name).read_bytes(), name
    assert not list(out.glob("state*"))


def test_a_damaged_state_never_takes_the_place_of_the_good_one_before(tmp_path: Path) -> None:
    out = interrupted(tmp_path / "run")
    flip(out / "state.safetensors")
    engine = Plain(Fit(), job().training, 0)
    assert checkpoint.restore_(engine, Folder(out)) and engine.count == 4
    engine.advance(1)
    checkpoint.save(engine, Folder(out))
    assert steps(out) == {"state.safetensors": 5, "state.previous.safetensors": 4}


def test_a_kill_between_the_two_renames_costs_no_state(tmp_path: Path) -> None:
    job().run(tmp_path / "straight", loop=Loop(log_every=2))
    out = interrupted(tmp_path / "run")
    (out / "state.previous.safetensors").unlink()
    (out / "state.safetensors").rename(out / "state.previous.safetensors")
    job().run(out, loop=Loop(log_every=2))
    for name in RESULTS:
        assert (out / name).read_bytes() == (tmp_path / "straight" / name).read_bytes(), name


def test_two_damaged_states_are_refused(tmp_path: Path) -> None:
    out = interrupted(tmp_path / "run")
    for name in ("state.safetensors", "state.previous.safetensors"):
        flip(out / name)
    with pytest.raises(UserError, match="damaged"):
        job().run(out)
    assert (out / "state.previous.safetensors").exists() and not (out / "metrics.json").exists()


@pytest.mark.parametrize("step", [10**9, 13, -1])
def test_a_step_that_the_training_does_not_have_is_refused(tmp_path: Path, step: int) -> None:
    out = interrupted(tmp_path / "run")
    state = {name: tensor.clone() for name, tensor in Folder(out).read_tensors("state.safetensors").items()}
    save_file({**state, "step": torch.tensor(step)}, out / "state.safetensors")  # as an old file: no checksum
    with pytest.raises(UserError, match=f"after step {step}; expected one of this training's 12 steps"):
        job().run(out)
    assert not (out / "metrics.json").exists()


def test_a_damaged_best_checkpoint_is_refused(tmp_path: Path) -> None:
    out = interrupted(tmp_path / "run", validate_every=2)
    flip(out / BEST)
    with pytest.raises(UserError, match="damaged"):
        job(validate_every=2).run(out)
    Folder(out).write_tensors(BEST, {"step": torch.tensor(1)})
    with pytest.raises(UserError, match="without scores"):
        job(validate_every=2).run(out)


@pytest.mark.parametrize("name", ["weights.safetensors", "mask.safetensors"])
def test_a_flipped_bit_in_a_finished_run_is_refused(tmp_path: Path, name: str) -> None:
    job().run(tmp_path / "run")
    flip(tmp_path / "run" / name)
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "run")
