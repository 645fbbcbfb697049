"""How a pack shows itself in a notebook: what goes in, what is kept of each network, how well it did."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fewer.core.notebook import shown

if TYPE_CHECKING:
    from fewer.sparse.runtime import Pack

__all__ = ["pack_shown", "removed"]


def removed(pack: Pack) -> float:
    """Share of the weights that pruning left out, of all it could; biases and normalisers are never pruned."""
    total = sum(mask.size for mask in pack.masks.values())
    return 1.0 - sum(int(np.count_nonzero(mask)) for mask in pack.masks.values()) / total if total else 0.0


def pack_shown(pack: Pack) -> str:
    """HTML: a table without colours of its own, so it is as light or dark as the notebook.

    >>> from fewer.api import open_pack
    >>> "<td>weights removed</td><td>99.0%</td>" in pack_shown(open_pack("digits-3197"))
    True
    """
    tensors = pack.tensors().values()
    rows: list[tuple[str, Any]] = []
    for name, network in pack.networks.items():
        for item in network.inputs:
            shape = " x ".join(map(str, item.shape)) or "one number"
            rows.append((f"{item.name}, given to {name}", f"{shape}, {item.dtype}"))
    rows.append(("numbers kept", int(sum(np.count_nonzero(value) for value in tensors))))
    if pack.masks:
        rows.append(("weights removed", f"{removed(pack):.1%}"))
    rows.append(("stored as", ", ".join(sorted(set(pack.kinds.values()) - {"raw"})) or "raw"))
    figures = pack.settings.get("figures")
    for name, value in figures.items() if isinstance(figures, dict) else ():
        if isinstance(value, int | float) and math.isfinite(value):
            rows.append((str(name), value))
    title = f"{pack.settings.get('task', 'own')}: {', '.join(pack.networks)}"
    words = " ".join(str(word) for word in pack.settings.get("settings") or ())
    return shown(title, ["", ""], rows, [words] if words else [])
