"""Whether requests are lost while workers are killed and packs reloaded under mixed traffic (Linux only).

    python scripts/endure_service.py [--seconds 600] [--kill 20] [--reload 30] [--workers 2] [--terminate] [--keep FILE]

Starts `fewer serve` on loopback, and clients of each kind that keep their connections open, as browsers and
balancers do: single samples and batches in JSON, npz, the other protocol, pages, and requests that are refused. One
worker is killed and all packs are reloaded again and again. A request is lost if it gets no answer although its
connection stood when it was sent; a connection that ends while a worker is killed is expected, and counted apart.
Exits with 1 where a request was lost or an answer was wrong. The clients are in `enduring/`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from enduring.record import record
from enduring.run import Plan, endured


def main() -> int:
    """One run; prints a line for each kind of request, then a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--kill", type=float, default=20.0, help="seconds between two kills; 0: none")
    parser.add_argument("--reload", type=float, default=30.0, help="seconds between two reloads; 0: none")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--terminate", action="store_true", help="stop the service under load at the end")
    parser.add_argument("--keep", type=Path, help="write what was seen as a result")
    words = parser.parse_args()
    found = endured(Plan(words.seconds, words.kill, words.reload, words.workers, words.terminate))
    for line in found.lines():
        print(line, flush=True)
    print(json.dumps(found.summary()))
    if words.keep:
        command = (
            f"python scripts/endure_service.py --seconds {words.seconds:g} --kill {words.kill:g} "
            f"--reload {words.reload:g} --workers {words.workers}{' --terminate' if words.terminate else ''}"
        )
        words.keep.write_text(json.dumps(record(found, command), indent=1) + "\n")
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
