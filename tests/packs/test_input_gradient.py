"""Gradients through packs: torch agrees, and the attack stays in its ball and does harm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from fewer import zoo
from fewer.core.errors import UserError
from fewer.packs import pack
from fewer.packs.input_gradient import InputGradient, climbed, ladder
from fewer.packs.trace.trace import trace


class Strided(nn.Module):
    """Padding, a stride that drops a column, groups, an overlapping pool, normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.second = nn.Conv2d(4, 6, 2, groups=2, dilation=2)
        self.head = nn.Linear(6 * 4 * 4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.first((x - 0.1) / 0.3))
        h = functional.max_pool2d(torch.relu(self.second(h)), 3, stride=1)
        return functional.log_softmax(self.head(h.flatten(1)), dim=-1)


def compared(module: nn.Module, path: Path, size: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    module.eval()
    x = torch.rand(3, 1, size, size, generator=torch.Generator().manual_seed(0))
    program, tensors = trace(module, [x[:2]])
    pack.write(path, program, tensors)
    answer, gradient = InputGradient(pack.load(path))(x.numpy(), np.array([1, 4, 0]))
    x.requires_grad_()
    expected = module(x)
    expected[torch.arange(3), torch.tensor([1, 4, 0])].sum().backward()
    assert x.grad is not None
    assert np.allclose(answer, expected.detach().numpy(), atol=1e-5)
    return gradient, x.grad.numpy()


def test_the_slope_is_torchs_through_strides_groups_and_pools(tmp_path: Path) -> None:
    torch.manual_seed(0)
    ours, theirs = compared(Strided(), tmp_path / "strided.pack", 16)
    assert np.abs(theirs).max() > 1e-3 and np.allclose(ours, theirs, atol=1e-6)


def test_the_slope_is_torchs_through_a_pruned_classifier(tmp_path: Path) -> None:
    from fewer.systems.vision.task.networks import NETWORKS

    torch.manual_seed(0)
    net = NETWORKS["cnn1"]((1, 28, 28), 10)
    with torch.no_grad():
        for parameter in [p for p in net.parameters() if p.ndim > 1]:
            parameter.mul_(torch.rand_like(parameter) < 0.4)  # sparse convolutions take another way
    ours, theirs = compared(nn.Sequential(net, nn.LogSoftmax(dim=-1)), tmp_path / "cnn.pack", 28)
    assert np.abs(theirs).max() > 1e-5 and np.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("steepness", [4.0, 80.0])
def test_the_slope_through_a_contrast_is_the_one_that_torchs_attacks_see(tmp_path: Path, steepness: float) -> None:
    from fewer.systems.vision.task.networks import NETWORKS, Contrast

    torch.manual_seed(0)
    net = NETWORKS["cnn1"]((1, 28, 28), 10)
    net.normalise = Contrast(steepness)
    ours, theirs = compared(nn.Sequential(net, nn.LogSoftmax(dim=-1)), tmp_path / "contrast.pack", 28)
    assert np.abs(theirs).max() > 1e-3 and np.allclose(ours, theirs, atol=0.01 * np.abs(theirs).max())


@pytest.mark.parametrize("steps", [1, 10])
def test_the_attack_stays_in_its_ball_and_lowers_the_first_answer(steps: int) -> None:
    digits = np.load(Path(zoo.__file__).parents[1] / "systems/vision/task/digits.npz", allow_pickle=False)
    name = next(key for key in digits.files if "test" in key and digits[key].ndim >= 3)
    images = digits[name][:6].reshape(-1, 1, 28, 28).astype(np.float32)
    images = images / max(1.0, images.max())
    gradient = InputGradient(pack.load(zoo.path("digits-dense")))
    before, changed = [], 0
    for image in images:
        answer, _ = gradient(image[None], np.array([0]))
        label = int(answer.argmax())
        worst = climbed(gradient, image, budget=0.2, steps=steps)
        after, _ = gradient(worst[None], np.array([0]))
        assert np.abs(worst - image).max() <= 0.2 + 1e-6 and worst.min() >= 0 and worst.max() <= 1
        assert after[0, label] <= answer[0, label]
        before.append(label)
        changed += int(after.argmax()) != label
    assert changed >= 4  # an ordinary network gives way to a fifth of the range


def test_without_a_budget_nothing_changes() -> None:
    image = np.random.default_rng(0).random((1, 28, 28), dtype=np.float32)
    gradient = InputGradient(pack.load(zoo.path("digits-3197")))
    assert np.array_equal(climbed(gradient, image, budget=0.0, steps=5), image)


def test_a_pack_that_is_no_chain_of_layers_says_what_is_in_the_way() -> None:
    with pytest.raises(UserError, match="slice"):
        InputGradient(pack.load(zoo.path("cellfree-80")))


def test_a_larger_budget_never_spares_what_a_smaller_one_hurt() -> None:
    image = np.random.default_rng(1).random((1, 28, 28), dtype=np.float32)
    gradient, budgets = InputGradient(pack.load(zoo.path("digits-dense"))), np.array([0.0, 0.05, 0.1, 0.3])
    rungs = ladder(gradient, image, budgets=budgets, steps=5)
    label = int(gradient(image[None], np.array([0]))[0].argmax())
    standing = gradient(rungs, np.full(len(budgets), label))[0][:, label]
    assert np.array_equal(rungs[0], image) and (np.diff(standing) <= 1e-6).all() and standing[-1] < standing[0]
    assert (np.abs(rungs - image).max(axis=(1, 2, 3)) <= budgets + 1e-6).all()


def test_the_slope_is_torchs_through_a_pruned_residual_network(tmp_path: Path) -> None:
    from fewer.systems.vision.task.networks import NETWORKS

    torch.manual_seed(0)
    net = NETWORKS["resnet10-tiny"]((1, 17, 17), 10)  # a side that strides do not divide
    net(torch.rand(16, 1, 17, 17))  # batch norms see something
    with torch.no_grad():
        for parameter in [p for p in net.parameters() if p.ndim == 4]:
            parameter.mul_(torch.rand_like(parameter) < 0.3)
    ours, theirs = compared(nn.Sequential(net, nn.LogSoftmax(dim=-1)), tmp_path / "residual.pack", 17)
    assert np.abs(theirs).max() > 1e-4 and np.allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max() + 1e-6)
