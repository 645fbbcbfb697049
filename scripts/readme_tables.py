"""Write every page and part of a page that code can write: RESULTS.md, the README's picture and tables, the ledger of
claims, gallery and benches from results/; lists of methods, verbs, settings and names from the source; cards from the
packs. With --check only say whether they are current. Each page has a module in `published/`.
"""

from __future__ import annotations

import json
import sys

from published import cards, gallery, ledger, methods, peers, picture, readme, reference, tables
from published.records import LEDGER, ROOT, results

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
        ROOT / "docs" / "gallery.md": gallery.page(lines),
        ROOT / "docs" / "models.md": cards.page(),
        ROOT / "docs" / "peers.md": peers.page(),
        ROOT / "docs" / "reference.md": reference.api(),
        ROOT / "docs" / "settings.md": reference.settings(),
        ROOT / "docs" / "verbs.md": reference.verbs(),
    }
    stale = [path for path, text in written.items() if not path.exists() or path.read_text() != text]
    stale += picture.stale(results())
    if "--check" in sys.argv:
        print("\n".join(f"{path.relative_to(ROOT)} is not current: run `make docs`" for path in stale))
        return int(bool(stale))
    for path in stale:
        path.write_bytes(written[path].encode() if path in written else picture.drawn(path, results()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
