"""Neural networks that do the same job with fewer weights, fewer measurements and fewer surprises.

import fewer
run = fewer.train("vision", "runs/small", prune="snip,sparsity=0.95", steps=300)
fewer.pack(run, "small.pack").predict(images)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewer.run.api import audit as audit
    from fewer.run.api import load as load
    from fewer.run.api import open_pack as open_pack
    from fewer.run.api import pack as pack
    from fewer.run.api import train as train

__version__ = "0.1.0"

_OFFERED = ("audit", "load", "open_pack", "pack", "train")


def __getattr__(name: str) -> Any:
    """What `fewer.run.api` offers, imported when first asked for: importing the package alone stays light."""
    if name not in _OFFERED:
        raise AttributeError(f"module 'fewer' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module("fewer.run.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_OFFERED})
