"""The experts: good, small, without torch; their experience: exact in number, the same again, cached."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from fewer import zoo
from fewer.cli import main
from fewer.core.errors import UserError
from fewer.systems.control.task.logs import checks, experts, files, source
from fewer.systems.control.task.logs.episodes import episodes
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS


def lean(observation: np.ndarray) -> np.ndarray:
    """A poor hopper: falls within tens of steps, so that many episodes fit into a short test."""
    return np.tanh(observation[:, :3] - observation[:, 5:8]).astype(np.float32)


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
def test_an_expert_scores_85_and_more_also_under_the_noise_it_is_collected_with(name: str) -> None:
    world = ENVIRONMENTS[name]
    # the middle one: roll-outs are chaotic, and one in ten of the cheetah's ends on its back
    assert world.score(float(np.median(experts.returns(experts.policy(name), name, episodes=5, seed=901)))) >= 85
    noisy = experts.collect(name, 3000, seed=902)
    found = episodes(noisy)
    assert world.score(found.total[: max(1, len(found.total) - 1)].mean()) >= 80
    clean = experts.policy(name)(noisy.observation)
    inside = np.abs(clean) < 0.9  # away from the bounds, where an action counts as at its bound
    added = np.arctanh(noisy.action[inside]) - np.arctanh(clean[inside])
    assert abs(float(added.std()) / experts.NOISE[name] - 1) < 0.1 and abs(float(added.mean())) < 0.03


def test_the_experts_are_small_and_need_no_torch() -> None:
    assert sum(zoo.path(f"control-{name}").stat().st_size for name in ENVIRONMENTS) < 1_000_000
    program = (
        "import sys, numpy as np; from fewer.systems.control.task.logs.experts import policy; "
        "print(policy('hopper')(np.zeros((2, 11), np.float32)).shape, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "(2, 3) False"


def test_exactly_as_many_transitions_come_in_whole_episodes() -> None:
    steps = experts.collect("hopper", 800, seed=3, act=lean, noise=0.2)
    assert len(steps.reward) == 800 and not (steps.terminal & steps.timeout).any()
    checks.check("collected", steps, ENVIRONMENTS["hopper"])
    assert (steps.terminal | steps.timeout)[-1]
    found = episodes(steps)
    assert len(found.start) > 10 and len(np.unique(steps.observation[found.start], axis=0)) == len(found.start)


def test_the_same_seed_gives_the_same_bits_however_many_workers() -> None:
    ours = experts.collect("hopper", 1500, seed=3, act=lean, workers=1)
    again = experts.collect("hopper", 1500, seed=3, act=lean, workers=3)
    assert all(np.array_equal(a, b) for a, b in zip(ours, again))
    other = experts.collect("hopper", 100, seed=4, act=lean)
    assert not np.array_equal(ours.observation[:10], other.observation[:10])


def test_without_noise_the_actions_are_the_policys() -> None:
    steps = experts.collect("hopper", 300, act=lean, noise=0.0)
    assert np.array_equal(steps.action, lean(steps.observation))


def test_wrong_wishes_are_one_line() -> None:
    with pytest.raises(UserError, match="expected one of halfcheetah, hopper, walker2d; did you mean 'hopper'"):
        experts.policy("hoper")
    with pytest.raises(UserError, match="at least 1"):
        experts.collect("hopper", 0)
    with pytest.raises(UserError, match="noise of 0 or more"):
        experts.collect("hopper", 10, noise=-1.0)
    for text in ("expert:hoper", "expert:hopper:many", "expert:hopper:1:2:0.1:4"):
        with pytest.raises(UserError, match="expert:ENVIRONMENT"):
            source.transitions(text)
    with pytest.raises(UserError, match="an expert of walker2d"):
        source.transitions("expert:hopper:100", "walker2d")


def test_what_was_collected_once_is_read_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path))
    first = source.transitions("expert:hopper:200:1", "hopper")
    (cached,) = (tmp_path / "control").iterdir()
    monkeypatch.setattr(experts, "collect", lambda *_, **__: pytest.fail("simulated again"))
    assert all(np.array_equal(a, b) for a, b in zip(first, source.transitions("expert:hopper:200:1")))
    assert source.Expert("hopper", 200, seed=2).file() != cached != source.Expert("hopper", 200, 1, noise=0.3).file()
    monkeypatch.undo()
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path))
    cached.write_bytes(cached.read_bytes()[:3000])
    assert all(np.array_equal(a, b) for a, b in zip(first, source.transitions("expert:hopper:200:1")))
    assert len(files.read(cached).reward) == 200, "a damaged file was written anew"


def test_a_cache_that_cannot_be_written_does_not_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FEWER_CACHE", str(tmp_path / "file"))
    assert len(source.transitions("expert:hopper:50").reward) == 50


def test_a_path_is_read_and_held_to_the_environment(tmp_path: Path) -> None:
    files.write_arrays(tmp_path / "log.npz", experts.collect("hopper", 100, act=lean))
    assert len(source.transitions(tmp_path / "log.npz", "hopper").reward) == 100
    with pytest.raises(UserError, match="width 11; expected width 17 for walker2d"):
        source.transitions(str(tmp_path / "log.npz"), "walker2d")


def test_the_command_writes_the_same_file_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["data", "control", "--env", "hopper", "--transitions", "300", "--seed", "5", "--json", "--out"]
    for name in ("a", "b"):
        assert main([*command, str(tmp_path / f"{name}.hdf5")]) == 0
    said = json.loads(capsys.readouterr().out.strip().split("\n")[-1])
    assert said["transitions"] == 300 and said["observations"] == 11 and said["transitions a second"] > 0
    assert (tmp_path / "a.hdf5").read_bytes() == (tmp_path / "b.hdf5").read_bytes()
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert file["observations"].shape == (300, 11) and file["timeouts"].dtype == np.bool_
        assert dict(file.attrs) == {"environment": "Hopper-v5", "seed": 5, "noise": experts.NOISE["hopper"]}
    assert main([*command, str(tmp_path)]) == 2
    assert main([*command, str(tmp_path / "a.hdf5")]) == 2  # what is there is not written over
    assert main([*command, str(tmp_path / "c.hdf5"), "--seed", "99999999999999999999999"]) == 2
    assert main([*command, str(tmp_path / "a.hdf5" / "b.hdf5")]) == 2
    assert main(["data", "control", "--env", "hopper"]) == 2
    assert main([*command[:3], "Pendulum-v1", "--out", str(tmp_path / "c.hdf5")]) == 2
