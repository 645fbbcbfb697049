"""The paper's trainings, each under one name in the words of `fewer train`; the studies train with the same words.

The paper's pruning rate and its percentages do not fit each other: 30 % a round leaves 0.08 % of the weights after 20
rounds, where it prints 0.2 %. `paper-lottery` takes the rate (with the 410 biases that are never pruned counted, 0.23 %
of all parameters are left then, and its other percentages come out too), `paper-lottery-percent` takes 0.2 % of the
weights. Its network is 784-300-100-100-10 in words (`paper-lottery-text`), 784-300-100-10 by its percentages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["PRESETS"]

_CAPACITY = {  # 50 epochs of 60,000 images
    "steps": 23_438, "batch": 128, "optimizer": "sgd,lr=0.001,momentum=0.9,warmup=0,decay_from=1",
}  # fmt: skip
_MLP = {"initial": "xavier", "validation": 0.0}
_ROUND = {  # 12 epochs of 60,000 images; batch and optimiser of the code that the percentages point to
    "settings": {**_MLP, "network": "mlp"},
    "steps": 12_000, "batch": 60, "optimizer": "adam,lr=0.0012,weight_decay=0.0001,warmup=0,decay_from=1",
    "prune": "lottery,scope=layer,rate=0.3", "sparsity": 0.9992020773,
}  # fmt: skip
_FGSM = "fgsm:0.3,mix=0.5,ramp=0"

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {**_CAPACITY, "settings": {"network": "cnn3", "validation": 0.0}, "harden": "paper:0.3"},
    **{
        f"paper-{name}-cnn{scale}": {
            **_CAPACITY,
            "settings": {"network": f"cnn{scale}", "validation": 0.0}, **({"harden": text} if text else {}),
        }
        for name, text in (("standard", ""), ("fgsm", "paper-fgsm:0.3"), ("pgd", "paper:0.3"))
        for scale in range(6)
    },
    "paper-lottery": _ROUND,
    "paper-lottery-fgsm": {**_ROUND, "harden": _FGSM},
    "paper-lottery-percent": {**_ROUND, "prune": "lottery,scope=layer,rate=0.2671", "sparsity": 0.998},
    "paper-lottery-text": {**_ROUND, "settings": {**_MLP, "network": "mlp3"}},
}  # fmt: skip
