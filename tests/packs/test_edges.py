"""Programs, shapes and C at the very size where an answer changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fewer.core.errors import UserError
from fewer.packs import slower
from fewer.packs.export.c import _for_length, source
from fewer.packs.export.c_layers import unsigned
from fewer.packs.export.c_views import View, number
from fewer.packs.images.layout import Geometry
from fewer.packs.program import Input, Node, PackError, Program, Time
from fewer.packs.runtime.chain import Layer, Scale, _layout, fit, pruned, stage_of
from fewer.packs.runtime.runtime import Network, Pack
from fewer.packs.shapes import demand
from fewer.packs.shapes.demand import Allowance, shapes_of
from fewer.packs.shapes.layers import RULES
from fewer.packs.trace.length import _same

from .test_slower import CONVOLVES


@pytest.mark.parametrize(
    ("most", "kind"),
    [(0, "char"), (255, "char"), (256, "short"), (65_535, "short"), (65_536, "long")],
)
def test_whole_numbers_are_held_in_the_narrowest_type_that_takes_the_largest(most: int, kind: str) -> None:
    assert unsigned(np.array([0, most])) == f"unsigned {kind}"


def test_numbers_in_c_read_back_to_the_same_float() -> None:
    for value in (0.1, 3.0, -2.0, 1e-30, 16_777_216.0):
        text = number(value)
        assert text.endswith("f") and np.float32(float(text[:-1])) == np.float32(value) and set(text) & set(".e")
    assert [number(value) for value in (np.inf, -np.inf, 1e300, -1e300)] == ["INFINITY", "-INFINITY"] * 2


def test_a_place_in_c_names_the_axes_that_move_and_no_others() -> None:
    view = View("v", (2, 1, 3, 4), (6, 6, 1, 0), 5)
    assert view.at(["i", "j", "k", "l"]) == "v[i * 6 + k + 5]"
    assert view.without(0) == View("v", (1, 3, 4), (6, 1, 0), 5) == view.without(-4)
    assert View("v", (1,), (1,), 0).at(["i"]) == "v[0]"
    assert view.part(2, 1, None, 2) == View("v", (2, 1, 1, 4), (6, 6, 2, 0), 6)


def timed(most: int) -> Program:
    node = Node("add", ("x",), "y", {"right": 1.0})
    return Program((Input("x", (5, 2)),), (node,), ("y",), Time(("x",), most))


def test_a_c_file_says_which_lengths_it_takes_where_they_vary() -> None:
    begins, same = "/* net: {0} numbers in, {0} numbers out, one sample after another.", timed(8).nodes
    varied, fixed = _for_length(timed(8), 8), Program((Input("x", (5, 2)),), same, ("y",))
    said = begins.format("(2 * time)") + " time from 1 to 8; answers 0, or -1 for another. C99"
    assert source(varied, {}, "net").startswith(said)
    assert source(fixed, {}, "net").startswith(begins.format("10") + " C99")


@pytest.mark.parametrize(("numbers", "samples"), [(160, 8), (159, 4), (80, 4), (20, 1), (19, 0)])
def test_as_many_samples_are_taken_at_once_as_hold_their_numbers(numbers: int, samples: int) -> None:
    # a sample of five steps of two holds ten numbers and makes as many
    assert Network(timed(8), {}).samples_within(5, numbers, 8) == samples


@pytest.mark.parametrize("length", [0, -1, 9])
def test_a_length_that_the_c_file_could_not_take_is_refused(length: int) -> None:
    with pytest.raises(UserError, match=f"length {length}; expected from 1 to 8"):
        _for_length(timed(8), length)
    assert _for_length(timed(8), 8).inputs[0].shape == (8, 2) and _for_length(timed(8), 1).inputs[0].shape == (1, 2)


def test_an_attribute_holds_at_most_64_numbers() -> None:
    Node("permute", ("x",), "y", {"axes": list(range(64))})
    with pytest.raises(PackError):
        Node("permute", ("x",), "y", {"axes": list(range(65))})


def test_an_answer_that_no_node_makes_is_refused() -> None:
    with pytest.raises(PackError, match="'z' is never made"):
        Program((Input("x", (2,)),), (Node("relu", ("x",), "y"),), ("y", "z")).check(set())


def convolution(**changes: Any) -> Program:
    return Program((Input("x", (4, 6, 6)),), (Node("conv", ("x", "w"), "y", {**CONVOLVES, **changes}),), ("y",))


@pytest.mark.parametrize("wrong", [{"stride": [0, 1]}, {"dilation": [1, 0]}, {"stride": [1, -1]}])
def test_a_window_that_does_not_move_is_refused(wrong: dict[str, list[int]]) -> None:
    with pytest.raises(PackError, match="windows and steps of at least 1"):
        shapes_of(convolution(**wrong), {"w": (4, 4, 3, 3)}, 1, Allowance())


def test_a_transposed_convolution_has_as_many_channels_as_its_groups_have_together() -> None:
    program = convolution(transposed=True, groups=2)
    assert shapes_of(program, {"w": (4, 3, 3, 3)}, 1, Allowance())["y"][:2] == (1, 6)
    with pytest.raises(PackError, match="channels that fit"):
        shapes_of(convolution(transposed=True, groups=3), {"w": (4, 3, 3, 3)}, 1, Allowance())


def test_a_row_of_any_shape_goes_through_a_matrix() -> None:
    program = Program((Input("x", (7, 3)),), (Node("linear", ("x", "w"), "y"),), ("y",))
    assert shapes_of(program, {"w": (5, 3)}, 2, Allowance())["y"] == (2, 7, 5)


@pytest.mark.parametrize(("batch", "cure"), [(1, "if you know its maker"), (2, "give it fewer samples")])
def test_too_much_for_several_samples_is_cured_by_fewer_of_them(batch: int, cure: str) -> None:
    with pytest.raises(PackError, match=cure):
        Allowance(10, 10, 10).check(11 * batch, 0, batch)


def test_a_pool_holds_its_padded_image_of_every_channel() -> None:
    options = {"kernel": [2, 2], "stride": [2, 2], "padding": [1, 1], "dilation": [1, 1], "ceil": False}
    numbers, work = demand._pool([(3, 5, 4, 8)], (3, 5, 3, 5), options)
    assert numbers == 3 * 5 * 6 * 10 and work == numbers + 3 * 5 * 15 * 4 * 4


def test_a_recurrent_layer_holds_its_steps_and_costs_them_one_by_one() -> None:
    numbers, work = demand._recurrent([(5, 2, 3), (8, 3), (8, 4)], (5, 2, 4), {})  # five steps of two samples
    assert numbers == 5 * 2 * (8 + 4 + 3) + 8 * 2 * 8
    assert work == 5 * (16 * demand._CALL + 2 * 8 * (3 + 2 * 4 + demand._SLOW))


def test_a_crop_may_take_all_that_is_there_and_no_more() -> None:
    assert RULES["pad"]((2, 3), widths=[-1, -2], mode="constant", value=0.0) == (2, 0)
    with pytest.raises(ValueError, match="a crop that leaves something"):
        RULES["pad"]((2, 3), widths=[-2, -2], mode="constant", value=0.0)


def test_answers_at_another_length_agree_to_a_share_of_the_largest_and_whole_numbers_to_the_last() -> None:
    for size in (1e-3, 1.0, 1e6):
        largest, wrong = np.array([size, 0], np.float32), np.array([0, size], np.float32)
        assert _same(largest, largest + wrong * 5e-5) and not _same(largest, largest + wrong * 5e-4)
    assert _same(np.array([np.inf, 1.0]), np.array([np.inf, 1.0]))
    assert not _same(np.array([10**6]), np.array([10**6 + 1])) and not _same(np.ones(2), np.ones((1, 2)))


def test_no_samples_are_answered_with_no_answers() -> None:
    assert Network(timed(8), {}).predict(np.zeros((0, 3, 2))).shape == (0, 3, 2)


@pytest.mark.parametrize(("groups", "kind"), [(1, "conv"), (2, slower._SEPARABLE)])
def test_a_pack_is_slower_beyond_the_density_that_was_measured_of_its_kind(groups: int, kind: str) -> None:
    break_even = slower._BREAK_EVEN[kind]
    for density, slow in ((break_even - 0.01, False), (break_even + 0.01, True)):
        weight = np.zeros(4 * (4 // groups) * 3 * 3 * 100, np.float32)
        weight[: round(density * len(weight))] = 1
        pack = Pack({"net": convolution(groups=groups)}, {"w": weight.reshape(400, 4 // groups, 3, 3)})
        assert slow == slower.slower_than_dense(pack).startswith("may be slower")


@pytest.mark.parametrize("sizes", [(1, 1, 5), (1, 3, 4), (2, 3, 4)])
@pytest.mark.parametrize("images", [1, 3])
def test_holes_are_all_places_between_images_and_rows_and_no_others(sizes: Any, images: int) -> None:
    geometry = Geometry(tuple(n + 2 for n in sizes), (1, 1, 1), images)  # type: ignore[arg-type]
    found = {int(first) + i for first, length in geometry.holes(sizes) for i in range(length)}
    steps = geometry.steps
    inside = {
        image * geometry.image + sum(n * step for n, step in zip(place, steps))
        for image in range(images)
        for place in np.ndindex(*sizes)
    }
    assert found == set(range(max(inside) + 1)) - inside


def test_units_that_nothing_feeds_add_what_they_say_through_a_scale() -> None:
    random = np.random.default_rng(0)
    first = random.standard_normal((4, 3)).astype(np.float32)
    first[1] = 0
    centre, factor, shift = (random.standard_normal(4).astype(np.float32) for _ in range(3))
    stages = [
        Layer(first, np.arange(4, dtype=np.float32)), Scale(centre, factor, shift),
        Layer(random.standard_normal((2, 4)).astype(np.float32), np.zeros(2, np.float32)),
    ]  # fmt: skip

    def through(parts: list[Any], x: Any) -> Any:
        for part in parts:
            x = (
                x @ part.weight.T + part.bias
                if isinstance(part, Layer)
                else (x - part.centre) * part.factor + part.shift
            )
        return x

    x, small = random.standard_normal((5, 3)).astype(np.float32), pruned(stages)
    assert small[0].width == 3 and np.allclose(through(small, x), through(stages, x), atol=1e-5)


@pytest.mark.parametrize(
    ("lanes", "skips", "most"),
    [(8, False, 13), (8, True, 26), (16, False, 53)],  # 8 inputs of 16 outputs are 16 vectors of eight, or 8 of sixteen
)
def test_kept_weights_are_taken_one_by_one_while_they_cost_less_than_all(lanes: int, skips: bool, most: int) -> None:
    for kept in (most, most + 1):
        weight = (np.arange(16 * 8) < kept).astype(np.float32).reshape(16, 8)
        dense = _layout(Layer(weight, np.zeros(16, np.float32)), lanes, skips=skips)[2]
        assert dense == (kept > most)


def test_stages_fit_where_each_takes_what_the_one_before_makes() -> None:
    layer, three, four = Layer(np.ones((2, 3), np.float32), np.zeros(2, np.float32)), np.ones(3), np.ones(4)
    assert fit([Scale(shift=three), layer, Scale()], 3) and fit([layer, Scale(centre=np.ones(2))], 3)
    assert not fit([layer], 4) and not fit([replace(layer, bias=np.zeros(3, np.float32))], 3)
    assert not fit([Scale(shift=four), layer], 3) and not fit([layer, layer], 3)


def test_a_sign_turned_is_a_stage_of_a_chain_and_a_sum_along_an_axis_is_none() -> None:
    stage = stage_of(Node("neg", ("x",), "y"), {})
    assert isinstance(stage, Scale) and stage.factor.tolist() == [-1]
    assert stage_of(Node("sum", ("x",), "y", {"axes": [1], "keep": False}), {}) is None
