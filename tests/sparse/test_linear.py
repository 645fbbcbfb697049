"""Sparse layers against dense layers with masked weights, alone, in sequences, under attacks and under GraSP."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.sparse.convert import convert, pays
from fewer.sparse.linear import SparseLinear, SparseSequential


def masked_(module: nn.Module, share: float, seed: int = 0) -> dict[str, Tensor]:
    """Random masks for all matrices of a network, applied to it."""
    generator = torch.Generator().manual_seed(seed)
    masks = {}
    for name, parameter in module.named_parameters():
        if parameter.dim() == 2:
            masks[name] = torch.rand(parameter.shape, generator=generator) < share
            parameter.data *= masks[name]
    return masks


def pair(share: float, sizes: tuple[int, ...] = (6, 11, 8, 3), seed: int = 0) -> tuple[nn.Module, nn.Module]:
    """A dense masked network and its sparse form."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    dense = nn.Sequential(*layers[:-1]).double()
    masks = masked_(dense, share, seed)
    return dense, convert(copy.deepcopy(dense), masks)


def gradients(module: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """Gradients under the dense names, with zeros where a weight is pruned."""
    names = [name for name, _ in module.named_parameters()]
    found = dict(zip(names, torch.autograd.grad(loss, list(module.parameters()))))
    layers = {path: layer for path, layer in module.named_modules() if isinstance(layer, SparseLinear)}
    result = {}
    for name, gradient in found.items():
        path, _, leaf = name.rpartition(".")
        if leaf == "values":
            mask = layers[path].pattern.mask()
            result[f"{path}.weight".lstrip(".")] = torch.zeros(mask.shape, dtype=gradient.dtype).masked_scatter(
                mask, gradient
            )
        else:
            result[name] = gradient
    return result


def assert_same_gradients(dense: nn.Module, sparse: nn.Module, loss: Callable[[nn.Module], Tensor]) -> None:
    ours, theirs = gradients(sparse, loss(sparse)), gradients(dense, loss(dense))
    masks = densify(sparse)[1]
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient * masks[name] if name in masks else gradient)


def densify(module: nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The state of the dense network and the masks of its sparse layers, under the dense network's names."""
    state: dict[str, Tensor] = {}
    masks: dict[str, Tensor] = {}
    sparse = {f"{path}.": layer for path, layer in _layers(module)}
    for name, tensor in module.state_dict().items():
        path, _, leaf = name.rpartition(".")
        if leaf == "values" and f"{path}." in sparse:
            dense = f"{path}.weight" if path else "weight"
            state[dense], masks[dense] = sparse[f"{path}."].dense()
        else:
            state[name] = tensor
    return state, masks


def _layers(module: nn.Module) -> list[tuple[str, SparseLinear]]:
    return [(path, layer) for path, layer in module.named_modules() if isinstance(layer, SparseLinear)]


@settings(max_examples=40, deadline=None)
@given(
    share=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    samples=st.sampled_from([1, 2, 16, 65, 1001]),
    sizes=st.sampled_from([(6, 11, 8, 3), (1, 1, 1), (5, 40, 1), (23, 64, 7)]),
    seed=st.integers(0, 20),
)
def test_networks_of_any_sparsity_equal_masked_dense_ones(
    share: float, samples: int, sizes: tuple[int, ...], seed: int
) -> None:
    dense, sparse = pair(share, sizes, seed)
    x = torch.randn(samples, sizes[0], dtype=torch.float64)
    torch.testing.assert_close(sparse(x), dense(x))
    assert_same_gradients(dense, sparse, lambda module: module(x).tanh().square().sum())


def test_units_without_inputs_or_outputs_change_nothing() -> None:
    torch.manual_seed(0)
    dense = nn.Sequential(nn.Linear(5, 9), nn.ReLU(), nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, 2)).double()
    masks = masked_(dense, 0.6)
    masks["0.weight"][3] = masks["2.weight"][0] = False  # constants
    masks["2.weight"][:, 5] = masks["4.weight"][:, 1:3] = False  # read by nobody
    for name, mask in masks.items():
        dense.get_parameter(name).data *= mask
    sparse = convert(copy.deepcopy(dense), masks)
    x = torch.randn(20, 5, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(sparse(x), dense(x))
    assert_same_gradients(dense, sparse, lambda module: module(x).square().sum())
    ours, theirs = (torch.autograd.grad(module(x).square().sum(), x)[0] for module in (sparse, dense))
    torch.testing.assert_close(ours, theirs)


class Branches(nn.Module):
    """Sparse layers with a relu call, a cat, a max and batch-major inputs between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(6, 10), nn.Linear(16, 9), nn.Linear(9, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.second(torch.cat([self.first(x).relu(), x], -1))
        return self.third(torch.maximum(hidden, hidden.flip(0).contiguous()).relu())


def test_cat_max_and_relu_between_sparse_layers_are_right() -> None:
    torch.manual_seed(0)
    dense = Branches().double()
    masks = masked_(dense, 0.3)
    sparse = convert(copy.deepcopy(dense), masks)
    x = torch.randn(33, 6, dtype=torch.float64)
    torch.testing.assert_close(sparse(x), dense(x))
    assert_same_gradients(dense, sparse, lambda module: module(x).square().sum())


def test_results_are_feature_major_and_relu_keeps_them_so() -> None:
    layer = SparseLinear.from_dense(nn.Linear(6, 5), torch.ones(5, 6, dtype=torch.bool))
    assert layer(torch.randn(8, 6)).relu().t().is_contiguous()


@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 3, 6), (0, 6), (2, 0, 6)])
def test_leading_dimensions_are_kept(shape: tuple[int, ...]) -> None:
    dense, sparse = pair(0.4)
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(sparse(x), dense(x))
    ours, theirs = (torch.autograd.grad(module(x).square().sum(), x)[0] for module in (sparse, dense))
    torch.testing.assert_close(ours, theirs)


def test_an_attack_by_functional_gradients_is_the_dense_one() -> None:
    dense, sparse = pair(0.4)
    x = torch.randn(12, 6, dtype=torch.float64)

    def attacked(module: nn.Module) -> Tensor:
        return torch.func.grad(lambda a: module(a).square().sum())(x)

    def per_sample(module: nn.Module) -> Tensor:
        return torch.func.vmap(torch.func.grad(lambda a: module(a).square().sum()))(x)

    torch.testing.assert_close(attacked(sparse), attacked(dense))
    torch.testing.assert_close(per_sample(sparse), per_sample(dense))
    torch.testing.assert_close(per_sample(sparse), attacked(sparse))


def test_functional_calls_over_stacked_values_equal_a_loop() -> None:
    _, sparse = pair(0.4)
    x = torch.randn(7, 6, dtype=torch.float64)
    stacked = {name: torch.stack([p.detach() * k for k in (1, 2, -1)]) for name, p in sparse.named_parameters()}

    def loss(weights: dict[str, Tensor]) -> Tensor:
        answer: Tensor = torch.func.functional_call(sparse, weights, (x,))
        return answer.square().sum()

    together = torch.func.vmap(torch.func.grad(loss))(stacked)
    for row in range(3):
        alone = torch.func.grad(loss)({name: value[row] for name, value in stacked.items()})
        for name, value in alone.items():
            torch.testing.assert_close(together[name][row], value)


def test_hessian_vector_products_are_the_dense_ones() -> None:
    dense, sparse = pair(0.4)
    x = torch.randn(9, 6, dtype=torch.float64)
    found = []
    for module in (dense, sparse):
        parameters = list(module.parameters())
        first = torch.autograd.grad(module(x).tanh().square().sum(), parameters, create_graph=True)
        masks = densify(sparse)[1]
        names = [name for name, _ in module.named_parameters()]
        kept = [g * masks[name] if name in masks else g for name, g in zip(names, first)]
        found.append(gradients(module, sum(g.square().sum() for g in kept) / 2))
    masks = densify(sparse)[1]
    for name, theirs in found[0].items():
        torch.testing.assert_close(found[1][name], theirs * masks[name] if name in masks else theirs)


def test_weight_gradients_are_left_out_where_only_the_input_is_asked_for() -> None:
    _, sparse = pair(0.4)
    x = torch.randn(9, 6, dtype=torch.float64, requires_grad=True)
    bias = sparse[4].bias
    only_x = torch.autograd.grad(sparse(x).sum(), x)[0]
    both = torch.autograd.grad(sparse(x).sum(), [x, bias])
    torch.testing.assert_close(only_x, both[0])
    torch.testing.assert_close(both[1], torch.full_like(both[1], 9.0))
    sparse(x).sum().backward()
    assert all(p.grad is not None for p in sparse.parameters())


def test_a_backward_pass_may_be_repeated_and_copies_are_independent() -> None:
    _, sparse = pair(0.4)
    x = torch.randn(9, 6, dtype=torch.float64)
    loss = sparse(x).square().sum()
    first = torch.autograd.grad(loss, list(sparse.parameters()), retain_graph=True)
    sparse(x + 1).sum().backward()
    for one, other in zip(first, torch.autograd.grad(loss, list(sparse.parameters()))):
        assert torch.equal(one, other)
    other_network = copy.deepcopy(sparse)
    other_network[0].values.data.zero_()
    assert not torch.equal(other_network(x), sparse(x))
    assert other_network[0].pattern is sparse[0].pattern


def test_a_sparse_network_holds_the_state_of_its_dense_one() -> None:
    dense, sparse = pair(0.4)
    state, masks = densify(sparse)
    assert state.keys() == dense.state_dict().keys()
    for name, tensor in dense.state_dict().items():
        assert torch.equal(state[name], tensor)
    kept = sum(layer.pattern.kept for layer in sparse if isinstance(layer, SparseLinear))
    assert sum(int(mask.sum()) for mask in masks.values()) == kept


def test_only_layers_that_gain_are_converted() -> None:
    module = nn.Sequential(nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 200))
    masks = {"0.weight": torch.rand(200, 200) < 0.9, "2.weight": torch.rand(200, 200) < 0.1}
    converted = convert(module, masks)
    assert isinstance(converted, SparseSequential)
    assert type(converted[0]) is nn.Linear and isinstance(converted[2], SparseLinear)
    assert pays(750, 750, 28_000) and not pays(750, 750, 500_000)


def test_layers_that_share_weights_or_that_torch_reads_itself_stay_dense() -> None:
    attention = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    masks = {"linear1.weight": torch.zeros(16, 8, dtype=torch.bool)}
    assert type(convert(attention, masks).linear1) is nn.Linear
    tied = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    tied[1].weight = tied[0].weight
    assert type(convert(tied, {"0.weight": torch.zeros(4, 4, dtype=torch.bool)})[0]) is nn.Linear


def test_wrong_inputs_are_refused_in_one_line() -> None:
    layer = SparseLinear.from_dense(nn.Linear(6, 5), torch.ones(5, 6, dtype=torch.bool))
    for x in (torch.randn(3, 7), torch.randn(3, 6, dtype=torch.float64)):
        with pytest.raises(UserError, match="expected"):
            layer(x)
    with pytest.raises(UserError, match="mask"):
        SparseLinear.from_dense(nn.Linear(6, 5), torch.ones(6, 5, dtype=torch.bool))
    with pytest.raises(UserError, match="parameter"):
        convert(nn.Sequential(nn.Linear(2, 2)), {"weights": torch.ones(2, 2, dtype=torch.bool)})
