"""`fewer run`: predict with a pack; needs no torch."""

from __future__ import annotations

import argparse
import sys

from fewer.core.errors import UserError


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("file", help="a pack")
    parser.add_argument(
        "--input", help="a .npy array or .npz with one array per input; default: text on standard input"
    )
    parser.add_argument("-o", "--out", help="write a .npy file instead of text")
    parser.add_argument("--info", action="store_true", help="say what the pack holds")


def run(arguments: argparse.Namespace) -> None:
    """One line of numbers a sample, or JSON."""
    import numpy as np

    from fewer.cli.show import say
    from fewer.sparse.pack import load

    pack = load(arguments.file)
    if arguments.info:
        shapes = {name: {part.name: list(part.shape) for part in network.program.inputs}
                  for name, network in pack.networks.items()}  # fmt: skip
        say({**pack.settings, "inputs": shapes}, arguments.json)
        return
    answer = pack.predict(**_inputs(arguments)) if _named(arguments) else pack.predict(_inputs(arguments)["x"])
    if arguments.out:
        np.save(arguments.out, answer, allow_pickle=False)
    elif arguments.json:
        say(np.asarray(answer).tolist(), True)
    else:
        np.savetxt(sys.stdout, np.asarray(answer).reshape(len(answer), -1), fmt="%.6g")


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
    except (ValueError, OSError) as error:
        raise UserError(f"input that cannot be read ({error})", "numbers, one sample a line, or a .npy file") from None
