"""The table of architectures: `python -m scripts.architectures [NAME ...]` measures, and writes docs/architectures.md.

Wants transformers, timm and torchvision beside torch; what was measured lies in results/architectures.json, and
`python -m scripts.architectures --page` writes the page of it without measuring.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from scripts.architectures.page import page

RESULTS, PAGE = Path("results/architectures.json"), Path("docs/architectures.md")


def _text(known: dict[str, Any]) -> str:
    """JSON with one line for each architecture."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in known["rows"].items())
    return f'{{"setting": {json.dumps(known["setting"])},\n "rows": {{\n{rows}\n}}}}\n'


def _measure(names: list[str], known: dict[str, Any]) -> None:
    import torch
    from scripts.architectures import vision

    vision.define_operators()
    import timm
    import torchvision
    import transformers
    from scripts.architectures import language, plain
    from scripts.architectures.measure import LARGEST_C, measured

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    libraries = {"transformers": language.MODELS, "torchvision, timm": vision.MODELS, "torch.nn": plain.MODELS}
    known["setting"] = {
        "versions": {part.__name__: part.__version__ for part in (torch, transformers, torchvision, timm)},
        "largest for C": LARGEST_C,
    }
    rows = known["rows"]
    for library, models in libraries.items():
        for name, make in models.items():
            if names and name not in names:
                continue
            start = time.perf_counter()
            rows[name] = {"library": library, **measured(make)}
            print(f"{name}: {time.perf_counter() - start:.0f} s", rows[name], flush=True)
            RESULTS.write_text(_text(known))
    order = [name for models in libraries.values() for name in models if name in rows]
    known["rows"] = {name: rows[name] for name in order}
    RESULTS.write_text(_text(known))


def main() -> None:
    """Measure what is named, or everything, and write the page."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}}
    if sys.argv[1:] != ["--page"]:
        _measure(sys.argv[1:], known)
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
