"""Chains in C against plain float64 numpy: every density, size and batch, on every kind of kernel."""

from __future__ import annotations

import itertools
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fewer.core.errors import UserError
from fewer.packs.program import Input, Node, Program
from fewer.packs.runtime import chain
from fewer.packs.runtime.runtime import Network

ACTIVATIONS = {
    "relu": {}, "tanh": {}, "sigmoid": {}, "abs": {}, "neg": {}, "leaky_relu": {"slope": 0.1},
    "elu": {"alpha": 1.6732632, "scale": 1.0507010, "input_scale": 1.0}, "gelu": {"approximate": "none"},
    "clamp": {"minimum": -0.5, "maximum": 0.25},
}  # fmt: skip
KERNELS = ("avx512", "avx2", "portable")


def network(
    sizes: list[int], density: float, activations: list[str], seed: int
) -> tuple[Program, dict[str, np.ndarray]]:
    """Layers with activations between them, and a normaliser in front."""
    generator = np.random.default_rng(seed)
    tensors = {"mean": generator.normal(size=sizes[0]), "deviation": generator.uniform(0.5, 2, sizes[0])}
    nodes = [Node("sub", ("x", "mean"), "c"), Node("div", ("c", "deviation"), "v0")]
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        keep = generator.random((outputs, inputs)) < density
        tensors[f"w{layer}"] = generator.normal(size=keep.shape) / np.sqrt(max(1, density * inputs)) * keep
        tensors[f"b{layer}"] = generator.normal(size=outputs)
        name = activations[layer % len(activations)]
        nodes.append(Node("linear", (f"v{layer}", f"w{layer}", f"b{layer}"), f"l{layer}"))
        nodes.append(Node(name, (f"l{layer}",), f"v{layer + 1}", ACTIVATIONS[name]))
    program = Program((Input("x", (sizes[0],)),), tuple(nodes), (nodes[-1].output,))
    return program, {name: value.astype(np.float32) for name, value in tensors.items()}


def reference(program: Program, tensors: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """The same in float64, node by node."""
    exact = {name: value.astype(np.float64) for name, value in tensors.items()}
    double = Program(tuple(Input(i.name, i.shape, "float64") for i in program.inputs), program.nodes, program.outputs)
    return Network(double, exact, compiled=False).predict(x.astype(np.float64))


@pytest.fixture(params=KERNELS, autouse=True)
def kernel(request: pytest.FixtureRequest):
    module = chain.kernels()
    if module is None:
        pytest.skip("the kernels are not built")
    try:
        module.use(request.param)
    except ValueError:
        pytest.skip(f"this machine has no {request.param}")
    yield request.param
    module.use(None)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.integers(1, 70), min_size=2, max_size=4),
    st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0]),
    st.lists(st.sampled_from(sorted(ACTIVATIONS)), min_size=1, max_size=3),
    st.sampled_from([1, 2, 3, 4, 15, 16, 17, 63, 64, 65, 130]),
    st.integers(0, 999),
)
def test_a_chain_answers_as_plain_arithmetic_does(kernel, sizes, density, activations, samples, seed) -> None:
    program, tensors = network(sizes, density, activations, seed)
    x = np.random.default_rng(seed).normal(size=(samples, sizes[0])).astype(np.float32)
    expected = reference(program, tensors, x)
    made = Network(program, tensors)
    assert made._whole is not None and chain.kernels().chosen()[0] == kernel
    scale = 1 + np.abs(expected).max(initial=0)
    assert np.abs(made.predict(x) - expected).max() < 2e-5 * scale
    assert np.abs(made.predict(x[0]) - expected[0]).max() < 2e-5 * scale
    assert np.abs(Network(program, tensors, compiled=False).predict(x) - expected).max() < 2e-5 * scale


@pytest.mark.parametrize("density", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("samples", [1, 1001])
def test_an_actor_answers_at_every_density_and_batch(density: float, samples: int) -> None:
    program, tensors = network([17, 400, 300, 6], density, ["relu", "relu", "tanh"], 0)
    x = np.random.default_rng(1).normal(size=(samples, 17)).astype(np.float32)
    assert np.abs(Network(program, tensors).predict(x) - reference(program, tensors, x)).max() < 1e-5


def test_units_that_nothing_feeds_or_nobody_reads_are_removed() -> None:
    program, tensors = network([4, 6, 3], 1.0, ["tanh"], 0)
    tensors["w0"][1] = 0
    tensors["w1"][:, 4] = 0
    stages = [chain.stage_of(node, tensors) for node in program.nodes]
    layers = [stage for stage in chain.pruned(chain.joined(stages)) if isinstance(stage, chain.Layer)]
    assert [layer.weight.shape for layer in layers] == [(4, 4), (3, 4)]
    x = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
    assert np.abs(Network(program, tensors).predict(x) - reference(program, tensors, x)).max() < 1e-6


def test_nan_and_infinity_pass_through_kept_weights() -> None:
    program, tensors = network([3, 5, 2], 1.0, ["relu"], 0)
    made = Network(program, tensors)
    for bad in (np.nan, np.inf):
        x = np.array([[0.1, bad, 0.2]] * 20, np.float32)
        with np.errstate(invalid="ignore"):
            expected = reference(program, tensors, x)
        assert np.array_equal(np.isfinite(made.predict(x)), np.isfinite(expected))
        assert np.array_equal(np.isfinite(made.predict(x[0])), np.isfinite(expected[0]))


@pytest.mark.parametrize("convert", [np.float64, np.asfortranarray, lambda x: x[::-1], lambda x: x.tolist()])
def test_any_kind_of_array_is_taken(convert) -> None:
    program, tensors = network([7, 9, 2], 0.5, ["relu"], 0)
    x = np.random.default_rng(0).normal(size=(12, 7)).astype(np.float32)
    given_x = convert(x)
    expected = reference(program, tensors, np.asarray(given_x, np.float32))
    assert np.abs(Network(program, tensors).predict(given_x) - expected).max() < 1e-5


def test_an_image_is_flattened_on_the_way_in() -> None:
    program, tensors = network([784, 30, 10], 0.1, ["relu", "neg"], 0)
    nodes = (Node("reshape", ("image",), "x", {"shape": ["batch", 784]}), *program.nodes)
    images = Program((Input("image", (1, 28, 28)),), nodes, program.outputs)
    x = np.random.default_rng(0).normal(size=(5, 1, 28, 28)).astype(np.float32)
    made = Network(images, tensors)
    expected = reference(program, tensors, x.reshape(5, 784))
    assert made._whole is not None
    assert np.abs(made.predict(x) - expected).max() < 1e-5
    assert np.abs(made.predict(x[2]) - expected[2]).max() < 1e-5


def test_wrong_inputs_say_what_was_expected() -> None:
    program, tensors = network([7, 9, 2], 0.5, ["relu"], 0)
    made = Network(program, tensors)
    wrong = [
        ((np.zeros(8),), {}), ((np.zeros((2, 2, 7)),), {}), ((), {}), ((np.zeros(7), np.zeros(7)), {}),
        ((), {"y": np.zeros(7)}), ((np.zeros(7),), {"x": np.zeros(7)}), ((["a"] * 7,), {}),
    ]  # fmt: skip
    for inputs, named in wrong:
        with pytest.raises(UserError):
            made.predict(*inputs, **named)
    assert made.predict(x=np.zeros(7)).shape == (2,)


def test_threads_share_a_network() -> None:
    program, tensors = network([64, 256, 256, 8], 0.2, ["relu"], 0)
    made = Network(program, tensors)
    x = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
    expected, answers = made.predict(x), {}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=lambda i=i: answers.update({i: made.predict(x)})) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert all(np.array_equal(answer, expected) for answer in answers.values()) and len(answers) == 4


def test_c_refuses_stages_that_do_not_fit() -> None:
    module = chain.kernels()
    ones = np.ones(3, np.float32)
    right = (3, ones, ones, ones, chain.NOTHING)
    module.Chain([right], (3,), (3,))
    for stages, inputs, outputs in (
        ([right], (4,), (4,)), ([right], (3,), (2,)), ([(3, ones, ones, ones[:2], chain.NOTHING)], (3,), (3,)),
        ([(70_000, ones, ones, ones, chain.NOTHING)], (3,), (3,)),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            module.Chain(stages, inputs, outputs)
    layer = list(chain._layout(chain.Layer(np.eye(3, dtype=np.float32), np.zeros(3, np.float32)), 16, skips=True))
    layer[5] = np.array([0, 1, 9], np.uint16)
    with pytest.raises(ValueError, match="outside"):
        module.Chain([tuple(layer)], (3,), (3,))
