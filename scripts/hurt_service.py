"""What hostile requests and connections cost a server: memory beyond what it had, and how long `/healthz` waits.

    python scripts/hurt_service.py [--times 1000] [--only WORD ...] [--seconds 600] [--keep FILE]

Starts `fewer serve` on loopback, makes every attack so many times and meanwhile asks for health and for one phone
every few milliseconds, and a second server, which is left alone, for its health: what others do to the machine shows
there. Memory is the most that all processes of the service had, by the system's own count (Linux only). The attacks
are in `hurting/requests.py`, `hurting/connections.py` and `hurting/kills.py`. Exits with 1 where a bound was exceeded.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from hurting import connections, kills, requests
from hurting.measure import at_rest, hurt, still
from hurting.record import record

from fewer.bench.load import serving


def main() -> int:
    """All attacks, or those whose name holds a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--only", nargs="+", default=[""], help="attacks whose name holds one of these words")
    parser.add_argument("--seconds", type=float, default=600.0, help="the longest that one attack is repeated")
    parser.add_argument("--keep", type=Path, help="write what was seen as a result")
    words = parser.parse_args()
    rows = []
    for part in (requests, connections, kills):
        chosen = [attack for attack in part.ATTACKS if any(w in attack.__name__ for w in words.only)]
        if not chosen:
            continue
        with serving(part.MODELS, *part.OPTIONS) as server, serving(["cellfree-80"]) as unhurt:
            for attack in part.WARM:
                attack(server)
            still(server, 1.0)
            for attack in (at_rest, *chosen):
                seen = hurt(
                    attack, server, unhurt, min(words.times, 100) if attack is at_rest else words.times, words.seconds
                )
                print(seen.row(), flush=True)
                rows.append(seen)
    if words.keep:
        only = f" --only {' '.join(words.only)}" if words.only != [""] else ""
        command = f"python scripts/hurt_service.py --times {words.times} --seconds {words.seconds:g}{only}"
        words.keep.write_text(json.dumps(record(rows, command), indent=1) + "\n")
    return 0 if all(seen.good or seen.name == at_rest.__name__ for seen in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
