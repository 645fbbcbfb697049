"""What a mask does to a network: paths, dead units, and the quotas that prevent the worst."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.core.data import convert
from fewer.core.errors import UserError
from fewer.core.mask import dense, kept, total
from fewer.core.task import Objective, Task
from fewer.pruning.paths import lint
from fewer.pruning.paths.skeleton import Linearised
from fewer.pruning.pruning import Pruning, mask_for
from tests.toys import Blobs, Control, Fit, Patches, doubled, stream


def report_of(task: Task[Any], mask: dict[str, dict[str, Tensor]], net: str = "net") -> lint.NetworkReport:
    modules = doubled(task)
    batch = convert(task.data("train").take(torch.arange(4)), torch.device("cpu"), torch.float64)
    reports = lint.examine(modules, mask, lint.calls_of(task, modules, batch, stream()))
    return next(report for report in reports if report.network == net)


def flags(rows: list[list[int]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.bool)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), [(5, 2, None, 0), (1, 2, 2, 0), (7, 3, 2, 1)])
def test_a_maximum_pool_that_rounds_up_is_a_sum_over_what_is_there(rank, size, kernel, stride, padding) -> None:  # type: ignore[no-untyped-def]
    pool = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[rank - 1](kernel, stride, padding, ceil_mode=True)
    x = torch.rand(1, 1, *[size] * rank, dtype=torch.float64)
    with Linearised():
        found = pool(x)
    assert found.shape == pool(x).shape
    step = stride or kernel
    for place in itertools.product(*[range(n) for n in found.shape[2:]]):
        window = tuple(slice(max(k * step - padding, 0), max(k * step - padding + kernel, 0)) for k in place)
        assert float(found[(0, 0, *place)]) == pytest.approx(float(x[(0, 0, *window)].sum()))


@pytest.mark.parametrize("pool", [torch.max_pool2d, nn.functional.max_pool2d])
def test_a_maximum_pool_rounds_down_unless_it_is_told_otherwise(pool) -> None:  # type: ignore[no-untyped-def]
    x = torch.rand(1, 1, 5, 5, dtype=torch.float64)
    with Linearised():
        found = pool(x, 2)
    assert torch.equal(found, nn.functional.avg_pool2d(x, 2) * 4)


class Raw(Control):
    """Observations in raw units, a thousand times the actions: the case of field C3."""

    def __init__(self) -> None:
        super().__init__(scale=1000.0)

    def networks(self) -> dict[str, nn.Module]:
        networks = super().networks()
        networks["actor"][0].weight.data /= 1000  # type: ignore[index]  # or its tanh would be all there is to see
        return networks


def test_a_critic_whose_actions_are_all_pruned_is_refused_in_one_clear_line() -> None:
    with pytest.raises(UserError, match="no path from input 1 of critic") as caught:
        mask_for(Raw(), doubled(Raw()), Pruning("snip", 0.8, samples=40), seed=0)
    line = str(caught.value)
    assert "\n" not in line and "input_quota" in line and "normalise" in line


@pytest.mark.parametrize("quota", [1, 3, 6])
def test_an_input_quota_opens_paths_for_the_actions_within_the_same_count(quota: int) -> None:
    pruning = Pruning("snip", 0.8, samples=40, input_quota=quota)
    mask = mask_for(Raw(), doubled(Raw()), pruning, seed=0)
    assert kept({"critic": mask["critic"]}) == round(0.2 * total({"critic": mask["critic"]}))
    assert int(mask["critic"]["l1.weight"][:, 5:].sum()) >= quota
    assert int(mask["critic"]["l1.weight"][:, :5].sum()) >= quota
    report = report_of(Raw(), mask, "critic")
    assert not report.faults() and all(bool(reached.all()) for reached in report.reached)


def test_a_layer_quota_keeps_every_layer_alive_within_the_same_count() -> None:
    class Deep(Fit):
        def networks(self) -> dict[str, nn.Module]:
            layers: list[nn.Module] = []
            for scale, (before, after) in zip((1.0, 1e-6, 1.0), ((4, 20), (20, 20), (20, 1))):
                layers.append(nn.Linear(before, after))
                layers[-1].weight.data *= scale
            return {"net": nn.Sequential(*layers)}

    modules = doubled(Deep())
    with pytest.raises(UserError, match=r"none of the 400 weights of net\.1\.weight"):
        mask_for(Deep(), modules, Pruning("magnitude", 0.8, samples=20), seed=0)
    pruning = Pruning("magnitude", 0.8, samples=20, layer_quota=0.15)
    mask = mask_for(Deep(), modules, pruning, seed=0)
    assert kept(mask) == 100
    for m in mask["net"].values():
        assert int(m.sum()) >= 0.15 * m.numel()


@pytest.mark.parametrize("scope", ["network", "layer", "erk"])
def test_a_quota_holds_in_every_scope_or_is_refused(scope: str) -> None:
    pruning = Pruning("magnitude", 0.7, scope, samples=20, layer_quota=0.25)
    try:
        mask = mask_for(Control(), doubled(Control()), pruning, seed=0)
    except UserError as error:
        assert "quota" in str(error)
        return
    for m in mask["critic"].values():
        assert int(m.sum()) >= 0.25 * m.numel(), scope


def test_a_quota_larger_than_the_budget_is_refused() -> None:
    with pytest.raises(UserError, match="quotas that reserve"):
        mask_for(Raw(), doubled(Raw()), Pruning("snip", 0.9, samples=40, input_quota=60), seed=0)


def test_weights_on_a_path_are_found_on_a_mask_made_by_hand() -> None:
    """4 inputs, 8 hidden, 3 outputs.

    Hidden 0 sees inputs 0 and 1 and feeds outputs 0 and 1; hidden 1 sees input 2 and feeds nothing; hidden 2 sees
    nothing and feeds output 2; hidden 3 sees input 3 and feeds output 2; the rest is cut off on both sides.
    """
    first, second = torch.zeros(8, 4, dtype=torch.bool), torch.zeros(3, 8, dtype=torch.bool)
    first[0, 0] = first[0, 1] = first[1, 2] = first[3, 3] = True
    second[0, 0] = second[1, 0] = second[2, 2] = second[2, 3] = True
    report = report_of(Blobs(), {"net": {"0.weight": first, "2.weight": second}})
    assert report.reached[0].tolist() == [True, True, True]
    assert report.kept == {"0.weight": (4, 32), "2.weight": (4, 24)}
    assert report.faults() == []
    modules = doubled(Blobs())
    found = lint.on_paths(modules["net"], {"0.weight": first, "2.weight": second}, (torch.zeros(1, 4),))
    assert (found["0.weight"] & first).nonzero().tolist() == [[0, 0], [0, 1], [3, 3]]
    assert (found["2.weight"] & second).nonzero().tolist() == [[0, 0], [1, 0], [2, 3]]


def test_an_output_that_no_input_reaches_is_a_fault() -> None:
    second = torch.ones(3, 8, dtype=torch.bool)
    second[1] = False
    report = report_of(Blobs(), {"net": {"0.weight": torch.ones(8, 4, dtype=torch.bool), "2.weight": second}})
    assert report.faults() == ["1 of 3 outputs of net that no input reaches"]


def test_an_unpruned_network_has_all_its_paths() -> None:
    for task, net in ((Fit(), "net"), (Blobs(), "net"), (Patches(), "net"), (Control(), "critic")):
        report = report_of(task, dense(doubled(task)), net)
        assert report.faults() == [] and all(bool(reached.all()) for reached in report.reached)


def test_paths_of_a_residual_network_run_through_the_block_and_around_it() -> None:
    mask = dense(doubled(Patches()))
    mask["net"]["block.weight"][:] = False
    around = report_of(Patches(), mask)
    assert around.faults() == ["none of the 144 weights of net.block.weight"]
    assert bool(around.reached[0].all())


@pytest.mark.parametrize("method", ["snip", "synflow", "grasp"])
def test_convolutional_and_residual_networks_are_pruned_and_examined(method: str) -> None:
    mask = mask_for(Patches(), doubled(Patches()), Pruning(method, 0.6, samples=20, iterations=3), seed=1)
    report = report_of(Patches(), mask)
    assert report.faults() == [] and kept(mask) == round(0.4 * total(mask))


class Centred(nn.Module):
    """A normalisation written by hand: inputs of ones are all centred to zero."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x - x.mean(1, keepdim=True))
        answer: Tensor = self.last(hidden.relu())
        return answer


class ByHand(Fit):
    def networks(self) -> dict[str, nn.Module]:
        return {"net": Centred()}


def test_a_centring_written_by_hand_does_not_hide_the_paths() -> None:
    assert report_of(ByHand(), dense(doubled(ByHand()))).faults() == []


def test_an_input_that_the_network_ignores_without_any_pruning_is_not_the_masks_fault() -> None:
    class Deaf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x: Tensor, unused: Tensor) -> Tensor:
            answer: Tensor = self.layer(x)
            return answer

    class Ignoring(Fit):
        def networks(self) -> dict[str, nn.Module]:
            return {"net": Deaf()}

        def objectives(self) -> tuple[Objective[Any], ...]:
            def loss(nets: Any, batch: Any, noise: Any) -> Tensor:
                return (nets.net(batch.x, batch.y) - batch.y).square().mean()  # type: ignore[no-any-return]

            return (Objective(("net",), loss),)

    mask = mask_for(Ignoring(), doubled(Ignoring()), Pruning("magnitude", 0.5, samples=20), seed=0)
    assert kept(mask) == 2
