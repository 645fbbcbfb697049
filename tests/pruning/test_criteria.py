"""Every criterion against an independent way to the same number."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp
from torch.nn import functional
from torch.nn.utils import prune as theirs

from fewer.core.data import convert
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.core.mask import prunable
from fewer.core.task import Task
from fewer.pruning.criteria import CRITERIA
from fewer.pruning.criteria.scoring import Scores
from fewer.pruning.keep import keep
from tests.toys import Blobs, Control, Fit, Patches, doubled, stream


def batches_of(task: Task[Any], of: int = 2, count: int = 12) -> list[Any]:
    take = torch.arange(of * count).split(count)
    return [convert(task.data("train").take(index), torch.device("cpu"), torch.float64) for index in take]


def scores_of(method: str, task: Task[Any], of: int = 2) -> tuple[dict[str, nn.Module], Scores]:
    modules = doubled(task)
    return modules, CRITERIA[method](task, modules, batches_of(task, of), stream())


@pytest.mark.parametrize("make", [Fit, Patches], ids=lambda make: make.__name__)
@pytest.mark.parametrize("sparsity", [0.2, 0.5, 0.9])
def test_magnitude_keeps_the_weights_that_torch_keeps(make: Any, sparsity: float) -> None:
    modules, scores = scores_of("magnitude", make())
    mask = keep(scores, sparsity, "global")
    module = modules["net"]
    layers = [(module.get_submodule(name.removesuffix(".weight")), "weight") for name in prunable(module)]
    removed = sum(int((~m).sum()) for m in mask["net"].values())
    theirs.global_unstructured(layers, theirs.L1Unstructured, amount=removed)
    for (layer, _), name in zip(layers, scores["net"]):
        assert torch.equal(layer.weight_mask.bool(), mask["net"][name])  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [Fit, Patches, Control], ids=lambda make: make.__name__)
def test_lamp_is_a_weights_share_of_the_squares_left_when_it_would_be_removed_next(make: Any) -> None:
    modules, scores = scores_of("lamp", make())
    for net, by_name in scores.items():
        for key, score in by_name.items():
            squares = modules[net].get_parameter(key).detach().reshape(-1) ** 2
            expected = [float(square / squares[squares >= square].sum()) for square in squares]
            assert score.shape == modules[net].get_parameter(key).shape
            assert score.reshape(-1).tolist() == pytest.approx(expected)


def test_lamp_keeps_the_largest_weights_of_a_layer_whatever_the_layers_scale() -> None:
    modules = doubled(Fit())
    before = CRITERIA["lamp"](Fit(), modules, batches_of(Fit()), stream())
    with torch.no_grad():
        modules["net"].get_parameter("2.weight").mul_(1e-6)
    after = CRITERIA["lamp"](Fit(), modules, batches_of(Fit()), stream())
    sizes = CRITERIA["magnitude"](Fit(), modules, batches_of(Fit()), stream())
    for key, score in before["net"].items():
        assert torch.allclose(score, after["net"][key])
        assert torch.equal(score.reshape(-1).argsort(), sizes["net"][key].reshape(-1).argsort())


def test_lamp_scores_weights_that_are_gone_with_nothing() -> None:
    modules = doubled(Fit())
    with torch.no_grad():
        modules["net"].get_parameter("2.weight").zero_()
        modules["net"].get_parameter("0.weight")[0] = 0.0
    scores = CRITERIA["lamp"](Fit(), modules, batches_of(Fit()), stream())["net"]
    assert not scores["2.weight"].any() and not scores["0.weight"][0].any() and scores["0.weight"][1:].all()


@pytest.mark.parametrize("make", [Fit, Blobs, Patches, Control], ids=lambda make: make.__name__)
def test_snip_is_the_slope_of_the_loss_in_a_mask_variable(make: Any) -> None:
    """dL/dc at c = 1 by central differences, c multiplying one weight; ten weights of every layer."""
    task = make()
    modules, scores = scores_of("snip", task, of=1)
    batch, step = batches_of(task, of=1)[0], 1e-5
    for objective in task.objectives():
        for net in [name for name in objective.trains if name in scores]:
            for key, score in scores[net].items():
                weight = modules[net].get_parameter(key)
                for index in torch.linspace(0, weight.numel() - 1, 10).long().tolist():
                    losses = []
                    for sign in (1, -1):
                        moved = weight.detach().clone()
                        moved.view(-1)[index] *= 1 + sign * step
                        state = {
                            n: {**dict(m.named_parameters()), **dict(m.named_buffers())} for n, m in modules.items()
                        }
                        state[net][key] = moved
                        state = {n: {k: v.detach().clone() for k, v in by.items()} for n, by in state.items()}
                        losses.append(float(objective.loss(NetworkSet(modules, state), batch, stream())))
                    slope = abs(losses[0] - losses[1]) / (2 * step)
                    assert float(score.view(-1)[index]) == pytest.approx(slope, rel=1e-4, abs=1e-8), (net, key)


def test_snip_over_batches_is_the_mean_of_their_scores() -> None:
    task, modules = Fit(), doubled(Fit())
    first, second = batches_of(task)
    together = CRITERIA["snip"](task, modules, [first, second], stream())["net"]
    parts = [CRITERIA["snip"](task, modules, [batch], stream())["net"] for batch in (first, second)]
    for key, score in together.items():
        assert torch.allclose(score, (parts[0][key] + parts[1][key]) / 2)


def gradient_flow(module: nn.Module, loss: Any, batches: list[Any]) -> dict[str, Tensor]:
    """w * (H g) by a Jacobian-vector product of the gradient, forward over reverse."""
    names = prunable(module)
    rest = {key: value.detach() for key, value in module.named_parameters() if key not in names}
    weights = {key: module.get_parameter(key).detach() for key in names}

    def total(weights: dict[str, Tensor]) -> Tensor:
        return torch.stack([loss(functional_call(module, {**rest, **weights}, (b.x,)), b.y) for b in batches]).sum()

    slope = grad(total)(weights)
    _, product = jvp(grad(total), (weights,), (slope,))
    return {key: weights[key] * product[key] for key in names}


def test_grasp_of_a_regression_is_the_hessian_gradient_product_without_a_temperature() -> None:
    modules, scores = scores_of("grasp", Fit())
    expected = gradient_flow(modules["net"], lambda a, y: (a - y).square().sum(1).mean(), batches_of(Fit()))
    for key, score in scores["net"].items():
        assert torch.allclose(score, expected[key], rtol=1e-9, atol=1e-14), key


def test_grasp_of_a_classifier_divides_the_logits_by_200() -> None:
    modules, scores = scores_of("grasp", Blobs())
    hot = gradient_flow(modules["net"], lambda a, y: functional.cross_entropy(a / 200, y), batches_of(Blobs()))
    cold = gradient_flow(modules["net"], functional.cross_entropy, batches_of(Blobs()))
    for key, score in scores["net"].items():
        assert torch.allclose(score, hot[key], rtol=1e-9, atol=1e-18), key
        assert not torch.allclose(score / score.abs().max(), cold[key] / cold[key].abs().max(), rtol=1e-3)


def test_grasp_refuses_a_single_batch() -> None:
    with pytest.raises(UserError, match="two halves"):
        scores_of("grasp", Fit(), of=1)


def test_synflow_of_a_stack_of_layers_is_the_product_of_their_absolute_weights() -> None:
    """R = 1^T |W3| |W2| |W1| 1, so the score of a weight is what flows in, times it, times what flows on."""
    modules, scores = scores_of("synflow", Fit())
    layers = [modules["net"].get_parameter(f"{i}.weight").detach().abs() for i in (0, 2, 4)]
    flows = [torch.ones(4, dtype=torch.float64)]
    for layer in layers:
        flows.append(layer @ flows[-1])
    onward = torch.ones(1, dtype=torch.float64)
    for index in (2, 1, 0):
        expected = onward[:, None] * layers[index] * flows[index][None]
        assert torch.allclose(scores["net"][f"{2 * index}.weight"], expected, rtol=1e-12)
        onward = layers[index].t() @ onward


def test_synflow_conserves_the_flow_through_every_layer() -> None:
    for task in (Fit(), Blobs()):
        _, scores = scores_of("synflow", task, of=1)
        totals = [float(score.sum()) for score in scores["net"].values()]
        assert totals == pytest.approx([totals[0]] * len(totals))


def test_random_scores_are_uniform_and_differ_by_layer() -> None:
    _, scores = scores_of("random", Blobs(width=400))
    first, second = scores["net"].values()
    assert 0.45 < float(first.mean()) < 0.55 and float(first.min()) >= 0
    assert not torch.equal(first.reshape(-1)[:1000], second.reshape(-1)[:1000])


@pytest.mark.parametrize("method", sorted(CRITERIA))
def test_scoring_changes_neither_weights_nor_buffers_nor_random_state(method: str) -> None:
    task, modules = Patches(), doubled(Patches())
    before = {key: value.clone() for key, value in modules["net"].state_dict().items()}
    state = torch.get_rng_state()
    CRITERIA[method](task, modules, batches_of(task), stream())
    assert torch.equal(torch.get_rng_state(), state)
    for key, value in modules["net"].state_dict().items():
        assert torch.equal(before[key], value), key


@pytest.mark.parametrize("method", sorted(CRITERIA))
def test_every_criterion_scores_each_trained_network_once_and_partners_never(method: str) -> None:
    modules, scores = scores_of(method, Control())
    assert set(scores) == {"actor", "critic"}
    for net, by_name in scores.items():
        assert list(by_name) == prunable(modules[net])
        assert all(bool(score.isfinite().all()) for score in by_name.values())
        assert any(bool(score.any()) for score in by_name.values())
