"""What a sweep's folder holds: finished points, failures, and one table over both.

plan.json            which points are trained together
points/NAME/         a run folder of each point, as `fewer train` leaves it
cohorts/NAME/        cohorts under way
failures/NAME.json   why a point has no metrics
table.json table.csv every point, one row each
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fewer.core.files.atomic import finite, write_atomically, write_json
from fewer.core.files.run_folder import Folder
from fewer.sweep.failure import Failure
from fewer.sweep.point import Point

__all__ = ["Results"]


class Results:
    """Reads and writes them; every file is whole or absent."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def folder(self, name: str) -> Folder:
        """A point's run folder."""
        return Folder(self.out / "points" / name)

    def finished(self, names: Iterable[str]) -> list[str]:
        """Those that have metrics."""
        return [name for name in names if self.folder(name).finished]

    def failure(self, name: str) -> Failure | None:
        """Why it has none, if it was tried."""
        path = self.out / "failures" / f"{name}.json"
        return Failure(**json.loads(path.read_text())) if path.exists() else None

    def note(self, name: str, failure: Failure) -> None:
        """One more that failed."""
        (self.out / "failures").mkdir(exist_ok=True)
        write_json(self.out / "failures" / f"{name}.json", asdict(failure))

    def forgive(self, name: str) -> None:
        """Let a failed point be tried again: from its last checkpoint if that is worth something, else anew."""
        failure = self.failure(name)
        if failure is not None and not failure.again:
            shutil.rmtree(self.folder(name).path, ignore_errors=True)
        (self.out / "failures" / f"{name}.json").unlink(missing_ok=True)

    def under_way(self, name: str) -> bool:
        """Whether a cohort has begun and not been noted."""
        return (self.out / "cohorts" / name).exists()

    def clear_cohort(self, name: str) -> None:
        """Its points are finished or noted: what it needed to go on can go."""
        shutil.rmtree(self.out / "cohorts" / name, ignore_errors=True)

    def rows(self, points: Sequence[Point]) -> list[dict[str, Any]]:
        """One a point, in the grid's order; `status` is done, failed or waiting."""
        return [self._row(point) for point in points]

    def _row(self, point: Point) -> dict[str, Any]:
        row: dict[str, Any] = {"point": point.name, "status": "waiting", "why": "", "settings": dict(point.labels)}
        folder = self.folder(point.name)
        if folder.finished:
            row |= {"status": "done", "metrics": finite(folder.metrics()[0])}
        elif (failure := self.failure(point.name)) is not None:
            row |= {"status": "failed", "why": f"{failure.kind}: {failure.why}"}
        return row

    def write_tables(self, points: Sequence[Point]) -> list[dict[str, Any]]:
        """table.json and table.csv; the rows."""
        rows = self.rows(points)
        write_json(self.out / "table.json", rows)
        write_atomically(self.out / "table.csv", _csv(rows).encode())
        return rows


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    settings = list(dict.fromkeys(name for row in rows for name in row["settings"]))
    metrics = list(dict.fromkeys(name for row in rows for name in row.get("metrics", {})))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["point", "status", "why", *settings, *metrics])
    for row in rows:
        found = row.get("metrics", {})
        cells = [row["settings"].get(name, "") for name in settings] + [found.get(name, "") for name in metrics]
        writer.writerow([row["point"], row["status"], row["why"], *cells])
    return text.getvalue()
