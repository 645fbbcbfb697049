"""`fewer run`: predict with a pack; needs no torch."""

from __future__ import annotations

import argparse
import math
import sys
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from fewer.cli.opened import add_pack, opened
from fewer.core.errors import UserError
from fewer.core.files.atomic import refusal
from fewer.core.registry import system_of
from fewer.core.system import imported


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    add_pack(parser)
    parser.add_argument(
        "--input", help="a .npy array or .npz with one array per input; default: text on standard input"
    )
    parser.add_argument("-o", "--out", help="write a .npy file instead of text")
    parser.add_argument("--info", action="store_true", help="say what the pack holds")


def run(arguments: argparse.Namespace) -> None:
    """One line of numbers a sample, or JSON."""
    import numpy as np

    from fewer.cli.show import show
    from fewer.packs.compiled import missing
    from fewer.packs.show import count

    pack = opened(arguments)
    if arguments.info:
        shapes = {name: {part.name: list(part.shape) for part in network.program.inputs}
                  for name, network in pack.networks.items()}  # fmt: skip
        kernels = {"kernels": missing()} if missing() else {}
        told = {**pack.settings, **count(pack).metrics(), "inputs": shapes, **kernels}
        show(told if arguments.json else _told(told), arguments.json)
        return
    inputs = {name: _checked(value, pack.settings.get("task")) for name, value in _inputs(arguments).items()}
    answer = pack.predict(**inputs) if _named(arguments) else pack.predict(inputs["x"])
    if arguments.out:
        try:
            np.save(arguments.out, answer, allow_pickle=False)
        except OSError as error:
            raise refusal(error, Path(arguments.out)) from None
    elif arguments.json:
        show(np.asarray(answer).tolist(), True)
    else:
        np.savetxt(sys.stdout, np.asarray(answer).reshape(len(answer), math.prod(answer.shape[1:])), fmt="%.6g")


def _told(info: dict[str, Any]) -> dict[str, Any]:
    """For people: of what the pack carries, names are told and tables are counted."""
    told = {name: value for name, value in info.items() if name != "carried"}
    for name, value in dict(info.get("carried") or {}).items():
        if isinstance(value, list):
            words = all(isinstance(one, str) for one in value)
            told[name] = ", ".join(value) if words else f"{len(value):,} rows"
        else:
            told[name] = value
    return told


def _checked(values, task):  # type: ignore[no-untyped-def]
    """Numbers that a prediction can be made of."""
    import numpy as np

    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise UserError("input with NaN or infinity", "finite numbers", "leave those samples out")
    ready = system_of(task or "").prepare
    return imported(ready)(values) if ready else values


def _named(arguments: argparse.Namespace) -> bool:
    return bool(arguments.input) and arguments.input.endswith(".npz")


def _inputs(arguments: argparse.Namespace):  # type: ignore[no-untyped-def]
    import numpy as np

    try:
        if arguments.input is None:
            rows = [line.replace(",", " ").split() for line in sys.stdin if line.strip()]
            return {"x": np.array([[float(word) for word in row] for row in rows], dtype=np.float32)}
        found = np.load(arguments.input, allow_pickle=False)
        return dict(found) if _named(arguments) else {"x": found}
    except FileNotFoundError:
        raise UserError(f"{arguments.input}, which does not exist", "a .npy or .npz file") from None
    except (ValueError, OSError, EOFError, BadZipFile, zlib.error) as error:
        raise UserError(f"input that cannot be read ({error})", "numbers, one sample a line, or a .npy file") from None
