"""Minari's datasets, read from their HDF5 layout; the package itself is not needed.

One group an episode, `episode_0`, `episode_1`, ...: observations (T + 1), actions, rewards, terminations and
truncations (T). A dataset is a folder with `data/main_data.hdf5`; its folder, its `data`, the file or its id
(`mujoco/hopper/expert-v0`) may be named. An id is looked up where Minari keeps what it downloads.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from fewer.core.errors import UserError
from fewer.systems.control.task.logs.assemble import assemble, numbers
from fewer.systems.control.task.logs.transitions import Transitions

__all__ = ["episode_names", "from_file", "main_file", "named"]

_ID = re.compile(r"(?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+-v\d+")  # [namespaces/]NAME-vNUMBER
_THEIRS = {"actions": "action", "rewards": "reward", "terminations": "terminal", "truncations": "timeout"}


def named(name: str | Path) -> Path | None:
    """The folder of a dataset that is named by its id, or None where the name is none."""
    if not _ID.fullmatch(str(name)):
        return None
    root = Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")
    if not (root / name).is_dir():
        raise UserError(
            f"Minari's {name}, which is not in {root}", "a dataset that is there, or a file", f"minari download {name}"
        )
    return root / name


def main_file(folder: Path) -> Path:
    """The HDF5 file of a dataset's folder."""
    for place in (folder / "data" / "main_data.hdf5", folder / "main_data.hdf5"):
        if place.is_file():
            return place
    if any((folder / part).is_dir() for part in ("data/0", "0")):
        raise UserError(
            f"{folder} in Minari's Arrow format", "its HDF5 format", "create the dataset with data_format='hdf5'"
        )
    raise UserError(f"folder {folder}", "a Minari dataset with data/main_data.hdf5, or a file")


def episode_names(file: Any) -> list[str]:
    """The episodes' groups, in their order."""
    found = [name for name in file if name.startswith("episode_") and name[8:].isdigit()]
    return sorted(found, key=lambda name: int(name[8:]))


def from_file(path: str | Path, file: Any) -> Transitions:
    """Transitions of an open h5py file."""
    parts = [_episode(f"{path}: {name}", file[name]) for name in episode_names(file)]
    widths = {(part["observation"].shape[1], part["action"].shape[1]) for part in parts}
    if len(widths) > 1:
        raise UserError(f"{path} with episodes of widths {sorted(widths)}", "observations and actions of one width")
    return assemble(str(path), {name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _episode(source: str, group: Any) -> dict[str, Any]:
    import h5py

    arrays = {}
    for theirs in ("observations", *_THEIRS):
        if theirs not in group:
            raise UserError(f"{source} without {theirs}", "an episode as Minari writes it")
        if not isinstance(group[theirs], h5py.Dataset):
            raise UserError(f"{source} with {theirs} in several parts", "one array (a Box space)", "flatten the space")
        rank = 2 if theirs in ("observations", "actions") else 1
        arrays[theirs] = numbers(source, theirs, group[theirs][()], rank)
    seen, steps = arrays["observations"], len(arrays["actions"])
    for theirs in _THEIRS:
        if len(arrays[theirs]) != steps:
            raise UserError(f"{source} with {len(arrays[theirs])} {theirs} for {steps} actions", "as many of each")
    if steps == 0 or len(seen) != steps + 1:
        raise UserError(f"{source} with {len(seen)} observations for {steps} actions", "one more than actions")
    episode = {ours: arrays[theirs] for theirs, ours in _THEIRS.items()}
    # an episode that was neither ended nor cut off by the clock was cut off by the recording
    episode["timeout"] = np.where(np.arange(steps) == steps - 1, 1 - episode["terminal"], episode["timeout"])
    return {"observation": seen[:-1], "next_observation": seen[1:], **episode}
