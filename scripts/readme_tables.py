"""Write RESULTS.md, the README's tables and the ledger of claims from results/, and the lists of docs/methods.md from
the registries; with --check only say whether they are current. Each page has a module in `published/`.
"""

from __future__ import annotations

import json
import sys

from published import ledger, methods, readme, tables
from published.records import LEDGER, ROOT

from fewer.studies import claims


def main() -> int:
    """Rewrite the files, or name those that are not current."""
    lines = claims.ledger(claims.records_in(ROOT / "results"))
    told = ledger.page(lines)
    written = {
        ROOT / "README.md": readme.page(lines),
        ROOT / "RESULTS.md": tables.page(),
        ROOT / "docs" / "methods.md": methods.page(),
        ROOT / "results" / LEDGER: json.dumps({"counts": claims.counted(lines), "claims": lines}, indent=1) + "\n",
        ROOT / "CLAIMS.md": told,
        ROOT / "docs" / "claims.md": told,
    }
    stale = [path for path, text in written.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        print("\n".join(f"{path.relative_to(ROOT)} is not current: run `make docs`" for path in stale))
        return int(bool(stale))
    for path in stale:
        path.write_text(written[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
