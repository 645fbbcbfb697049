"""What one machine does, measured, and what more would take: writes docs/scale.json and docs/scale.md.

    python scripts/scale.py rates       requests a second and processor time of `fewer serve`, by rate and workers
    python scripts/scale.py ray         what Ray takes for a point that does nothing, and the sweep for its own part
    python scripts/scale.py networks    memory and time of networks of access points, as far as memory goes
    python scripts/scale.py page        the page alone, from what is kept

Each part replaces its own figures in docs/scale.json, with the machine beside them, and writes the page anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scaling import networks, page, rates, ray_cost

DOCS = Path(__file__).parents[1] / "docs"
PARTS = {"rates": rates.measured, "ray": ray_cost.measured, "networks": networks.measured}


def main() -> int:
    """One part, then the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "page"])
    part = parser.parse_args().part
    kept = DOCS / "scale.json"
    record = json.loads(kept.read_text()) if kept.exists() else {}
    if part in PARTS:
        record[part] = PARTS[part]()
        kept.write_text(json.dumps(record, indent=1) + "\n")
    if record.keys() == PARTS.keys():
        (DOCS / "scale.md").write_text(page.page(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
