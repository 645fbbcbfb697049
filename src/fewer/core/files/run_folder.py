"""A run folder: files that are whole or absent, never half written, and nothing that could execute.

config.json           what was asked for, with versions; a different question is refused
metrics.jsonl         one line per log step
metrics.json          the final metrics; its presence means the run is finished
checksums.json        of the three above, for a finished run
weights.safetensors   network/parameter, dense, pruned weights exactly zero
mask.safetensors      network/parameter, bool
state.safetensors     what resuming needs, with the one before it; removed when the run is finished
best.safetensors      the weights that did best on validation so far; removed then too
seed-N/               one of several seeds, a run folder itself
given/                network and samples, where they were given as objects
rounds/               the trainings of which a lottery ticket is the last

Only this module spells these names: everybody else asks a `Folder`, or names a file by its constant.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from fewer.core.errors import Busy, UserError
from fewer.core.files import checksums
from fewer.core.files.atomic import clear_parts, json_bytes, locked, refusal, write_atomically, write_json
from fewer.core.files.sealed import notes, opened, sealed
from fewer.core.renamed import modern

__all__ = ["BEST", "CONFIG", "GIVEN", "LOG", "MASK", "METRICS", "PREVIOUS", "STATE", "WEIGHTS", "Damaged", "Folder"]

CONFIG, LOG, METRICS = "config.json", "metrics.jsonl", "metrics.json"
WEIGHTS, MASK = "weights.safetensors", "mask.safetensors"
STATE, PREVIOUS, BEST = "state.safetensors", "state.previous.safetensors", "best.safetensors"
GIVEN, _SEED = "given", "seed-"
_CHECKSUMS = "checksums.json"
_LINES = "log"  # what a state notes of the log that belongs to it


class Damaged(UserError):
    """A file that is there and is not what was written."""


class Folder:
    """One run's files."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def finished(self) -> bool:
        return (self.path / METRICS).exists()

    def seed(self, seed: int) -> Folder:
        """The run of one of several seeds."""
        return Folder(self.path / f"{_SEED}{seed}")

    def seeds(self) -> list[Folder]:
        """The runs of several seeds that are there; none where this is a single run."""
        return [Folder(path) for path in sorted(self.path.glob(f"{_SEED}*"))]

    @property
    def of_a_seed(self) -> bool:
        """Whether this is the run of one of several seeds, by its name."""
        return self.path.name.startswith(_SEED)

    def given(self) -> Path | None:
        """Where network and samples are kept that were given as objects; of several seeds beside them."""
        places = (self.path / GIVEN, self.path.parent / GIVEN) if self.of_a_seed else (self.path / GIVEN,)
        return next((place for place in places if place.exists()), None)

    def rounds(self) -> Path:
        """Where the trainings lie of which a lottery ticket is the last."""
        return self.path / "rounds"

    def refuse_unless_one_run(self) -> None:
        """What is read as a trained run is finished, and is not several of them."""
        self.read_json(CONFIG)
        if not self.finished:
            raise UserError(
                f"{self.path} is not finished", "a finished run", "run the same `fewer train` again to go on"
            )
        if (count := len(self.metrics())) > 1:
            raise UserError(f"{self.path} holds {count} replicas", "one run", f"name one of {self.path}/{_SEED}*")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else trains into this folder meanwhile; the lock dies with the process."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = open(self.path / ".lock", "w")  # noqa: SIM115
        except OSError as error:
            raise refusal(error, self.path) from error
        with handle:
            if not locked(handle, wait=False):
                _refuse_without_locks()
                raise Busy(
                    f"{self.path} is being trained by another process", "a folder of its own", "wait for it to end"
                )
            self.prepare()
            yield

    def prepare(self) -> None:
        """Make it if it is not there; take away what a killed writer left in it if it is a run's and no stranger's."""
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / CONFIG).exists():
            clear_parts(self.path)

    def claim(self, config: Mapping[str, Any], versions: Mapping[str, Any]) -> bool:
        """Write the configuration, or refuse a folder that holds another one and say where they differ.

        True if the folder was nobody's before.
        """
        wanted = json.loads(json.dumps(config))
        if (self.path / CONFIG).exists():
            found = self.read_json(CONFIG)
            if isinstance(found, dict):
                found = modern(found)
                found.pop("versions", None)
            if found != wanted:
                raise UserError(
                    f"{self.path} holds another run: {'; '.join(_differences(found, wanted))}",
                    "an empty folder or the same settings",
                    "choose another --out",
                )
            return False
        strangers = [p.name for p in self.path.iterdir() if not p.name.startswith(".")] if self.path.exists() else []
        if strangers:
            (self.path / ".lock").unlink(missing_ok=True)  # a folder that is no run stays as it was
            raise UserError(
                f"{self.path} holds {strangers[0]!r} but no run", "an empty or new folder", "choose another --out"
            )
        self.write_json(CONFIG, {**wanted, "versions": dict(versions)})
        return True

    def abandon(self) -> None:
        """Give up a claim under which nothing was trained, so that a corrected command finds an empty folder."""
        files = [path.name for path in self.path.rglob("*") if path.is_file() and not path.name.startswith(".")]
        if files == [CONFIG]:
            for path in (self.path / CONFIG, *self.path.rglob(".lock")):
                path.unlink(missing_ok=True)
            for path in (*[folder.path for folder in self.seeds()], self.path):
                with suppress(OSError):
                    path.rmdir()

    def read_json(self, name: str) -> Any:
        path = self.path / name
        try:
            return json.loads(self._checked(name).decode())
        except Damaged:
            raise
        except FileNotFoundError:
            raise UserError(f"{self.path} has no {name}", "a run folder", "see `fewer train --help`") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{path} cannot be read ({error})", "the JSON that training wrote", "train anew") from None

    def _checked(self, name: str) -> bytes:
        """A file's content, refused where it is not what a finished run noted of it."""
        content = (self.path / name).read_bytes()
        if self.finished and not checksums.fits(self.path / _CHECKSUMS, name, content):
            raise Damaged(
                f"{self.path / name} is damaged (its checksum does not fit)", "the file that training wrote",
                f"train anew, or remove {_CHECKSUMS} if it was you who changed it",
            )  # fmt: skip
        return content

    def write_json(self, name: str, content: Any) -> None:
        """Metrics come last, and with the checksums of what lies beside them."""
        if name == METRICS:
            checksums.write(self.path / _CHECKSUMS, (CONFIG, LOG), **{METRICS: json_bytes(content)})
        write_json(self.path / name, content)

    def metrics(self) -> list[dict[str, float]]:
        """Of each replica, from metrics.json; one that could not be computed, null there, is NaN again."""
        content = self.read_json(METRICS)
        rows = content.get("replicas", [content]) if isinstance(content, dict) else None
        if not isinstance(rows, list) or not rows or not all(_are_metrics(row) for row in rows):
            raise Damaged(f"{self.path / METRICS} without metrics", "numbers by name", "train anew")
        return [{name: math.nan if value is None else value for name, value in row.items()} for row in rows]

    def versions(self) -> dict[str, Any]:
        """What config.json says beside the settings."""
        config = self.read_json(CONFIG)
        found = config.get("versions", {}) if isinstance(config, dict) else None
        if not isinstance(found, dict) or not isinstance(found.get("files", {}), dict):
            raise Damaged(f"{self.path / CONFIG} without versions", "what `fewer train` wrote", "train anew")
        return found

    def read_tensors(self, name: str) -> dict[str, Tensor]:
        path = self.path / name
        try:
            return opened(path)
        except FileNotFoundError:
            raise UserError(f"{self.path} has no {name}", "a run folder", "see `fewer train --help`") from None
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error})", "the file that training wrote") from None
        except SafetensorError as error:
            raise Damaged(f"{path} is damaged ({error})", "the file that training wrote", "train anew") from None

    def write_tensors(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """With a checksum."""
        write_atomically(self.path / name, sealed(tensors))

    def write_state(self, tensors: Mapping[str, Tensor]) -> None:
        """The same for a state, with what it needs to know of the log; the state before stays beside it."""
        try:
            with suppress(FileNotFoundError), open(self.path / LOG, "rb") as log:
                os.fsync(log.fileno())  # else a power cut may leave a state that knows lines which are gone
        except OSError as error:
            raise refusal(error, self.path / LOG) from error
        content = sealed(tensors, {_LINES: checksums.of_lines(self.lines())})
        write_atomically(self.path / STATE, content, previous=self.path / PREVIOUS)

    def check_log(self, state: str, step: int) -> None:
        """Refuse a log that is not the one that a state was saved with; none at all costs curves alone."""
        noted = notes(self.path / state).get(_LINES)
        kept = [line for line in self.lines() if line["step"] <= step]
        if (self.path / LOG).exists() and noted is not None and noted != checksums.of_lines(kept):
            raise _damaged_log(self.path / LOG, "")

    def read_networks(self, name: str) -> dict[str, dict[str, Tensor]]:
        """Tensors by network and parameter, as weights and masks are kept."""
        found: dict[str, dict[str, Tensor]] = {}
        for key, tensor in self.read_tensors(name).items():
            network, _, parameter = key.partition("/")
            found.setdefault(network, {})[parameter] = tensor
        return found

    def write_networks(self, name: str, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """What `read_networks` reads."""
        self.write_tensors(name, {f"{net}/{key}": t for net, by_name in tensors.items() for key, t in by_name.items()})

    def lines(self) -> list[dict[str, Any]]:
        """The log so far; a last line cut off by a kill is left out."""
        path = self.path / LOG
        try:
            *whole, _ = self._checked(LOG).split(b"\n")  # what follows the last line's end is empty or cut off
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error})", "the log that training wrote") from None
        found = []
        for number, text in enumerate(whole, 1):
            try:
                found.append(json.loads(text))
            except ValueError:
                found.append(None)
            if not _is_line(found[-1]):
                raise _damaged_log(path, f" in line {number}")
        return found

    def forget_after(self, step: int) -> None:
        """Drop log lines that a resumed run will write again."""
        if (self.path / LOG).exists():
            self.write_lines([line for line in self.lines() if line["step"] <= step])

    def write_lines(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """The whole log at once."""
        write_atomically(self.path / LOG, "".join(json.dumps(line) + "\n" for line in lines).encode())

    def log(self, line: Mapping[str, Any]) -> None:
        try:
            with open(self.path / LOG, "a") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise refusal(error, self.path / LOG) from error

    def remove(self, name: str) -> None:
        try:
            (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise refusal(error, self.path / name) from error


def _damaged_log(path: Path, where: str) -> Damaged:
    cure = "remove it: only curves are drawn from it"
    return Damaged(f"{path} is damaged{where}", "the log that training wrote", cure)


def _refuse_without_locks() -> None:
    if importlib.util.find_spec("fcntl") is None:
        raise UserError(
            "training on a system without file locks", "Linux or macOS", "train under WSL; packs run here as they are"
        )


def _are_metrics(row: Any) -> bool:
    return isinstance(row, dict) and all(value is None or isinstance(value, int | float) for value in row.values())


def _is_line(line: Any) -> bool:
    return isinstance(line, dict) and isinstance(line.get("step"), int)


def _differences(found: Any, wanted: Any, path: str = "") -> list[str]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        return [
            difference
            for key in sorted({*found, *wanted})
            for difference in _differences(found.get(key), wanted.get(key), f"{path}.{key}" if path else key)
        ]
    return [] if found == wanted else [f"{path} was {found!r}, now {wanted!r}"]
