"""Usefulness of features: the formulas by hand, the searches against closed forms, the invariants."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.errors import UserError
from fewer.core.task import Objective, Task
from fewer.pruning.features.usefulness import Reach, usefulness
from fewer.systems.vision.task.task import Settings, Vision


class Point(NamedTuple):
    place: Tensor
    label: Tensor


class Net(nn.Module):
    def __init__(self, features: Tensor, head: Tensor, relu: bool = False) -> None:
        super().__init__()
        self.hidden, self.head = (nn.Linear(rows.shape[1], len(rows), bias=False) for rows in (features, head))
        self.hidden.weight, self.head.weight = nn.Parameter(features), nn.Parameter(head)
        self.relu = relu

    def forward(self, place: Tensor, features: bool = False) -> Tensor:
        hidden = self.hidden(place).relu() if self.relu else self.hidden(place)
        return hidden if features else self.head(hidden)


class Points(Task[Point]):
    """Points of the unit cube whose features are given matrices: everything can be worked out on paper."""

    bounds = torch.tensor(0.0), torch.tensor(1.0)

    def __init__(self, place: Tensor, label: Tensor) -> None:
        self.held = TensorData(Point(place, label))

    def networks(self): ...
    def objectives(self) -> tuple[Objective[Point], ...]: ...
    def predict(self, nets, inputs, noise): ...
    def evaluate(self, split): ...
    def data(self, split):
        return self.held

    def inputs(self, batch):
        return batch.place

    def perturbable(self, batch):
        return batch.place

    def replace(self, batch, perturbable):
        return batch._replace(place=perturbable)

    def attack_loss(self, nets, batch, noise): ...
    def logits(self, nets, inputs, noise):
        return nets.net(inputs)

    def labels(self, batch):
        return batch.label

    def features(self, nets, inputs):
        return nets.net(inputs, features=True)

    def head(self):
        return "net", "head.weight"


def cube(count: int, classes: int, seed: int = 0) -> Points:
    draw = torch.Generator().manual_seed(seed)
    place = torch.rand(count, 3, generator=draw, dtype=torch.float64)
    return Points(place, torch.arange(count) % classes)


FEATURES = torch.tensor([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 0.5, 2.0]], dtype=torch.float64)
HEAD = torch.tensor([[0.5, -1.0, 2.0, 1.5], [1.5, 1.0, -1.0, -0.5]], dtype=torch.float64)


def test_two_classes_follow_the_papers_formula() -> None:
    task = cube(30, 2)
    found = usefulness(task, {"net": Net(FEATURES, HEAD)})
    place, label = task.held.samples
    f, y, w = place @ FEATURES.T, label.double(), HEAD[1] - HEAD[0]
    expected = ((2 * y - 1)[:, None] * (2 * torch.sigmoid(w * f) - 1)).mean(0)
    torch.testing.assert_close(found.raw[:, 0], torch.where(found.dead, 0.0, expected))
    standard = (f - f.mean(0)) / f.std(0, correction=0)
    rho = ((2 * y - 1)[:, None] * standard).mean(0).abs()
    torch.testing.assert_close(found.standard[:, 0], torch.where(found.dead, 0.0, rho))
    assert found.dead.tolist() == [False, False, True, False]


def test_one_output_and_two_outputs_with_the_same_difference_agree() -> None:
    task, reach = cube(30, 2), Reach(budget=0.1)
    two = usefulness(task, {"net": Net(FEATURES, HEAD)}, reach=reach)
    one = usefulness(task, {"net": Net(FEATURES, HEAD[1:] - HEAD[:1])}, reach=reach)
    torch.testing.assert_close(one.robust_raw, two.robust_raw)
    torch.testing.assert_close(one.raw, two.raw)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_search_finds_the_true_minimum_of_linear_features(classes: int) -> None:
    task, budget = cube(40, classes), 0.15
    head = torch.cat([HEAD, HEAD.flip(1)[:1]])[:classes]
    found = usefulness(task, {"net": Net(FEATURES, head)}, reach=Reach(budget=budget, step=0.05, steps=4))
    place, label = task.held.samples
    low, high = (place - budget).clamp(min=0), (place + budget).clamp(max=1)
    up, down = FEATURES.clamp(min=0), FEATURES.clamp(max=0)
    least, most = low @ up.T + high @ down.T, high @ up.T + low @ down.T  # interval arithmetic is exact here
    weight = head if classes > 2 else head[1:] - head[:1]
    for question, w in enumerate(weight):
        t = torch.where(label == (question if classes > 2 else 1), 1.0, -1.0).double()[:, None]
        value = t * torch.tanh(w * torch.where(t * w > 0, least, most) / 2)
        sides = [value[t[:, 0] == side].mean(0) for side in (1, -1)]
        expected = sum(sides) / 2 if classes > 2 else value.mean(0)
        torch.testing.assert_close(found.robust_raw[:, question], torch.where(found.dead, 0.0, expected))


def test_many_classes_weigh_both_sides_of_a_question_alike() -> None:
    place = torch.eye(3, dtype=torch.float64)[[0, 1, 2, 2, 2, 2]]
    task = Points(place, torch.tensor([0, 1, 2, 2, 2, 2]))
    found = usefulness(task, {"net": Net(torch.eye(3, dtype=torch.float64), 2 * torch.eye(3, dtype=torch.float64))})
    # Feature 0 is one on its class and zero elsewhere: half of tanh(1), however rare the class.
    torch.testing.assert_close(
        found.raw.diagonal(), torch.full((3,), 0.5 * torch.tanh(torch.tensor(1.0)).item()).double()
    )


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    budget=st.floats(0, 0.5),
    steps=st.integers(0, 4),
    starts=st.integers(1, 2),
    classes=st.integers(2, 4),
)
def test_robust_usefulness_is_never_above_plain(seed, budget, steps, starts, classes) -> None:
    draw = torch.Generator().manual_seed(seed)
    matrices = (torch.randn(5, 3, generator=draw), torch.randn(classes, 5, generator=draw))
    net = Net(*(matrix.double() for matrix in matrices), relu=True)
    reach = Reach(budget=budget, step=0.1, steps=steps, starts=starts)
    found = usefulness(cube(24, classes, seed), {"net": net}, reach=reach)
    assert (found.robust_raw <= found.raw).all()
    assert (found.robust_standard <= found.standard).all()
    assert (found.standard >= 0).all()
    assert (found.raw.abs() < 1).all()
    if budget == 0 or (steps == 0 and starts == 1):
        torch.testing.assert_close(found.robust_raw, found.raw)


def test_more_starts_can_only_lower_it() -> None:
    draw = torch.Generator().manual_seed(3)
    net = {
        "net": Net(torch.randn(8, 3, generator=draw).double(), torch.randn(2, 8, generator=draw).double(), relu=True)
    }
    one, three = (usefulness(cube(60, 2), net, reach=Reach(step=0.02, steps=3, starts=n)) for n in (1, 3))
    assert (three.robust_raw <= one.robust_raw).all()
    assert (three.robust_raw < one.robust_raw).any()


def test_it_measures_a_real_network_and_leaves_it_untouched() -> None:
    task = Vision(Settings(network="cnn0", classes="0,1,2"))
    modules = {"net": task.networks()["net"].train()}
    with torch.no_grad():
        modules["net"].body.hidden.weight[7] = 0.0
        modules["net"].body.hidden.bias[7] = -1.0
    before = copy.deepcopy(modules["net"].state_dict())
    found = usefulness(task, modules, split="validation", limit=40, reach=Reach(step=0.1, steps=2))
    assert found.raw.shape == (50, 3)
    assert found.dead[7]
    assert not found.raw[found.dead].any()
    assert (found.robust_raw <= found.raw).all()
    assert (found.score("robust_raw", "mean") <= found.score("robust_raw")).all()
    assert all(value.equal(before[name]) for name, value in modules["net"].state_dict().items())


def test_steps_that_cannot_cross_the_ball_leave_features_looking_robust() -> None:
    task = cube(60, 2)
    short, long = (
        usefulness(task, {"net": Net(FEATURES, HEAD)}, reach=Reach(budget=0.3, step=step, steps=3))
        for step in (0.01, 0.1)
    )
    alive = ~short.dead
    assert (short.robust_raw[alive] > long.robust_raw[alive]).all()


@pytest.mark.parametrize(
    "wrong", [{"budget": -0.1}, {"step": 0.0}, {"steps": -1}, {"starts": 0}, {"budget": float("nan")}]
)
def test_a_wrong_reach_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match="budget >= 0"):
        Reach(**wrong)  # type: ignore[arg-type]


def test_a_limit_takes_as_many_of_a_rare_class_as_of_a_common_one() -> None:
    label = torch.tensor([0] * 50 + [1] * 47 + [2] * 3)
    place = torch.nn.functional.one_hot(label, 3).double()
    task = Points(place * torch.linspace(0.5, 1, 100)[:, None], label)
    net = {"net": Net(torch.eye(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64))}
    assert usefulness(task, net, limit=9).raw.shape == (3, 3)
    nine, few = usefulness(task, net, limit=9).raw, usefulness(task, net, limit=3).raw
    assert (nine.diagonal() > 0.1).all()
    assert (few.diagonal() > 0.1).all()


def test_a_limit_looks_at_twenty_times_as_many_samples_for_rare_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    take = TensorData.take

    def noted(data: TensorData[Point], index: Tensor) -> Point:
        asked.append(len(index))
        return take(data, index)

    monkeypatch.setattr(TensorData, "take", noted)
    usefulness(cube(100, 2), {"net": Net(FEATURES, HEAD)}, limit=4)
    assert asked[-2:] == [80, 4]


def test_a_score_that_was_not_measured_is_refused() -> None:
    found = usefulness(cube(12, 2), {"net": Net(FEATURES, HEAD)})
    with pytest.raises(UserError, match="need a Reach"):
        found.score("robust_raw")


def test_too_few_samples_for_the_classes_are_refused() -> None:
    with pytest.raises(UserError, match="without one of the 4 classes"):
        usefulness(cube(3, 4), {"net": Net(FEATURES, torch.cat([HEAD, HEAD]))})
