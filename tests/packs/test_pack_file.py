"""The file: the same bits back, shared masks, small rounding, and a clear error for anything that is not a pack."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fewer.core.errors import UserError
from fewer.core.files import atomic as whole
from fewer.packs.file import codec, container
from fewer.packs.images import planes
from fewer.packs.pack import PackError, decode, load, open_bytes, unpack, write
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime import chain, steps
from tests.packs.fuzz_pack import run, seeds

PROGRAM = Program((Input("x", (5,)),), (Node("linear", ("x", "w", "b"), "y"),), ("y",))


def parts(seed: int = 0, rows: int = 3) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        "w": generator.standard_normal((rows, 5)).astype(np.float32),
        "b": generator.standard_normal(rows).astype(np.float32),
    }


@settings(max_examples=60, deadline=None)
@given(arrays(np.uint32, (3, 5)), arrays(np.bool_, (3, 5)), st.booleans())
def test_unpacking_gives_the_same_bits_whatever_they_are(tmp_path_factory, bits, mask, masked) -> None:
    path = tmp_path_factory.mktemp("pack") / "a.pack"
    tensors = {"w": bits.view(np.float32), "b": np.array([np.nan, -0.0, 1e-45], np.float32)}
    write(path, PROGRAM, tensors, masks={"w": mask} if masked else None)
    kept = np.where(mask, bits, 0) if masked else bits
    back = unpack(path)
    assert np.array_equal(back["w"].view(np.uint32), kept)
    assert np.array_equal(back["b"].view(np.uint32), tensors["b"].view(np.uint32))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "int32", "float64"])
def test_tensors_of_other_types_come_back_too(tmp_path: Path, dtype: str) -> None:
    table = np.arange(6).reshape(2, 3).astype(dtype)
    write(tmp_path / "a.pack", PROGRAM, {**parts(), "table": table})
    back = unpack(tmp_path / "a.pack")["table"]
    assert back.dtype == table.dtype and np.array_equal(back, table)


def test_settings_and_several_networks_come_back(tmp_path: Path) -> None:
    tensors = {**parts(), "w2": parts(1)["w"]}
    second = Program((Input("x", (5,)),), (Node("linear", ("x", "w2"), "y"),), ("y",))
    wanted = {"task": "control", "seed": 3, "notes": ["a", {"b": 0.5}]}
    write(tmp_path / "a.pack", {"actor": PROGRAM, "critic": second}, tensors, settings=wanted)
    pack = load(tmp_path / "a.pack")
    x = np.ones((2, 5), np.float32)
    assert pack.settings == wanted and list(pack.networks) == ["actor", "critic"]
    assert np.allclose(pack.predict(x), x @ tensors["w"].T + tensors["b"], atol=1e-6)
    assert np.allclose(pack.networks["critic"].predict(x), x @ tensors["w2"].T, atol=1e-6)


def test_equal_masks_are_stored_once(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    mask = generator.random((200, 300)) < 0.05
    tensors = {name: generator.standard_normal((200, 300)).astype(np.float32) for name in ("w", "w2")}
    nodes = (Node("linear", ("x", "w"), "y"), Node("linear", ("x", "w2"), "z"), Node("add", ("y", "z"), "s"))
    program = Program((Input("x", (300,)),), nodes, ("s",))
    shared = write(tmp_path / "a.pack", program, tensors, masks={"w": mask, "w2": mask})
    other = generator.permuted(mask, axis=1)
    apart = write(tmp_path / "b.pack", program, tensors, masks={"w": mask, "w2": other})
    assert apart - shared > 1500
    assert np.array_equal(unpack(tmp_path / "a.pack")["w2"] != 0, mask)


def test_float16_rounds_layers_and_nothing_else(tmp_path: Path) -> None:
    program = Program(
        (Input("x", (5,)),), (Node("sub", ("x", "mean"), "a"), Node("linear", ("a", "w", "b"), "y")), ("y",)
    )
    tensors = {**parts(), "mean": np.full(5, 1 / 3, np.float32)}
    write(tmp_path / "a.pack", program, tensors, values="float16")
    back = unpack(tmp_path / "a.pack")
    assert np.array_equal(back["w"], tensors["w"].astype(np.float16).astype(np.float32))
    assert np.array_equal(back["mean"], tensors["mean"])


def test_int8_rounds_to_half_a_step_and_calibration_lowers_the_error(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    program = Program(
        (Input("x", (40,)),),
        (
            Node("linear", ("x", "w", "b"), "a"),
            Node("relu", ("a",), "c"),
            Node("linear", ("c", "w2", "b2"), "y"),
        ),
        ("y",),
    )
    tensors = {
        "w": generator.standard_normal((60, 40)), "b": generator.standard_normal(60),
        "w2": generator.standard_normal((4, 60)), "b2": generator.standard_normal(4),
    }  # fmt: skip
    tensors = {name: value.astype(np.float32) for name, value in tensors.items()}
    masks = {"w": generator.random((60, 40)) < 0.3, "w2": generator.random((4, 60)) < 0.5}
    x = (generator.standard_normal((1200, 40)) @ generator.standard_normal((40, 40))).astype(np.float32)
    write(tmp_path / "exact.pack", program, tensors, masks=masks)
    exact = load(tmp_path / "exact.pack").predict(x)
    errors = {}
    for name, calibration in {"plain": None, "calibrated": [x[:600]]}.items():
        write(tmp_path / "a.pack", program, tensors, masks=masks, values="int8", calibration=calibration)
        errors[name] = np.abs(load(tmp_path / "a.pack").predict(x[600:]) - exact[600:]).mean() / exact.std()
    assert errors["plain"] < 0.02
    assert errors["calibrated"] < 0.9 * errors["plain"]


def test_a_bias_takes_up_what_rounding_adds_on_average(tmp_path: Path) -> None:
    lot = np.random.default_rng(0)
    values = {"stride": [1], "padding": [0], "dilation": [1], "groups": 2, "transposed": False, "output_padding": [0]}
    program = Program((Input("x", (8, 5)),), (Node("conv", ("x", "w", "b"), "y", values),), ("y",))
    tensors = {"w": lot.standard_normal((6, 4, 1)).astype(np.float32), "b": np.zeros(6, np.float32)}
    x = 3 + lot.random((50, 8, 5)).astype(np.float32)
    write(tmp_path / "exact.pack", program, tensors)
    errors = {}
    for name, calibration in {"plain": None, "calibrated": [x]}.items():
        write(tmp_path / "a.pack", program, tensors, values="int8", calibration=calibration)
        change = load(tmp_path / "a.pack").predict(x) - load(tmp_path / "exact.pack").predict(x)
        errors[name] = np.abs(change.mean(axis=(0, 2))).max()
    assert errors["calibrated"] < 0.05 * errors["plain"]


def test_an_empty_network_of_a_million_weights_still_opens(tmp_path: Path) -> None:
    tensors = {"w": np.zeros((2000, 1000), np.float32), "b": np.zeros(2000, np.float32)}
    program = Program((Input("x", (1000,)),), (Node("linear", ("x", "w", "b"), "y"),), ("y",))
    length = write(tmp_path / "a.pack", program, tensors)
    assert length < 100_000
    assert not load(tmp_path / "a.pack").predict(np.ones(1000, np.float32)).any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"values": "float8"}, "float32, float16 or int8"),
        ({"masks": {"nobody": np.ones((3, 5))}}, "masks of tensors"),
        ({"masks": {"w": np.ones((5, 3))}}, "of its shape"),
        ({"settings": {"object": object()}}, "JSON"),
        ({"values": "int8", "calibration": [np.zeros((4, 6))]}, "a batch per input"),
    ],
)
def test_wrong_arguments_say_what_was_expected(tmp_path: Path, arguments: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        write(tmp_path / "a.pack", PROGRAM, parts(), **arguments)
    assert not list(tmp_path.iterdir())


def test_values_that_a_type_cannot_hold_are_refused(tmp_path: Path) -> None:
    for values, large in (("float16", 1e6), ("int8", np.nan), ("int8", 1e6)):
        tensors = {**parts(), "w": np.full((3, 5), large, np.float32)}
        with pytest.raises(UserError, match="float32"):
            write(tmp_path / "a.pack", PROGRAM, tensors, values=values)


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"none\.pack"):
        load(tmp_path / "none.pack")
    with pytest.raises(UserError, match="nowhere"):
        write(tmp_path / "nowhere" / "a.pack", PROGRAM, parts())


def test_every_truncation_and_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    data = seeds(tmp_path)[2]
    for length in range(0, len(data), 7):
        with pytest.raises(PackError):
            open_bytes(data[:length])
    for place in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(PackError):
            open_bytes(bytes(damaged))


def lying(data: bytes, change) -> bytes:
    """A pack whose header was changed and whose checksum is right."""
    size = container._FIXED.size
    packed = container._FIXED.unpack_from(data)[3]
    header = json.loads(zlib.decompress(data[size : size + packed]))
    change(header)
    text = json.dumps(header).encode()
    fresh = zlib.compress(text)
    body = struct.pack("<8sHHII", container.MAGIC, 1, 0, len(fresh), len(text)) + fresh
    body += data[size + packed : -container.DIGEST]
    return body + container.digest(body)


def test_sizes_that_lie_are_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    data = seeds(tmp_path)[0]
    lies = [
        lambda header: header["masks"][0].__setitem__(0, 10**10),
        lambda header: header["masks"][0].__setitem__(2, 10**10),
        lambda header: header["tensors"][0].__setitem__(1, [100_000, 100_000]),
        lambda header: header["tensors"][0].__setitem__(4, 10**9),
        lambda header: header["tensors"][-1].__setitem__(1, [1, 10**9]),
        lambda header: header["masks"].extend([[1000, 1000, 0]] * 5_000),
    ]
    tracemalloc.start()
    for lie in lies:
        with pytest.raises(PackError):
            decode(*open_bytes(lying(data, lie)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


def test_a_header_that_unfolds_too_far_or_nests_too_deep_is_refused() -> None:
    for text in (b"[" * 60_000 + b"]" * 60_000, b" " * 10_000_000 + b"{}", b"{}" + b" " * 90_000):
        packed = zlib.compress(text)
        body = struct.pack("<8sHHII", container.MAGIC, 1, 0, len(packed), min(len(text), 2**32 - 1)) + packed
        with pytest.raises(PackError):
            open_bytes(body + container.digest(body))


def test_a_newer_version_and_another_kind_of_file_are_named(tmp_path: Path) -> None:
    data = bytearray(seeds(tmp_path)[0])
    data[8] = 9
    with pytest.raises(PackError, match="version 9"):
        open_bytes(bytes(data))
    with pytest.raises(PackError, match="starts with"):
        open_bytes(b"PK\x03\x04" + bytes(100))


def test_a_program_outside_the_closed_list_is_refused(tmp_path: Path) -> None:
    data = seeds(tmp_path)[0]
    for change in (
        lambda header: header["networks"]["net"]["nodes"][0].__setitem__(0, "__import__"),
        lambda header: header["networks"]["net"]["nodes"][0].__setitem__(1, ["nobody", "b"]),
        lambda header: header["networks"]["net"]["nodes"][0][3].__setitem__("stride", ["1", 1]),
        lambda header: header["networks"]["net"]["nodes"].reverse(),
        lambda header: header["networks"].clear(),
    ):
        with pytest.raises(PackError):
            decode(*open_bytes(lying(data, change)))


def test_mutated_packs_open_or_are_refused() -> None:
    outcomes = run(2500, seed=3)
    assert outcomes["refused"] > 1500 and outcomes["opened"] > 100


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(whole.os, "replace", fail)
    with pytest.raises(UserError, match="disk full"):
        write(tmp_path / "a.pack", PROGRAM, parts())
    assert not list(tmp_path.iterdir())


def test_a_program_that_names_one_tensor_a_thousand_times_is_not_laid_out_a_thousand_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = np.random.default_rng(0).standard_normal((20, 20)).astype(np.float32)
    nodes = [Node("linear", ("x" if i == 0 else f"v{i - 1}", "w"), f"v{i}") for i in range(1000)]
    programs = {f"net{i}": Program((Input("x", (20,)),), tuple(nodes[:100]), ("v99", "v50")) for i in range(10)} | {
        "long": Program((Input("x", (20,)),), tuple(nodes), ("v999",))
    }
    write(tmp_path / "a.pack", programs, {"w": weight})
    laid_out = []

    def count(stages: list, shape: tuple[int, ...]) -> None:
        laid_out.append(sum(stage.weight.size for stage in stages))

    monkeypatch.setattr(steps, "compiled_chain", count)
    load(tmp_path / "a.pack")
    assert 0 < sum(laid_out) <= 8 * weight.size


def test_without_the_compiled_code_numpy_gives_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pack").write_bytes(seeds(tmp_path)[0])
    x = np.random.default_rng(0).standard_normal((70, 1, 8, 8)).astype(np.float32)
    compiled = load(tmp_path / "a.pack").predict(x)
    monkeypatch.setattr(chain, "_runtime", None)
    monkeypatch.setattr(planes, "_planes", None)
    monkeypatch.setattr(codec, "_codec", None)
    plain = load(tmp_path / "a.pack")
    assert [step.name for step in plain.networks["net"]._steps][:2] == ["conv", "relu"]
    assert np.abs(plain.predict(x) - compiled).max() < 1e-6
