"""The codes of masks and values: lossless on anything, the same in C and in Python, smaller than the entropy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewer.packs.file import codec

needs_compiler = pytest.mark.skipif(not codec.compiled(), reason="the C coder is not built")


def random_mask(rows: int, columns: int, density: float, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    # rows and columns differ in how much they keep, as in pruned networks
    odds = generator.normal(0, 2, (rows, 1)) + generator.normal(0, 2, (1, columns))
    scores = odds + generator.logistic(size=(rows, columns))
    keep = round(density * scores.size)
    mask = np.zeros(scores.size, dtype=bool)
    mask[np.argsort(-scores, axis=None)[:keep]] = True
    return mask.reshape(rows, columns)


masks = st.builds(
    random_mask,
    st.integers(0, 40),
    st.integers(0, 40),
    st.sampled_from([0.0, 0.01, 0.05, 0.5, 1.0]),
    st.integers(0, 99),
)


@settings(max_examples=60, deadline=None)
@given(masks)
def test_a_mask_comes_back(mask: np.ndarray) -> None:
    assert np.array_equal(codec.decode_mask(codec.encode_mask(mask), mask.shape), mask)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), max_size=300), st.sampled_from([(32, 10), (16, 8), (8, 7), (8, 8)]))
def test_words_come_back(words: list[int], widths: tuple[int, int]) -> None:
    width, modelled = widths
    given_words = np.array(words, dtype=np.uint32) & np.uint32(2**width - 1)
    code, tail = codec.encode_words(given_words, width=width, modelled=modelled)
    back = codec.decode_words(code, tail, count=len(words), width=width, modelled=modelled)
    assert np.array_equal(back, given_words)


@needs_compiler
@settings(max_examples=25, deadline=None)
@given(masks, st.binary(max_size=60))
def test_python_and_c_write_and_read_the_same_code(mask: np.ndarray, noise: bytes) -> None:
    words = np.random.default_rng(mask.size).integers(0, 2**32, 200, dtype=np.uint32) >> np.uint32(5)

    def results() -> list[object]:
        code, tail = codec.encode_words(words, width=32, modelled=10)
        read = codec.decode_words(noise, tail, count=len(words), width=32, modelled=10)
        return [codec.encode_mask(mask), codec.decode_mask(noise, mask.shape).tobytes(), code, tail, read.tobytes()]

    in_c, compiled = results(), codec._codec
    try:
        codec._codec = None
        in_python = results()
    finally:
        codec._codec = compiled
    assert in_c == in_python


def test_masks_with_structure_take_less_than_their_entropy() -> None:
    mask = random_mask(300, 400, 0.05, 0)
    density = mask.mean()
    entropy = -(density * np.log2(density) + (1 - density) * np.log2(1 - density)) * mask.size / 8
    assert len(codec.encode_mask(mask)) < 0.75 * entropy


def test_masks_without_structure_take_hardly_more_than_their_entropy() -> None:
    mask = np.random.default_rng(0).random((300, 400)) < 0.05
    density = mask.mean()
    entropy = -(density * np.log2(density) + (1 - density) * np.log2(1 - density)) * mask.size / 8
    assert len(codec.encode_mask(mask)) < 1.03 * entropy


def test_the_tables_are_far_from_rounding_ties_so_that_machines_agree() -> None:
    exact = 256 * np.log(codec._probability / (1 - codec._probability))
    assert np.abs(exact - np.floor(exact) - 0.5).min() > 1e-8
    squashed = 65536 / (1 + np.exp(-np.arange(-codec.LIMIT, codec.LIMIT + 1) / 256))
    assert np.abs(squashed - np.floor(squashed) - 0.5).min() > 1e-8


@needs_compiler
@pytest.mark.parametrize("arguments", [(b"12", 2, 2, True), (b"1", 2**20, 2**21, False)])
def test_c_refuses_sizes_that_disagree(arguments: tuple[bytes, int, int, bool]) -> None:
    data, rows, columns, writing = arguments
    with pytest.raises(ValueError, match="disagree"):
        codec._codec.mask(data, rows, columns, codec.STRETCH, codec.SQUASH, writing)  # type: ignore[union-attr]
