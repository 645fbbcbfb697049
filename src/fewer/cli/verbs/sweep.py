"""`fewer sweep`: a grid of trainings, in processes or on a Ray cluster."""

from __future__ import annotations

import argparse
import sys

from fewer.cli.words import offer
from fewer.core.renamed import modern_word
from fewer.core.settings import either
from fewer.sweep.executors import PLACES

EXAMPLES = """examples:
  fewer sweep examples/grid.toml --out runs/grid
  fewer sweep examples/grid.toml --out runs/grid --retry-failed
  fewer sweep examples/grid.toml --out runs/grid --on ray --address ray://head:10001

a grid file:
  [base]
  task = "mine:Mine"
  steps = 300                   # or preset = "paper", where the task has it
  [base.set]
  width = 64
  [axes]
  prune = ["dense", "snip", "magnitude", "lottery"]
  sparsity = [0.5, 0.9]
  seed = "0-4"
  "optimizer.lr" = [1e-3, 3e-3]
  [[points]]
  prune = "magnitude,when=gradual"
  [[exclude]]
  prune = "snip"
  sparsity = 0.5
  [resources]
  threads = 1"""


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("grid", metavar="GRID.toml", help="base, axes, points, excludes")
    parser.add_argument("--out", required=True, help="folder; the same command goes on where it was killed")
    on = parser.add_argument("--on", type=modern_word, default="processes", help=f"{either(PLACES)} (this process)")
    offer(on, PLACES)
    parser.add_argument("--address", help="of a Ray cluster; left out: Ray on this machine")
    parser.add_argument("--processes", type=int, default=0, help="local processes (default: one a core)")
    parser.add_argument("--retry-failed", action="store_true", help="try again what failed")


def run(arguments: argparse.Namespace) -> None:
    """Train, show, print the table; exit code 1 if a point failed."""
    from fewer.cli.show import show
    from fewer.sweep.grid import read_grid
    from fewer.sweep.run import Sweep, Where
    from fewer.sweep.view import watching

    grid = read_grid(arguments.grid)
    sweep = Sweep(grid, arguments.out, Where(arguments.on, arguments.address, arguments.processes))
    with watching(len(grid.points), arguments.json) as watch:
        rows = sweep.run(retry_failed=arguments.retry_failed, watch=watch)
    failed = [row for row in rows if row["status"] == "failed"]
    if arguments.json:
        show({"out": arguments.out, "points": rows}, True)
    else:
        print("\n".join(lines_of(rows)))
        print(f"{len(rows) - len(failed)} of {len(rows)} done; {arguments.out}/table.csv, table.json")
    if failed:
        print(
            f"fewer: {len(failed)} of {len(rows)} points failed, first {failed[0]['point']}: {failed[0]['why']}; "
            "--retry-failed tries them again",
            file=sys.stderr,
        )
        raise SystemExit(1)


def lines_of(rows: list[dict[str, object]]) -> list[str]:
    """The table in aligned columns: settings, then the first three metrics."""
    settings = list(dict.fromkeys(name for row in rows for name in row["settings"]))  # type: ignore[attr-defined]
    metrics = list(dict.fromkeys(name for row in rows for name in list(row.get("metrics", {}))[:3]))  # type: ignore[call-overload]
    cells = [["point", *settings, *metrics, "status"]]
    for row in rows:
        shown = [_cell(row["settings"].get(name)) for name in settings]  # type: ignore[attr-defined]
        shown += [_cell(row.get("metrics", {}).get(name)) for name in metrics]  # type: ignore[attr-defined]
        cells.append([str(row["point"]), *shown, str(row["why"] or row["status"])])
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths)).rstrip() for line in cells]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
