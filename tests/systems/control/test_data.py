"""Readers of logged experience: D4RL's versions, Minari, own arrays; and one line for whatever is wrong."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewer.cli import main
from fewer.core.errors import UserError
from fewer.systems.control.task.logs import checks, d4rl, files
from fewer.systems.control.task.logs.assemble import assemble
from fewer.systems.control.task.logs.episodes import episodes
from fewer.systems.control.task.logs.transitions import Transitions
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS

HOPPER = ENVIRONMENTS["hopper"]


def logged(lengths: tuple[int, ...] = (5, 3, 4), ends: str = "cto") -> Transitions:
    """Episodes of these lengths, each ended by the clock ("c"), by the world ("t") or by the recording ("o")."""
    draw, parts = np.random.default_rng(0), []
    for length, end in zip(lengths, ends):
        seen = draw.normal(size=(length + 1, 11)).astype(np.float32)
        last = np.arange(length) == length - 1
        action = draw.uniform(-1, 1, (length, 3)).astype(np.float32)
        reward = draw.normal(size=length).astype(np.float32)
        parts.append((seen[:-1], action, reward, seen[1:], last & (end == "t"), last & (end != "t")))
    return Transitions(*(np.concatenate(column) for column in zip(*parts)))


def hdf5(path: Path, steps: Transitions, without: tuple[str, ...] = (), **changed: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, values in {**steps._asdict(), **changed}.items():
            if name not in without:
                file[d4rl.NAMES[name]] = values
        file["infos/qpos"] = np.zeros(3)
        file["metadata/algorithm"] = "SAC"
    return path


def same(ours: Transitions, theirs: Transitions) -> bool:
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(ours, theirs))


def test_what_is_written_is_read_again_to_the_bit_and_twice_the_same_bytes(tmp_path: Path) -> None:
    steps = logged()
    d4rl.write(tmp_path / "a.hdf5", steps, {"environment": "Hopper-v5", "seed": 3})
    d4rl.write(tmp_path / "b.hdf5", steps, {"environment": "Hopper-v5", "seed": 3})
    assert same(files.read(tmp_path / "a.hdf5", HOPPER), steps)
    assert (tmp_path / "a.hdf5").read_bytes() == (tmp_path / "b.hdf5").read_bytes()
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert sorted(file) == sorted(d4rl.NAMES.values()) and file.attrs["environment"] == "Hopper-v5"
    files.write_arrays(tmp_path / "a.npz", steps)
    assert same(files.read(tmp_path / "a.npz", HOPPER), steps)


def test_a_timeout_is_no_terminal_and_a_file_that_stops_midway_is_cut_off(tmp_path: Path) -> None:
    steps = logged()
    open_ended = steps._replace(timeout=steps.timeout & (np.arange(12) < 11))
    read = files.read(hdf5(tmp_path / "v2.hdf5", open_ended))
    assert read.timeout.nonzero()[0].tolist() == [4, 11] and read.terminal.nonzero()[0].tolist() == [7]
    both = files.read(hdf5(tmp_path / "both.hdf5", steps, timeout=steps.timeout | steps.terminal))
    assert same(both, steps), "where a file says both, the world ended"


def test_without_next_observations_the_last_step_of_a_cut_episode_is_left_out(tmp_path: Path) -> None:
    steps = logged()
    read = files.read(hdf5(tmp_path / "v1.hdf5", steps, without=("next_observation",)), HOPPER)
    kept = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert np.array_equal(read.observation, steps.observation[kept])
    assert read.timeout.nonzero()[0].tolist() == [3, 9] and read.terminal.nonzero()[0].tolist() == [6]
    true = steps.next_observation[kept]
    true[6] = steps.observation[7]  # at the terminal nothing is asked beyond, and the next episode's start is no answer
    assert np.array_equal(read.next_observation, true)
    assert episodes(read).length.tolist() == [4, 3, 3]


def test_without_timeouts_the_clock_ends_episodes(tmp_path: Path) -> None:
    lengths = (1000, 400, 1000, 1000, 20)
    steps = logged(lengths, "ctcco")
    without = ("next_observation", "timeout")
    read = files.read(hdf5(tmp_path / "v0.hdf5", steps, without=without), HOPPER)
    assert episodes(read).length.tolist() == [999, 400, 999, 999, 19]
    assert read.terminal.nonzero()[0].tolist() == [1398]


@given(st.lists(st.tuples(st.integers(2, 7), st.sampled_from("ct")), min_size=1, max_size=8))
def test_every_reader_finds_the_episodes_that_were_logged(made: list[tuple[int, str]]) -> None:
    lengths, ends = zip(*made)
    steps = logged(lengths, "".join(ends))
    found = episodes(assemble("log", steps._asdict()))
    assert found.length.tolist() == list(lengths)
    assert np.allclose(found.total, [part.sum() for part in np.split(steps.reward, np.cumsum(lengths)[:-1])], atol=1e-5)
    arrays = {name: values for name, values in steps._asdict().items() if name != "next_observation"}
    shorter = [length - (end == "c") for length, end in made]
    again = assemble("log", arrays)
    assert episodes(again).length.tolist() == shorter
    checks.check("log", again)


def minari_dataset(folder: Path, steps: Transitions, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same episodes, written by Minari itself."""
    import gymnasium
    import minari
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    found, buffers = episodes(steps), []
    for number, (start, length) in enumerate(zip(found.start, found.length)):
        rows = slice(start, start + length)
        seen = np.concatenate([steps.observation[rows], steps.next_observation[rows][-1:]])
        buffers.append(
            EpisodeBuffer(
                id=number, observations=seen, actions=steps.action[rows], rewards=steps.reward[rows].tolist(),
                terminations=steps.terminal[rows].tolist(), truncations=steps.timeout[rows].tolist(),
            )
        )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari asks for an author and a code link
        minari.create_dataset_from_buffers(
            dataset_id="hopper/logged-v0", buffer=buffers, data_format="hdf5",
            action_space=gymnasium.spaces.Box(-1, 1, (3,)),
            observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (11,)),
        )  # fmt: skip
    return folder / "hopper" / "logged-v0"


def test_a_dataset_written_by_minari_is_read_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = logged((5,) + (3,) * 11, "c" + "t" * 11)  # twelve, so that episode_10 must not come before episode_2
    folder = minari_dataset(tmp_path, steps, monkeypatch)
    for place in (folder, folder / "data", folder / "data" / "main_data.hdf5"):
        assert same(files.read(place, HOPPER), steps)
    assert same(files.read("hopper/logged-v0", HOPPER), steps)  # by its id, where Minari keeps its datasets
    with pytest.raises(UserError, match="minari download hopper/other-v0"):
        files.read("hopper/other-v0")
    with h5py.File(folder / "data" / "main_data.hdf5", "r+") as file:
        del file["episode_3/rewards"]
    with pytest.raises(UserError, match="episode_3 without rewards"):
        files.read(folder)


def refused(path: Path, words: str) -> None:
    """The command line says it in one line and exits with 2."""
    with pytest.raises(UserError) as caught:
        files.read(path, HOPPER)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert main(["data", "control", "--check", str(path), "--env", "hopper"]) == 2


def spoiled(values: np.ndarray, place: tuple[int, ...], value: float) -> np.ndarray:
    changed = values.copy()
    changed[place] = value
    return changed


def test_a_number_that_is_none_is_named_with_its_place(tmp_path: Path) -> None:
    steps = logged()
    bad = hdf5(tmp_path / "a.hdf5", steps, reward=spoiled(steps.reward, (6,), np.nan))
    refused(bad, "reward is nan at step 6 (1 such steps); expected finite numbers")
    bad = hdf5(tmp_path / "b.hdf5", steps, observation=spoiled(steps.observation, (9, 2), np.inf))
    refused(bad, "observation is inf at step 9, feature 2")
    bad = hdf5(tmp_path / "c.hdf5", steps, terminal=steps.reward)
    refused(bad, "expected 0 or 1")


def test_widths_lengths_and_bounds_are_held_to_the_environment(tmp_path: Path) -> None:
    steps = logged()
    wide = np.concatenate([steps.observation, steps.observation], axis=1)
    wider = np.concatenate([steps.next_observation, steps.next_observation], axis=1)
    bad = hdf5(tmp_path / "a.hdf5", steps, observation=wide, next_observation=wider)
    refused(bad, "observations of width 22; expected width 11 for hopper")
    refused(hdf5(tmp_path / "b.hdf5", steps, next_observation=wider), "next observations of width 22")
    refused(hdf5(tmp_path / "c.hdf5", steps, reward=steps.reward[:-2]), "10 of reward for 12 of observation")
    bad = hdf5(tmp_path / "d.hdf5", steps, action=spoiled(steps.action, (3, 1), 1.5))
    refused(bad, "action 1.5 at step 3, part 1 (1 such steps); expected actions from -1 to 1")
    refused(hdf5(tmp_path / "e.hdf5", steps, without=("action",)), "without action")
    refused(hdf5(tmp_path / "f.hdf5", steps, observation=steps.reward), "observation of shape (12,)")


def test_broken_episodes_are_found(tmp_path: Path) -> None:
    steps = logged()
    glued = steps._replace(timeout=np.zeros(12, dtype=np.bool_))
    refused(hdf5(tmp_path / "a.hdf5", glued), "step 4 leads elsewhere than step 5 begins, inside an episode")
    seen = np.zeros((1200, 11), dtype=np.float32)
    long = logged((1200,), "c")._replace(observation=seen, next_observation=seen)
    refused(hdf5(tmp_path / "b.hdf5", long), "an episode of 1200 steps from step 0; expected at most 1000 in hopper")


def test_damaged_empty_and_foreign_files_are_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.hdf5"
    d4rl.write(whole, logged((900, 900), "cc"))
    content = whole.read_bytes()
    for name, part in {"cut": content[: len(content) // 2], "none": b"", "text": b"1,2,3\n" * 9}.items():
        (tmp_path / name).write_bytes(part)
    refused(tmp_path / "cut", "cannot be read whole")
    refused(tmp_path / "none", "an empty file")
    refused(tmp_path / "text", "neither HDF5 nor npz")
    refused(tmp_path / "absent", "No such file")
    refused(tmp_path, "expected a Minari dataset")
    middle = bytearray(content)
    middle[len(content) // 3 : len(content) // 3 + 4000] = b"\xff" * 4000
    (tmp_path / "spoiled").write_bytes(middle)
    refused(tmp_path / "spoiled", "cannot be read whole")
    with h5py.File(tmp_path / "empty.hdf5", "w") as file:
        for name, values in logged()._asdict().items():
            file[d4rl.NAMES[name]] = values[:0]
    refused(tmp_path / "empty.hdf5", "without a single step")
    with h5py.File(tmp_path / "bare.hdf5", "w"):
        pass
    refused(tmp_path / "bare.hdf5", "without observation, action, reward, terminal")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_cut_npz_is_one_line(tmp_path: Path, share: float) -> None:
    files.write_arrays(tmp_path / "a.npz", logged((50,), "c"))
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content[: int(share * len(content))])
    refused(tmp_path / "a.npz", "cannot be read whole")


def test_nothing_pickled_is_opened(tmp_path: Path) -> None:
    steps = logged()._asdict()
    np.savez(tmp_path / "a.npz", **{**steps, "reward": np.array([object()] * 12)})
    refused(tmp_path / "a.npz", "cannot be read whole")


def test_the_command_counts_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = logged()
    assert main(["data", "control", "--check", str(hdf5(tmp_path / "hopper-log.hdf5", steps)), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["transitions"], said["episodes"], said["terminals"], said["timeouts"]) == (12, 3, 1, 2)
    mean = float(np.mean([steps.reward[:5].sum(), steps.reward[5:8].sum(), steps.reward[8:].sum()]))
    assert abs(said["mean return"] - mean) < 0.01 and said["environment"] == "hopper"
    assert abs(said["score"] - HOPPER.score(mean)) < 0.01
    assert said["reward range"] == [round(float(steps.reward.min()), 4), round(float(steps.reward.max()), 4)]
