"""Deeper and wider networks: what added layers and added neurons do to a hardened network, beside Table I's family.

The paper says that either yields better accuracy on attacked images. `deep` follows each convolution by a second one,
`wide` doubles the hidden layer; all train by the cured recipe, of which the capacity tables hold the plain networks.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from fewer.studies.order import Order
from fewer.studies.study import Result
from fewer.systems.vision.studies.capacity import capacity_pieces, missing, percent
from fewer.systems.vision.studies.measure import counts
from fewer.systems.vision.studies.pieces import run_piece
from fewer.systems.vision.studies.place import data_in_words, expect_pieces, where
from fewer.systems.vision.studies.recipe import DENSE, Recipe
from fewer.systems.vision.task.networks import NETWORKS

__all__ = ["CLASSES", "SHAPE", "deeper", "table1", "variant_pieces"]

KINDS = ("", "-deep", "-wide")
PRINTED = ("5590", "20k", "80k", "320k", "1.2m", "4.8m")  # Table I, parameters in all
SHAPE, CLASSES = (1, 28, 28), 10


def variant_pieces(scale: str) -> dict[str, Recipe]:
    """The cured recipe on every kind of network: scales 0 to 2, or when quick scale 0 alone."""
    family = capacity_pieces("pgd", "quick" if scale == "quick" else "full")
    found = {}
    for number in (0,) if scale == "quick" else (0, 1, 2):
        plain = dataclasses.replace(family[f"cured-pgd-cnn{number}"], prunings=(DENSE,))
        for kind in KINDS:
            network, name = f"cnn{number}{kind}", f"cured-pgd-cnn{number}{kind}"
            found[name] = dataclasses.replace(plain, name=name, network=network) if kind else plain
    return found


def deeper(order: Order) -> Result:
    """Clean and attacked accuracy of plain, deeper and wider networks."""
    place, pieces = where(order), variant_pieces(order.scale)
    details = {name: rows for name, piece in pieces.items() if (rows := run_piece(piece, place))}
    expect_pieces(details, place)
    table: list[list[Any]] = [
        [int(pieces[name].network[3]), pieces[name].network[5:] or "plain", found[0]["weights"], len(found)]
        + [percent(found, key) for key in ("clean", "fgsm", "pgd40")]
        for name, found in details.items()
    ]
    return Result(
        title=f"Deeper and wider networks, hardened by the cured recipe, {data_in_words(order)}, eps 0.3; accuracy in "
        "percent, mean ± deviation over seeds",
        columns=["scale", "network", "weights", "seeds", "clean", "FGSM", "PGD-40"],
        rows=table,
        notes=[
            "deep: each convolution followed by a second one of its size. wide: twice the hidden layer. The paper "
            "claims that both help and prints no such row.",
            *missing(pieces, details),
        ],
        details=details,
    )


def table1(order: Order) -> Result:
    """Filters, neurons and parameters of the six scales, counted, beside the paper's numbers."""
    rows: list[list[Any]] = []
    for number, printed in enumerate(PRINTED):
        net = NETWORKS[f"cnn{number}"](SHAPE, CLASSES)
        found = counts({"net": net}, {})
        first, second = (net.get_parameter(f"body.conv{index}.weight").shape[0] for index in (1, 2))
        hidden, flat = net.get_parameter("body.hidden.weight").shape
        weights = found["weights"]
        rows.append([number, first, second, flat, hidden, weights, weights + found["biases"], printed])
    return Result(
        title="Table I: the capacity family, 28 x 28 grey images, ten classes",
        columns=[
            "scale", "filters, conv 1", "filters, conv 2", "neurons in FC (flattened)", "hidden", "weights",
            "with biases", "paper, parameters",
        ],
        rows=rows,
        notes=[
            "Two 3 x 3 convolutions without padding, each followed by a pooling of 2, then one hidden layer. The "
            "paper's neurons in FC are the flattened width: no other reading in round sizes has 5,590 weights.",
        ],
        details={},
    )  # fmt: skip
