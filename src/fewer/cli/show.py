"""Speaking to people and to programs: progress bars on a terminal, plain lines in a pipe, JSON when asked."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fewer.core.files.atomic import finite
from fewer.core.renamed import tell

_FIRST, _THEN = 1.0, 10.0  # seconds until progress is told in a pipe, and between two times

__all__ = ["Renamed", "metrics", "progress", "show"]


def show(content: Any, as_json: bool) -> None:
    """A dict as JSON, or as aligned lines."""
    if as_json:
        print(json.dumps(finite(content), allow_nan=False))
    else:
        print(content if isinstance(content, str) else metrics(content))


def metrics(found: dict[str, Any]) -> str:
    """One metric per line."""
    width = max((len(name) for name in found), default=0)
    return "\n".join(f"{name:<{width}}  {_number(value)}" for name, value in found.items())


def _number(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"mean", "each"}:
        return f"{_number(value['mean'])}  (of {', '.join(_number(one) for one in value['each'])})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextmanager
def progress(total: int, title: str, quiet: bool = False) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function to call with each log line."""
    if quiet:
        yield lambda line: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                   TextColumn("{task.fields[numbers]}"))  # fmt: skip
        with Progress(*columns, console=Console(stderr=True)) as bar:
            item = bar.add_task(title, total=total, numbers="")
            latest: dict[str, Any] = {}  # validation is told less often than losses, and stays beside them

            def show_latest(line: dict[str, Any]) -> None:
                latest.update(line)  # ticks, losses and validation
                bar.update(item, completed=line["step"], numbers=_numbers(latest))

            yield show_latest
    else:
        every = max(total // 10, 1)
        spoken: dict[tuple[str, ...], int] = {}  # by what a line is about
        silent_until = time.monotonic() + _FIRST

        def log(line: dict[str, Any]) -> None:
            nonlocal silent_until
            about = tuple(line)
            if "steps_per_second" in line:
                if time.monotonic() > silent_until:
                    print(f"{title} {line['step']}/{total} {_numbers(line)}", file=sys.stderr, flush=True)
                    silent_until = time.monotonic() + _THEN
            elif line["step"] // every > spoken.get(about, 0) // every or line["step"] == total:
                print(f"{title} {line['step']}/{total} {_numbers(line)}", file=sys.stderr, flush=True)
                spoken[about] = line["step"]

        yield log


def _numbers(line: dict[str, Any]) -> str:
    """How fast it goes, losses and validation metrics, of several replicas their mean."""
    parts = []
    if "steps_per_second" in line:
        left = str(datetime.timedelta(seconds=round(line["seconds_left"])))
        parts.append(f"{line['steps_per_second']:.3g} steps/s  density {line['density']:.3g}  {left} left")
    for name, value in line.items():
        if name.startswith(("loss", "validation")):
            values = [v for v in (value if isinstance(value, list) else [value]) if v is not None]
            parts.append(f"{name} {sum(values) / len(values):.4f}" if values else f"{name} -")
    return "  ".join(parts)


class Renamed(argparse.Action):
    """An option of an earlier version: works as the one that it became, and says so."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        tell(str(option_string), f"--{self.dest.replace('_', '-')}")
        setattr(namespace, self.dest, values)
