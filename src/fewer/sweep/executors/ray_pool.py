"""Units on Ray: on this machine or on a cluster without a shared file system.

A unit is trained in a folder of the node that runs it, and its finished runs come home as bytes. Ray starts a unit
again when its worker dies; on the same node it goes on from its checkpoint. A point's files are written here once, its
metrics last, so nothing is lost and nothing counts twice.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from fewer.core.errors import MissingExtra, UserError
from fewer.core.files.atomic import write_atomically
from fewer.core.files.run_folder import METRICS
from fewer.sweep.failure import Failure
from fewer.sweep.grid import Resources
from fewer.sweep.report import Done, Report
from fewer.sweep.unit import Outcome, Unit, run_unit

__all__ = ["AHEAD", "bring_home", "run_away", "work_on_ray"]

Files = dict[str, bytes]  # by path below the folder of points
AHEAD = 1024  # units that Ray has at once, or two for each of its cores: to wait for one takes time for every one
_LARGEST = 256 << 20  # bytes of a file that comes home; a larger one is named in `left_behind.txt`


def run_away(
    unit: dict[str, Any], sweep: str, threads: int, path: list[str]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """On the node: run a unit in a folder of its own; the outcome and the files of finished points."""
    sys.path += [entry for entry in path if entry not in sys.path and os.path.isdir(entry)]
    import torch

    torch.set_num_threads(threads)
    work = Path(tempfile.gettempdir()) / f"fewer-{os.getuid()}-{sweep}" / unit["name"]
    outcome = run_unit(Unit.from_json(unit), work, lambda line: None)
    files: Files = {}
    for name, failure in outcome.failures.items():
        if failure is None:
            files |= _small_files(work / "points" / name, name)
    shutil.rmtree(work, ignore_errors=True)
    return outcome.to_json(), files


def _small_files(folder: Path, name: str) -> Files:
    found, left = {}, []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".lock":
            inner = path.relative_to(folder).as_posix()
            if path.stat().st_size > _LARGEST:
                left.append(f"{inner} ({path.stat().st_size} bytes)")
            else:
                found[f"{name}/{inner}"] = path.read_bytes()
    if left:
        found[f"{name}/left_behind.txt"] = "\n".join(left).encode()
    return found


def bring_home(files: Mapping[str, bytes], points: Path) -> None:
    """Write what a unit sent, the metrics of each point last."""
    for inner, content in sorted(files.items(), key=lambda item: item[0].split("/")[1:] == [METRICS]):
        path = points / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)


def work_on_ray(
    units: deque[Unit], out: Path, resources: Resources, address: str | None
) -> Generator[Report, None, None]:
    """Run units until there are none; the caller may add to `units` between reports."""
    ray = _connected(address)
    try:
        away = ray.remote(run_away)
        running: dict[Any, Unit] = {}
        most = max(AHEAD, int(2 * ray.cluster_resources().get("CPU", 0)))
        while units or running:
            while units and len(running) < most:
                unit = units.popleft()
                task = away.options(**_needs(unit, resources))
                sent = task.remote(unit.to_json(), _sweep_name(out), resources.threads, [*sys.path, os.getcwd()])
                running[sent] = unit
            ready, _ = ray.wait(list(running), num_returns=1)
            for reference in ready:
                unit = running.pop(reference)
                yield Done(unit, _outcome(ray, reference, unit, out))
    finally:
        ray.shutdown()


def _needs(unit: Unit, resources: Resources) -> dict[str, Any]:
    """Ray shows a unit only the GPUs it reserves, so one on CUDA reserves at least one."""
    gpus = resources.gpus or (1.0 if unit.points[0].device.startswith("cuda") else 0.0)
    return {"num_cpus": resources.cpus or resources.threads, "num_gpus": gpus, "max_retries": resources.retries}


def _sweep_name(out: Path) -> str:
    return hashlib.blake2b(str(out.resolve()).encode(), digest_size=4).hexdigest()


def _outcome(ray: Any, reference: Any, unit: Unit, out: Path) -> Outcome:
    try:
        found, files = ray.get(reference)
    except ray.exceptions.RayError as error:
        first = " ".join(str(error).split())[:200]
        failure = Failure("worker died", f"Ray gave the unit up after its retries: {first}")
        if len(unit.points) > 1:
            return Outcome({}, failure.why)
        return Outcome({point.name: failure for point in unit.points})
    bring_home(files, out / "points")
    return Outcome.from_json(found)


def _connected(address: str | None) -> Any:
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtra("--on ray without Ray", "the sweep extra", "pip install 'fewer[sweep]'") from None
    try:
        ray.init(address=address, include_dashboard=False if address is None else None, log_to_driver=False,
                 logging_level=logging.ERROR)  # fmt: skip
    except (ConnectionError, ValueError, RuntimeError) as error:
        line = " ".join(str(error).split())[:200]
        raise UserError(f"--address {address} ({line})", "a Ray cluster that answers", "ray start --head") from None
    return ray
