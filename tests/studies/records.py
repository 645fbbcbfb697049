"""The results that are published, by the name of their file; the ledger of claims and
the table of architectures are none of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text())
    for path in sorted((ROOT / "results").glob("*.json"))
    if path.name not in ("claims.json", "architectures.json")
}
NO_STUDIES = ("bench-", "release-", "service-")  # how their names begin
