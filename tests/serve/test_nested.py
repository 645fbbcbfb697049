"""JSON read straight into arrays says what Python's own parser says, and writing is its inverse."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewer.serve.fields import Deadline, RequestField
from fewer.serve.limits import Refusal
from fewer.serve.reading import nested
from fewer.serve.reading.nested import read_json
from fewer.serve.written import write_json

ENDLESS = Deadline.after(math.inf)
SHAPES = [(), (3,), (2, 3), (2, 1, 2)]


def read(body: bytes, *fields: RequestField, most_samples: int = 5) -> dict[str, Any]:
    return read_json(body, fields, most_samples=most_samples, deadline=ENDLESS)


@given(st.data())
def test_numbers_are_those_of_pythons_parser(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    whole = (data.draw(st.integers(1, 5)), *shape) if data.draw(st.booleans()) else shape
    kind = data.draw(st.sampled_from(["float32", "float64", "int64", "int8"]))
    number = st.integers(-128, 127) if kind.startswith("int") else st.floats(-1e30, 1e30)
    values = data.draw(st.lists(number, min_size=math.prod(whole), max_size=math.prod(whole)))
    expected = np.array(values, dtype=kind).reshape(whole)
    said = {"x": np.array(values, dtype=object).reshape(whole).tolist()}
    separators = data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", ":")]))
    text = json.dumps(said, indent=data.draw(st.sampled_from([None, None, 0, 2])), separators=separators)
    piece = nested._PIECE
    nested._PIECE = data.draw(st.sampled_from([1, 7, 20, piece]))
    try:
        found = read(text.encode(), RequestField("x", shape, kind))["x"]
    finally:
        nested._PIECE = piece
    assert found.dtype == expected.dtype and found.shape == expected.shape and np.array_equal(found, expected)


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize("piece", [4, 8, 1 << 14])
@pytest.mark.parametrize(
    "rows",
    [
        "[[1,2],[3,4],[5,6]]",
        "[[1,2],7,[3,4]]",
        "[[1,2]7,[3,4]]",
        "[[1,2],7[3,4]]",
        "[[1,]2,[3,4]]",
        "[[1,2],[3],[4,5,6]]",
        "[[1,2],,[3,4]]",
        "[[1,2],[3,4],]",
        "[[1,2],[3 4]]",
        "[[1,2],[3,[4]]]",
        "[[1,2],[3,04]]",
        '[[1,2],[3,"4"]]',
        "[[1,2],[3,null]]",
        "[[1,2],[3,4]",
    ],
)
def test_lists_that_are_read_together_are_those_of_pythons_parser(
    rows: str, piece: int, blank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nested, "_PIECE", piece)
    text = f'{{"x":{rows.replace("],", "]," + blank)}}}' + " " * (1 << 14)
    try:
        expected = np.array(json.loads(text)["x"], dtype=np.float32)
        fits = expected.shape[1:] == (2,) and bool(np.isfinite(expected).all()) and '"' not in rows
    except ValueError:
        fits = False
    if fits:
        assert np.array_equal(read(text.encode(), RequestField("x", (2,), "float32"))["x"], expected)
        return
    with pytest.raises(Refusal):
        read(text.encode(), RequestField("x", (2,), "float32"))


PIECES = st.sampled_from([*'{}[],:" ', '"x"', '"y"', '{"x":', "1", "-2.5", "1e999", "null", "true", "NaN"])


@given(st.lists(PIECES, max_size=14).map("".join), st.sampled_from(SHAPES), st.booleans())
def test_nothing_but_json_of_the_right_shape_is_read(text: str, shape: tuple[int, ...], gaps: bool) -> None:
    try:
        found = read(text.encode(), RequestField("x", shape, "float64", gaps=gaps))
    except Refusal as refusal:
        assert refusal.status in (400, 413, 422) and "\n" not in refusal.reason
        return
    expected = np.array(json.loads(text)["x"], dtype=float)  # null becomes NaN
    assert np.array_equal(found["x"], expected, equal_nan=True)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"x": [1, 2, 3,]}', 422),
        (b'{"x": [1, 2,]}', 400),
        (b'{"x": [1,, 3]}', 400),
        (b'{"x": [1, 2 3, 4]}', 400),
        (b'{"x": [1, 2, 3]} {}', 400),
        (b'{"x": [1, 2, 3]', 400),
        (b'{"x": [1, 2, 3], }', 400),
        (b'{"x": [1, 2, 3], "x": [1, 2, 3]}', 400),
        (b'{"x": [1, 2, "]"]}', 422),
        (b'{"x": [1, 2, true]}', 422),
        (b'{"x": [1, 2, 03]}', 400),
        (b'{"x": {"y": 1}}', 422),
        (b'{"x": ""}', 422),
        (b'{"x": [[1, 2, 3]' + b", [1, 2, 3]" * 5 + b"]}", 413),
        (b"{}", 422),
        (b"", 400),
        (b"3", 422),
    ],
)
def test_each_mistake_has_its_status(body: bytes, status: int) -> None:
    with pytest.raises(Refusal) as caught:
        read(body, RequestField("x", (3,), "float32"))
    assert caught.value.status == status, caught.value.reason


def test_a_field_may_be_left_out_if_it_is_said_so() -> None:
    fields = RequestField("x", (), "float32"), RequestField("y", (), "float32", optional=True)
    assert read(b'{"x": 1}', *fields).keys() == {"x"} and read(b'{"y": 2, "x": 1}', *fields).keys() == {"x", "y"}
    with pytest.raises(Refusal, match=r"expected x, y .may be left out."):
        read(b'{"y": 1}', *fields)


@given(st.sampled_from([(), (3,), (3000,), (2, 3000), (70, 40), (3, 0)]), st.booleans())
def test_an_answer_is_written_as_pythons_writer_would(shape: tuple[int, ...], strange: bool) -> None:
    numbers = np.asarray(np.arange(math.prod(shape), dtype=np.float64).reshape(shape) / 7)
    expected = numbers.astype(object)
    if strange and numbers.size:
        numbers[(0,) * len(shape)], expected[(0,) * len(shape)] = np.nan, None
    objects = [{"a": count, "b": [None, 0.5]} for count in range(40)]
    said = write_json({"numbers": numbers, "one": np.float32(0.5), "objects": objects, "none": []}, ENDLESS)
    assert json.loads(said) == {"numbers": expected.tolist(), "one": 0.5, "objects": objects, "none": []}
