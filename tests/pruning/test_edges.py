"""Defaults, smallest cases and networks with idle parts: what pruning does where little is left to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fewer.core.engines.base import Training
from fewer.core.errors import UserError
from fewer.core.mask import choose_, kept
from fewer.pruning import pruning as pruning_module
from fewer.pruning.features import shrink as shrink_module
from fewer.pruning.features.shrink import Shrinking, shrink
from fewer.pruning.features.usefulness import Reach, usefulness
from fewer.pruning.paths import lint
from fewer.pruning.pruning import Pruning, mask_for
from fewer.pruning.recipe import automatic, parse_prune
from fewer.pruning.schedules.survivors import smaller_mask
from fewer.systems.vision.task.task import Settings, Vision
from tests.toys import Blobs, Control, doubled

from .test_usefulness import Net, Points, cube


def batches_asked(monkeypatch: pytest.MonkeyPatch, pruning: Pruning) -> tuple[int, int]:
    """How many batches of how many samples a pruning scores on."""
    asked: list[tuple[int, int]] = []
    take = pruning_module.samples

    def noted(*words: Any, count: int, of: int, **named: Any) -> list[Any]:
        asked.append((of, count))
        return take(*words, count=count, of=of, **named)

    monkeypatch.setattr(pruning_module, "samples", noted)
    task = Blobs()
    mask_for(task, doubled(task), pruning, seed=0)
    return asked[0]


@pytest.mark.parametrize("method", ["magnitude", "lamp", "synflow", "random"])
def test_a_criterion_that_needs_no_data_looks_at_two_samples_however_many_are_allowed(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    assert batches_asked(monkeypatch, Pruning(method, 0.5, samples=30)) == (1, 2)


@pytest.mark.parametrize(("method", "own"), [("snip", 1), ("grasp", 2)])
def test_a_criterion_scores_on_as_many_batches_as_it_needs_unless_more_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, method: str, own: int
) -> None:
    assert batches_asked(monkeypatch, Pruning(method, 0.5, samples=10)) == (own, 10)
    assert batches_asked(monkeypatch, Pruning(method, 0.5, samples=10, batches=3)) == (3, 10)
    assert Pruning().batches == 0  # a method's own number


def test_no_quota_is_asked_for_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a quota was reserved")

    monkeypatch.setattr(pruning_module, "reserve", never)
    task = Blobs()
    assert kept(mask_for(task, doubled(task), Pruning("magnitude", 0.5), seed=0)) == 28


@pytest.mark.parametrize("swap", [0.0, 0.3, 1.0])
def test_any_share_may_be_swapped(swap: float) -> None:
    assert Pruning("magnitude", 0.5, when="set", swap=swap).swap == swap


@pytest.mark.parametrize("swap", [-0.1, 1.1])
def test_no_more_than_all_and_no_less_than_nothing_may_be_swapped(swap: float) -> None:
    with pytest.raises(UserError, match="swap"):
        Pruning("magnitude", 0.5, when="set", swap=swap)


def test_automatic_is_the_word_and_whatever_options_follow_it() -> None:
    assert automatic("auto") and automatic("auto,sparsity=0.5")
    assert not any(map(automatic, (None, "", "snip", "automatic", "snip,when=auto")))


def test_what_is_said_beside_a_recipe_wins_and_the_rest_of_it_stays() -> None:
    found = parse_prune("auto,end=0.5", ["sparsity=0.75"], recipe="lamp,when=gradual,end=0.4")
    assert found is not None
    assert (found.method, found.when, found.end, found.sparsity) == ("lamp", "gradual", 0.5, 0.75)


def test_a_layer_shrinks_to_its_last_weight_and_no_further() -> None:
    scores, whole = {"net": {"weight": torch.arange(1.0, 9.0)}}, {"net": {"weight": torch.ones(8, dtype=torch.bool)}}
    counts = [kept(smaller_mask(scores, whole, number, rate=0.5)) for number in range(6)]
    assert counts == [8, 4, 2, 1, 1, 1]


def test_every_round_of_shrinking_trains_with_a_seed_of_its_own_from_the_given_one_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds: list[int] = []

    class Watched(shrink_module.Plain):
        def __init__(self, task: Any, training: Training, seed: int, **named: Any) -> None:
            seeds.append(seed)
            super().__init__(task, training, seed, **named)

    monkeypatch.setattr(shrink_module, "Plain", Watched)
    task = Vision(Settings(network="cnn0", classes="3,7"))
    settings = Shrinking(measure="random", share=0.5, least=8, samples=12, seed=5)
    assert len(list(shrink(task, task.networks(), settings, training=Training(steps=1, batch=8)))) == 3
    assert seeds == [5, 6, 7]


def test_a_set_without_samples_has_no_useful_features() -> None:
    features, head = torch.eye(3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.float64)
    with pytest.raises(UserError, match=r"0 samples of train.*at least one"):
        usefulness(cube(9, 2), {"net": Net(features, head)}, split="train", limit=0)


def test_a_search_for_the_worst_visits_only_points_in_the_ball_and_in_the_bounds() -> None:
    class Watched(Points):
        visited: list[Tensor] = []

        def inputs(self, batch: Any) -> Tensor:
            self.visited.append(batch.place.detach())
            return super().inputs(batch)

    place = cube(4, 2).held.samples.place * 0.01 + torch.tensor([0.94, 0.5, 0.5], dtype=torch.float64)
    task = Watched(place, torch.arange(4) % 2)
    torch.manual_seed(0)
    features, head = (torch.randn(*shape, dtype=torch.float64) for shape in ((4, 3), (2, 4)))
    usefulness(task, {"net": Net(features, head)}, reach=Reach(budget=0.1, step=0.04, steps=3, starts=4))
    lowest, highest = torch.cat(task.visited).aminmax(dim=0)
    assert torch.all(lowest >= place.amin(0) - 0.1 - 1e-12)
    assert torch.all(highest <= (place.amax(0) + 0.1).clamp(max=1.0) + 1e-12)
    assert torch.all(highest - lowest > 0.05)  # the starts do differ


def test_a_feature_that_the_head_weighs_by_nothing_is_searched_for_its_own_sign() -> None:
    task = cube(30, 2)
    features = torch.tensor([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]], dtype=torch.float64)
    head = torch.zeros(2, 2, dtype=torch.float64)
    plain = usefulness(task, {"net": Net(features, head)})
    under = usefulness(task, {"net": Net(features, head)}, reach=Reach(budget=0.1, step=0.05, steps=4))
    assert torch.all(under.score("robust_standard") < plain.score("standard") - 0.05)


class Idle(nn.Module):
    """A layer that nothing reads beside one that is used, and a pool called as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.idle, self.last = nn.Conv2d(1, 2, 2), nn.Linear(3, 3), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.last(functional.max_pool2d(self.used(x), 2).flatten(1))
        return answer


def whole(module: nn.Module) -> dict[str, Tensor]:
    return {name: torch.ones_like(p, dtype=torch.bool) for name, p in module.named_parameters() if p.ndim > 1}


def test_a_layer_that_nothing_reads_lies_on_no_path_and_the_others_do() -> None:
    module, image = Idle().double(), (torch.rand(1, 1, 6, 6, dtype=torch.float64),)
    assert {name: bool(found.all()) for name, found in lint.on_paths(module, whole(module), image).items()} == {
        "used.weight": True, "idle.weight": False, "last.weight": True,
    }  # fmt: skip
    (report,) = lint.examine({"net": module}, {"net": whole(module)}, {"net": image})
    assert set(report.kept) == {"used.weight", "last.weight"} and not report.faults()


def test_a_pool_called_as_a_function_rounds_down_unless_told_otherwise() -> None:
    module, image = Idle().double(), (torch.rand(1, 1, 6, 6, dtype=torch.float64),)
    mask = whole(module)
    mask["last.weight"] = torch.zeros_like(mask["last.weight"])
    (report,) = lint.examine({"net": module}, {"net": mask}, {"net": image})  # 5 by 5 to 2 by 2: it can be followed
    assert report.faults() == [
        "none of the 16 weights of net.last.weight", "no path from input 0 of net to any output",
    ]  # fmt: skip


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(9, 4), nn.Linear(4, 3)

    def forward(self, words: Tensor) -> Tensor:
        answer: Tensor = self.head(self.table(words).mean(1))
        return answer


def test_a_network_of_words_whose_head_is_gone_has_no_path_from_them() -> None:
    module, words = Reader().double(), (torch.tensor([[1, 2, 5]]),)
    mask = whole(module)
    (report,) = lint.examine({"net": module}, {"net": mask}, {"net": words})
    assert not report.faults() and len(report.lost) == 1 and not report.lost[0].any()
    mask["head.weight"] = torch.zeros_like(mask["head.weight"])
    (report,) = lint.examine({"net": module}, {"net": mask}, {"net": words})
    assert len(report.reached) == 1 and report.lost[0].all()
    assert "none of the 12 weights of net.head.weight" in report.faults()


def chosen(pruning: Pruning, skip: tuple[str, ...] = ()) -> Mapping[str, Mapping[str, Tensor]]:
    task = Control()
    modules = doubled(task)
    choose_(modules, skip=skip)
    return mask_for(task, modules, pruning, seed=0)


def test_an_input_quota_leaves_first_layers_alone_that_are_not_pruned_at_all() -> None:
    first = next(name for name in chosen(Pruning("magnitude", 0.5, samples=10))["critic"])
    found = chosen(Pruning("magnitude", 0.5, samples=10, input_quota=2), skip=(f"critic.{first}",))
    assert first not in found["critic"] and found["critic"]


class Spared(Blobs):
    """A layer that no answer reads, in a network with a quota."""

    def networks(self) -> dict[str, nn.Module]:
        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.idle, self.last = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 3)

            def forward(self, x: Tensor) -> Tensor:
                self.idle(x)
                answer: Tensor = self.last(self.first(x).relu())
                return answer

        return {"net": Net()}


def test_an_input_quota_holds_beside_a_layer_that_no_answer_reads() -> None:
    task = Spared()
    mask = mask_for(task, doubled(task), Pruning("magnitude", 0.8, samples=10, input_quota=3), seed=0)
    assert int(mask["net"]["first.weight"].sum()) >= 3
