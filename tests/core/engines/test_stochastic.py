"""Random layers draw what (seed, step, name) says: alike in a cohort and alone, again after a kill, nothing in eval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.engines.stochastic import Dropout, RReLU, drawing, keyed_
from fewer.custom.contract import check
from fewer.systems.nowcast.task.models.unet import UNet
from tests.toys import Fit, stream


class Wet(Fit):
    """A user's network with torch's own random layers."""

    def networks(self) -> dict[str, nn.Module]:
        channels = nn.Sequential(nn.Unflatten(1, (6, 2)), nn.Dropout1d(0.3), nn.Flatten())
        ends = nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 1)
        body = nn.Sequential(nn.Linear(4, 12), nn.RReLU(), nn.Dropout(0.25), channels, *ends)
        return {"net": body}


def training() -> Training:
    return Training(steps=12, batch=10, precision="float64", optimizer=Optimizer("adam", 3e-3))


def test_a_task_with_torchs_random_layers_honours_the_contract() -> None:
    assert {outcome.name: outcome.fault for outcome in check(Wet()) if outcome.fault} == {}


def test_a_replica_drops_in_a_cohort_what_it_drops_alone() -> None:
    cohort, alone = Cohort(Wet(), training(), [3, 8]), Plain(Wet(), training(), 8)
    cohort.advance(12)
    alone.advance(12)
    difference = cohort.state.networks["net"].weights[1] - alone.state.networks["net"].weights[0]
    assert float(difference.abs().max()) < 1e-12


def test_a_run_that_is_restored_draws_what_it_would_have_drawn() -> None:
    whole, first, second = (Plain(Wet(), training(), 5) for _ in range(3))
    whole.advance(12)
    first.advance(5)
    saved = {name: tensor.clone() for name, tensor in first.state.named()}
    torch.rand(7)  # the global generator has no say
    second.restore_(saved)
    second.advance(7)
    assert torch.equal(whole.state.networks["net"].weights, second.state.networks["net"].weights)


def test_every_random_layer_of_torchs_is_swapped_and_named_by_its_place() -> None:
    net = fresh_modules(Wet(), 0)["net"]
    found = {part.name for part in net.modules() if isinstance(part, (Dropout, RReLU))}
    assert found == {"net.1", "net.2", "net.3.1"}
    assert not any(isinstance(part, (nn.Dropout, nn.RReLU)) for part in net.modules())


@pytest.mark.parametrize("layer", [nn.Dropout(0.3), nn.RReLU(0.1, 0.5)], ids=["dropout", "rrelu"])
def test_a_network_that_is_one_random_layer_is_swapped_too_and_does_in_eval_what_torch_does(layer: nn.Module) -> None:
    ours = keyed_({"net": layer})["net"].eval()
    x = torch.linspace(-2, 2, 9)
    assert type(ours) is not type(layer)
    torch.testing.assert_close(ours(x), layer.eval()(x), rtol=0, atol=1e-7)


def test_dropout_keeps_the_share_and_the_mean_and_whole_channels() -> None:
    x = torch.ones(64, 50, 4, 4, dtype=torch.float64)
    with drawing(stream()):
        y = Dropout(0.4, channels=True)(x)
    kept = y[:, :, 0, 0] != 0
    assert bool((y == y[:, :, :1, :1]).all())
    assert abs(float(kept.double().mean()) - 0.6) < 0.03
    assert float(y.max()) == pytest.approx(1 / 0.6)


def test_rrelu_draws_slopes_over_the_whole_range_and_leaves_positive_numbers() -> None:
    x = torch.cat([-torch.ones(4000, dtype=torch.float64), torch.ones(10, dtype=torch.float64)])
    with drawing(stream()):
        y = RReLU(0.1, 0.5)(x)
    slopes = -y[:4000]
    assert 0.1 <= float(slopes.min()) < 0.11 and 0.49 < float(slopes.max()) <= 0.5
    assert abs(float(slopes.mean()) - 0.3) < 0.01
    assert bool((y[4000:] == 1).all())


def test_two_layers_and_two_steps_draw_different_numbers_and_one_layer_the_same_twice() -> None:
    x = torch.ones(200, dtype=torch.float64)

    def drawn(name: str, step: int) -> Tensor:
        with drawing(stream(1, step)):
            answer: Tensor = Dropout(0.5, name=name)(x)
        return answer

    assert torch.equal(drawn("a", 0), drawn("a", 0))
    assert not torch.equal(drawn("a", 0), drawn("b", 0))
    assert not torch.equal(drawn("a", 0), drawn("a", 1))


def test_a_sample_never_loses_all_its_channels_and_others_lose_their_share() -> None:
    x = torch.ones(4000, 3, 2)
    with drawing(stream(0, 0)):
        found = Dropout(0.6, channels=True).train()(x)
    kept = (found[:, :, 0] > 0).sum(1)
    assert int(kept.min()) == 1 and torch.equal(found[:, :, 0], found[:, :, 1])
    # of three channels none would be left in 0.216 of the samples; these keep all three
    expected = torch.tensor([0.0, 0.432, 0.288, 0.064 + 0.216])
    assert float((torch.bincount(kept, minlength=4) / len(x) - expected).abs().max()) < 0.03


def test_an_improved_baseline_of_two_channels_has_gradients_that_are_numbers() -> None:
    net = keyed_({"net": UNet(11, 2, improved=True, resize=True, gates=True)})["net"].train()
    x = torch.randn(2, 11, 4, 24, 24, generator=torch.Generator().manual_seed(0))
    for step in range(4):
        with drawing(stream(0, step)):
            found = torch.autograd.grad(net(x).square().mean(), list(net.parameters()))
        assert all(bool(torch.isfinite(part).all()) for part in found)


def test_layers_that_draw_are_compiled_into_one_graph_and_draw_the_same() -> None:
    net = keyed_({"net": nn.Sequential(nn.Linear(4, 6), nn.RReLU(), nn.Dropout(0.3), nn.Linear(6, 2))})["net"].train()
    graphs = []

    def count(graph: Callable[..., Any], inputs: Any) -> Callable[..., Any]:
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    compiled, x = torch.compile(net, backend=count, dynamic=False), torch.ones(5, 4)
    for step in range(3):
        with drawing(stream(1, step)):
            expected = net(x)
        with drawing(stream(1, step)):
            assert torch.equal(compiled(x), expected)
    assert len(graphs) == 1


class Attentive(nn.Module):
    """Attention drops within torch's own function, out of reach of layers that are swapped."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(4, 1, dropout=0.5, batch_first=True), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(self.attention(x[:, None], x[:, None], x[:, None], need_weights=False)[0][:, 0])
        return answer


class Attending(Fit):
    def networks(self) -> dict[str, nn.Module]:
        return {"net": Attentive()}


def test_what_torch_draws_itself_hangs_on_seed_and_step_alone_and_only_a_loss_asks_for_gradients() -> None:
    weights = []
    for number in range(2):
        engine = Plain(Attending(), training(), 5)
        assert engine.random_layers and not any(p.requires_grad for p in engine.modules["net"].parameters())
        torch.manual_seed(number)  # as the training of another network would have left it
        engine.advance(3)
        weights.append(engine.state.networks["net"].weights)
    assert torch.equal(*weights)
