"""The paper's training under one name, and other readings of it, in the words of `fewer train`.

Algorithm 1 copies the first critic into the second, which makes them equal for ever; Section 4 says that nothing within
the objective of BCQ is changed, and that objective has two critics of their own. Both readings have a name. The
optimiser, its constant rate, the batch and the widths are those of the implementations that the paper cites.
"""

from typing import Any

__all__ = ["PRESETS"]

_TRAINING = {"steps": 1_000_000, "batch": 100, "optimizer": "adam,lr=1e-3", "seeds": "0-4"}
_LITERAL = {"normalise": False, "transitions": 1_000_000, "episodes": 10}

PRESETS: dict[str, dict[str, Any]] = {
    # BCQ by Algorithm 1 to the letter
    "paper": {**_TRAINING, "settings": {**_LITERAL, "algorithm": "bcq", "twin": "copy"}},
    # BCQ as its authors have it: twin critics of their own, 100 candidates when it acts
    "paper-twins": {**_TRAINING, "settings": {**_LITERAL, "algorithm": "bcq", "twin": "own", "candidates": 100}},
    # BC as implemented by those whom the paper cites: the decoder with a drawn latent variable
    "paper-bc": {**_TRAINING, "settings": {**_LITERAL, "algorithm": "bc", "sampled": True}},
}
