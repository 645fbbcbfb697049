"""Recurrent layers and embeddings in packs: real loops, sparse at run time, and refused where they do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.packs.pack import load, write
from fewer.packs.program import Input, Node, PackError, Program
from fewer.packs.runtime.recurrent import sparse_recurrence
from fewer.packs.runtime.runtime import Network
from fewer.packs.trace.trace import trace


def layer(kind: str, time: int = 6, **options: object) -> tuple[nn.Module, Program, dict[str, np.ndarray]]:
    torch.manual_seed(0)
    module = getattr(nn, kind)(3, 5, batch_first=True, **options).eval()

    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = module

        def forward(self, x: Tensor) -> Tensor:
            return self.cells(x)[0]

    return First(), *trace(First(), [torch.randn(2, time, 3)])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_layer_is_one_operation_whatever_the_length(kind: str) -> None:
    programs = [layer(kind, time)[1] for time in (2, 50)]
    for program in programs:
        assert [node.op for node in program.nodes].count(kind.lower()) == 1 and len(program.nodes) == 3
    both = layer(kind, 5, num_layers=2, bidirectional=True)[1]
    assert [node.op for node in both.nodes].count(kind.lower()) == 4


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_an_lstm_with_a_projection_answers_as_torch_does() -> None:
    module, program, tensors = layer("LSTM", proj_size=2)
    x = torch.randn(4, 6, 3)
    with torch.no_grad():
        expected = module(x).numpy()
    for compiled in (True, False):
        assert np.abs(Network(program, tensors, compiled=compiled).predict(x.numpy()) - expected).max() < 1e-6


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_masks_of_embeddings_and_recurrent_matrices_stay_in_the_file_and_are_used(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    words, cells = nn.Embedding(40, 12), getattr(nn, kind)(12, 16)

    def predict(nets: nn.Module, tokens: Tensor) -> Tensor:
        return nets.cells(nets.words(tokens).transpose(0, 1))[0].mean(0)

    tokens = torch.randint(0, 40, (3, 9))
    program, tensors = trace(predict, {"tokens": tokens}, networks={"words": words, "cells": cells})
    lot = np.random.default_rng(0)
    names = ("words.weight", "cells.weight_ih_l0", "cells.weight_hh_l0")
    masks = {name: lot.random(tensors[name].shape) < 0.1 for name in names}
    dense, sparse = (write(tmp_path / f"{i}.pack", program, tensors, masks=m) for i, m in enumerate((None, masks)))
    assert sparse < 0.35 * dense
    pack = load(tmp_path / "1.pack")
    assert {name: mask.tolist() for name, mask in pack.masks.items()} == {n: m.tolist() for n, m in masks.items()}
    node = next(node for node in program.nodes if node.op == kind.lower())
    assert sparse_recurrence(node, pack.tensors()) is not None
    with torch.no_grad():
        words.weight.mul_(torch.from_numpy(masks[names[0]]))
        for name in names[1:]:
            getattr(cells, name.removeprefix("cells.")).mul_(torch.from_numpy(masks[name]))
        expected = cells(words(tokens).transpose(0, 1))[0].mean(0).numpy()
    assert np.abs(pack.predict(tokens.numpy()) - expected).max() < 1e-6


@pytest.mark.parametrize("values", ["float16", "int8"])
def test_embeddings_and_recurrent_matrices_can_be_rounded(values: str, tmp_path: Path) -> None:
    _, program, tensors = layer("GRU")
    write(tmp_path / "a.pack", program, tensors, values=values)
    pack = load(tmp_path / "a.pack")
    assert {pack.kinds[name] for name in tensors} == {values}
    x = np.random.default_rng(0).standard_normal((3, 6, 3)).astype(np.float32)
    distance = np.abs(pack.predict(x) - Network(program, tensors).predict(x)).max()
    assert 0 < distance < (1e-3 if values == "float16" else 5e-2)


def cell(op: str, shapes: list[tuple[int, ...]], x: tuple[int, ...] = (1, 4), **options: object) -> Network:
    tensors = {f"t{i}": np.zeros(shape, np.float32) for i, shape in enumerate(shapes)}
    turned = Node("permute", ("x",), "y", {"axes": [1, 0, 2]})
    node = Node(op, ("y", *tensors), "z", {"reverse": False, **options})
    back = Node("permute", ("z",), "a", {"axes": [1, 0, 2]})
    return Network(Program((Input("x", x),), (turned, node, back), ("a",)), tensors)


@pytest.mark.parametrize(
    "shapes",
    [
        [(9, 4), (9, 3), (9,), (8,)], [(9, 5), (9, 3), (9,), (9,)], [(9, 4), (9, 2), (9,), (9,)],
        [(8, 4), (8, 3), (8,), (8,)], [(9, 4), (9, 3), (9,), (9,), (1, 2)], [(9, 4, 1), (9, 3), (9,), (9,)],
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused_when_the_pack_is_opened(shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(PackError, match="gru of"):
        cell("gru", shapes)


def test_a_loop_longer_than_allowed_is_refused_before_it_runs() -> None:
    shapes = [(9, 4), (9, 3), (9,), (9,)]
    with pytest.raises(PackError, match="takes"):
        cell("gru", shapes, (1 << 22, 4))


@pytest.mark.parametrize(("op", "count", "options"), [("lstm", 16, {"answer": "all"}), ("rnn", 4, {"activation": "x"})])
def test_words_that_an_operation_does_not_know_are_refused(op: str, count: int, options: dict[str, str]) -> None:
    with pytest.raises(PackError, match="states or cell, tanh or relu"):
        cell(op, [(count, 4), (count, 4), (count,), (count,)], **options)


def test_a_packed_sequence_is_refused_with_a_way_round() -> None:
    cells = nn.GRU(3, 4)

    def predict(nets: nn.Module, x: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x.transpose(0, 1), torch.tensor([5, 5]), enforce_sorted=True)
        return nets.cells(packed)[1][0]

    with pytest.raises(UserError, match=r"packed sequence|torch.export"):
        trace(predict, [torch.randn(2, 5, 3)], networks={"cells": cells})
