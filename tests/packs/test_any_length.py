"""Sequences of any length: one program answers as torch does at lengths that it was not traced with, in every form."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.packs.export.c import export
from fewer.packs.export.onnx import model
from fewer.packs.pack import load, write
from fewer.packs.program import Input, Node, PackError, Program, Time
from fewer.packs.runtime.runtime import Network
from fewer.packs.trace.trace import trace

torch.set_num_threads(1)
LENGTHS, MOST = (1, 2, 5, 11), 12


class Cells(nn.Module):
    """Two layers in both directions, and the mean over time beside the last state."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cells = getattr(nn, kind)(3, 4, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        states = self.cells(x)[0]
        answer: Tensor = self.head(states[:, -1] + states.mean(1))
        return answer


class Encoder(nn.Module):
    """Tokens with learnt places, of which there are twelve, and a mask of the same length."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.head = nn.Embedding(9, 8), nn.Parameter(torch.randn(MOST, 8)), nn.Linear(8, 2)
        self.block = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)

    def forward(self, tokens: Tensor, weights: Tensor) -> Tensor:
        seen = self.block(self.words(tokens) + self.places[: tokens.shape[1]])
        answer: Tensor = self.head(seen * weights.unsqueeze(-1))
        return answer


class Causal(nn.Module):
    """Every step sees those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.three = nn.Embedding(9, 8), nn.Linear(8, 24)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self.three(self.words(tokens)).chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def made(name: str, length: int = 7) -> tuple[nn.Module, list[Tensor]]:
    torch.manual_seed(0)
    tokens = torch.randint(0, 9, (2, length))
    if name == "encoder":
        return Encoder().eval(), [tokens, torch.rand(2, length)]
    if name == "causal":
        return Causal().eval(), [tokens]
    return Cells(name).eval(), [torch.randn(2, length, 3)]


def answer(module: nn.Module, inputs: list[Tensor]) -> np.ndarray:
    with torch.no_grad():
        return module(*inputs).numpy()


def in_c(pack_path: Path, length: int) -> ctypes.CDLL:
    export(load(pack_path), pack_path.with_suffix(".c"), "net", length=length)
    library = pack_path.with_suffix(".so")
    words = ["gcc", "-std=c99", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*words, str(pack_path.with_suffix(".c")), "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM", "encoder", "causal"])
def test_the_runtime_onnx_and_c_answer_at_any_length(name: str, tmp_path: Path) -> None:
    module, example = made(name)
    program, tensors = trace(module, example, any_length=True)
    assert program.time == Time(tuple(item.name for item in program.inputs), MOST if name == "encoder" else None)
    write(tmp_path / "net.pack", program, tensors)
    pack, library = load(tmp_path / "net.pack"), in_c(tmp_path / "net.pack", MOST)
    assert pack.networks["net"].program == program
    session = onnxruntime.InferenceSession(model(program, tensors).SerializeToString())
    for length in LENGTHS:
        given = [x.numpy() for x in made(name, length)[1]]
        expected = answer(module, list(map(torch.from_numpy, given)))
        names = [item.name for item in program.inputs]
        in_onnx = session.run(None, dict(zip(names, given)))[0]
        numbers = np.concatenate([x.astype(np.float32).reshape(2, -1) for x in given], axis=1)
        found = np.zeros_like(expected)
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (numbers, found)]
        assert library.net_batch(*pointers, 2, length) == 0
        for form in (pack.predict(*given), Network(program, tensors, compiled=False).predict(*given), in_onnx, found):
            assert form.shape == expected.shape and np.abs(form - expected).max() < 1e-5
    assert library.net_batch(*pointers, 2, MOST + 1) == library.net_batch(*pointers, 2, 0) == -1


def test_a_length_beyond_the_table_of_places_and_lengths_that_differ_are_one_line() -> None:
    module, example = made("encoder")
    network = Network(*trace(module, example, any_length=True))
    with pytest.raises(UserError, match=r"expected \(time,\) or \(samples, time\) of at most 12 steps"):
        network.predict(*(x.repeat(1, 2).numpy() for x in example))
    with pytest.raises(UserError, match="x0 of 5, x1 of 7 steps"):
        network.predict(example[0][:, :5].numpy(), example[1].numpy())


class Fixed(nn.Module):
    """All steps at once into one layer: no other length will do."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(7 * 4, 2)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(self.cells(x)[0].flatten(1))
        return answer


def test_what_has_only_one_length_keeps_it() -> None:
    program, tensors = trace(Fixed().eval(), [torch.randn(2, 7, 3)], any_length=True)
    assert program.time is None
    with pytest.raises(UserError, match=r"x of shape \(2, 6, 3\)"):
        Network(program, tensors).predict(np.zeros((2, 6, 3)))


class Rolled(nn.Module):
    """Every step beside the one before it, of the first the last: written with the length in it."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        seen = self.words(tokens)
        return seen + torch.roll(seen, 1, 1)


def test_what_c_and_onnx_cannot_write_for_any_length_they_write_for_one(tmp_path: Path) -> None:
    tokens = torch.tensor([[1, 5, 2, 7], [3, 3, 8, 0]])
    module = Rolled().eval()
    program, tensors = trace(module, [tokens], any_length=True)
    assert program.time == Time(("x",))
    write(tmp_path / "net.pack", program, tensors)
    given = tokens.repeat(1, 2)[:, :6]
    assert np.abs(load(tmp_path / "net.pack").predict(given.numpy()) - answer(module, [given])).max() < 1e-6
    numbers, found = given.numpy().astype(np.float32), np.zeros((2, 6, 4), np.float32)
    in_c(tmp_path / "net.pack", 6).net_batch(*(x.ctypes.data_as(ctypes.c_void_p) for x in (numbers, found)), 2)
    assert np.abs(found - answer(module, [given])).max() < 1e-6
    session = onnxruntime.InferenceSession(model(program, tensors).SerializeToString())
    assert session.get_inputs()[0].shape == ["batch", 4]
    assert np.abs(session.run(None, {"x": tokens.numpy()})[0] - answer(module, [tokens])).max() < 1e-6


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (Time(("z",)), "inputs of one length"), (Time(()), "inputs of one length"), (Time(("x",), 0), "longest"),
        (Time(("x", "y")), "inputs of one length"), (None, "length that varies"),
    ],
)  # fmt: skip
def test_a_file_with_lengths_that_make_no_sense_is_refused(time: Time | None, said: str) -> None:
    inputs = (Input("x", (3, 2)), Input("y", (4,)))
    nodes = (Node("reshape", ("x",), "z", {"shape": ["batch", "2*time"]}),)
    with pytest.raises(PackError, match=said):
        Program.from_json(Program(inputs, nodes, ("z",), time).to_json())


def test_a_length_for_c_is_within_what_the_pack_takes(tmp_path: Path) -> None:
    for name, length, said in (("encoder", 13, "from 1 to 12"), ("RNN", 0, "at least 1")):
        write(tmp_path / "net.pack", *trace(*made(name), any_length=True))
        with pytest.raises(UserError, match=said):
            export(load(tmp_path / "net.pack"), tmp_path / "net.c", "net", length=length)
    write(tmp_path / "net.pack", *trace(*made("RNN")))
    with pytest.raises(UserError, match="fixed size"):
        export(load(tmp_path / "net.pack"), tmp_path / "net.c", "net", length=3)
