"""A process that runs units: each a line of JSON on standard input, reports as lines of JSON on standard output.

It stays for many units, so that torch is imported once. When its input ends, its parent is gone, and so is it: files
are whole or absent, nothing has to be put away.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

__all__ = ["main"]

_EVERY = 0.5  # seconds between reports of one training


def main(out: str, threads: str) -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no report
    units: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(units,), daemon=True).start()

    def report(content: dict[str, Any]) -> None:
        channel.write(json.dumps(content) + "\n")
        channel.flush()

    import torch

    from fewer.sweep.unit import Unit, run_unit

    torch.set_num_threads(int(threads))
    report({"ready": os.getpid()})
    while True:
        unit = Unit.from_json(json.loads(units.get()))
        said = [0.0]

        def log(line: dict[str, Any], said: list[float] = said) -> None:
            if time.monotonic() - said[0] > _EVERY:
                said[0] = time.monotonic()
                report({"step": line["step"]})

        report({"outcome": run_unit(unit, Path(out), log).to_json()})


def _listen(units: queue.Queue[str]) -> None:
    for line in sys.stdin:
        units.put(line)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
