"""What hostile requests and connections cost a server: memory beyond what it had, and how long `/healthz` waits.

    python scripts/hurt_service.py [--times 100] [--only WORD] [--seconds 300]

Starts `fewer serve` on loopback, makes every attack so many times and meanwhile asks for health and for one phone
every few milliseconds. Memory is the most that all processes of the service had, by the system's own count (Linux
only). The attacks are in `hurting/requests.py` and `hurting/connections.py`. Exits with 1 where a bound was exceeded.
"""

from __future__ import annotations

import argparse
import sys

from hurting import connections, requests
from hurting.measure import at_rest, hurt, still

from fewer.bench.load import serving


def main() -> int:
    """All attacks, or those whose name holds a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=300.0, help="the longest that one attack is repeated")
    words = parser.parse_args()
    good = True
    for part in (requests, connections):
        chosen = [attack for attack in part.ATTACKS if words.only in attack.__name__]
        if not chosen:
            continue
        with serving(part.MODELS, *part.OPTIONS) as server:
            for attack in part.WARM:
                attack(server)
            still(server, 1.0)
            for attack in (at_rest, *chosen):
                seen = hurt(attack, server, words.times, words.seconds)
                print(seen.row(), flush=True)
                good &= seen.good or attack is at_rest
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
