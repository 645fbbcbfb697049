"""What is said about the speed of a pack before anybody waits for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fewer.packs.pack import load
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime.runtime import Pack
from fewer.packs.slower import _ATTENDING, _BREAK_EVEN, _SEPARABLE, kept_work, slower_than_dense
from fewer.zoo import path

CONVOLVES = {
    "stride": [2, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "transposed": False, "output_padding": [0, 0]
}  # fmt: skip


def test_work_counts_a_kernel_for_every_place_and_a_matrix_for_every_row() -> None:
    kernel, matrix = np.ones((4, 3, 3, 3), np.float32), np.ones((5, 6), np.float32)
    kernel[:2] = 0
    nodes = (
        Node("conv", ("x", "k"), "a", CONVOLVES),
        Node("reshape", ("a",), "b", {"shape": ["batch", 12, 6]}),
        Node("linear", ("b", "m"), "c"),
    )
    program = Program((Input("x", (3, 6, 6)),), nodes, ("c",))
    found = kept_work(program, {"k": kernel, "m": matrix})
    assert found == {"conv": (2 * 27 * 18, 4 * 27 * 18), "linear": (30 * 12, 30 * 12)}


@pytest.mark.parametrize(("density", "slow"), [(0.1, False), (0.9, True)])
def test_a_pack_that_keeps_most_weights_is_said_to_be_slower(density: float, slow: bool) -> None:
    weight = (np.random.default_rng(0).random((16, 16, 3, 3)) < density).astype(np.float32)
    program = Program((Input("x", (16, 6, 6)),), (Node("conv", ("x", "w"), "y", CONVOLVES),), ("y",))
    assert ("slower" in slower_than_dense(Pack({"net": program}, {"w": weight}))) == slow


def test_layers_alone_are_never_said_to_be_slower() -> None:
    program = Program((Input("x", (64,)),), (Node("linear", ("x", "w"), "y"),), ("y",))
    assert slower_than_dense(Pack({"net": program}, {"w": np.ones((64, 64), np.float32)})) == ""


def test_shipped_packs_that_are_pruned_are_not_said_to_be_slower() -> None:
    assert slower_than_dense(load(path("digits-9348"))) == ""
    assert "slower" in slower_than_dense(load(path("digits-dense")))


@pytest.mark.parametrize(
    ("kind", "networks"),
    [("conv", ("ResNet-18", "VGG-16", "digit CNN")), (_SEPARABLE, ("MobileNet",)), (_ATTENDING, ("transformer",))],
)
def test_no_pack_is_promised_to_be_faster_at_a_density_at_which_it_was_measured_to_be_slower(
    kind: str, networks: tuple[str, ...]
) -> None:
    record = json.loads((Path(__file__).parents[2] / "results/bench-speed.json").read_text())
    measured = [one["break_even"] for one in record["curves"] if one["name"].startswith(networks)]
    assert len(measured) == 3 * len(networks) and _BREAK_EVEN[kind] <= min(measured)
