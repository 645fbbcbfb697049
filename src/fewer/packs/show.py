"""How a pack shows itself in a notebook: what goes in, what is kept of each network, how well it did."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fewer.core.count import Count
from fewer.core.html_table import shown

if TYPE_CHECKING:
    from fewer.packs.runtime.runtime import Pack

__all__ = ["count", "pack_shown", "removed", "stored_as"]


def count(pack: Pack) -> Count:
    """Of all numbers of its networks, biases and normalisers included; the prunable ones are those under a mask."""
    named = [
        value.size
        for name, value in pack.tensors().items()
        if value.dtype == np.float32 and ("." in name or name in pack.masks)
    ]
    weights, prunable = sum(named), sum(mask.size for mask in pack.masks.values())
    gone = prunable - sum(int(np.count_nonzero(mask)) for mask in pack.masks.values())
    return Count(weights, weights - gone, prunable, prunable - gone)


def removed(pack: Pack) -> float:
    """Share of all its weights that pruning left out."""
    return 1.0 - count(pack).density


def stored_as(pack: Pack) -> str:
    """How most of its numbers are written: "float32", "float16" or "int8"; some may be exact beside them."""
    tensors, sizes = pack.tensors(), Counter[str]()
    for name, kind in pack.kinds.items():
        sizes[kind] += tensors[name].size if kind != "raw" else 0
    return max(sizes, key=lambda kind: sizes[kind], default="float32")


def pack_shown(pack: Pack) -> str:
    """HTML: a table without colours of its own, so it is as light or dark as the notebook.

    >>> from fewer.run.api import open_pack
    >>> "<td>weights removed</td><td>98.8%</td>" in pack_shown(open_pack("digits-3197"))
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
        rows.append(("of the prunable ones", f"{1 - count(pack).prunable_density:.1%}"))
    rows.append(("stored as", ", ".join(sorted(set(pack.kinds.values()) - {"raw"})) or "raw"))
    metrics = pack.settings.get("metrics")
    for name, value in metrics.items() if isinstance(metrics, dict) else ():
        if isinstance(value, int | float) and math.isfinite(value):
            rows.append((str(name), value))
    title = f"{pack.settings.get('task', 'own')}: {', '.join(pack.networks)}"
    words = " ".join(str(word) for word in pack.settings.get("settings") or ())
    return shown(title, ["", ""], rows, [words] if words else [])
