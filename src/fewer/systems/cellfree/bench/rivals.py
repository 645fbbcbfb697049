"""What a user would write instead: torch.nn.utils.prune around ordinary training, the paper's graph network in PyG.

torch.nn.utils.prune keeps every weight and multiplies by a mask in each forward; PyG gathers and scatters messages.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from fewer.bench.row import Row, interleaved_seconds
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import MissingExtra
from fewer.core.seed import Stream
from fewer.sparse.convert import convert
from fewer.systems.cellfree.task.hetero import hetero_data
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.task import CellFree, Reports, phones_of

__all__ = ["run"]

SIZES, BATCH = (23, 750, 750, 6), 100  # BCQ's decoder and batch
SPARSITIES = (0.9, 0.95)
PHONES = 500


def run(quick: bool = False) -> list[Row]:
    """Training steps a second of one pruned network, and predictions a second of the paper's graph network."""
    rounds = 5 if quick else 21
    return [*[_pruned(sparsity, rounds) for sparsity in SPARSITIES], _graph(rounds)]


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for before, after in pairwise(SIZES):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _pruned(sparsity: float, rounds: int) -> Row:
    """The same random masks on both sides, plain Adam on both."""
    theirs = _network()
    ours = copy.deepcopy(theirs)
    for part in theirs:
        if isinstance(part, nn.Linear):
            prune.random_unstructured(part, "weight", amount=sparsity)
    buffers = dict(theirs.named_buffers())
    masks = {name.removesuffix("_mask"): mask.bool() for name, mask in buffers.items() if name.endswith("weight_mask")}
    calls = {"ours": _step(convert(ours, masks)), "theirs": _step(theirs)}
    seconds = interleaved_seconds(calls, rounds=rounds, repeats=5)
    what = f"training {'-'.join(map(str, SIZES))}, {sparsity:.0%} pruned, batch {BATCH}"
    return Row(what, 1 / seconds["ours"], 1 / seconds["theirs"], "steps/s", seconds["theirs"] / seconds["ours"],
               "torch.nn.utils.prune, Adam")  # fmt: skip


def _step(net: nn.Module) -> Callable[[], None]:
    torch.manual_seed(1)
    inputs, targets = torch.randn(BATCH, SIZES[0]), torch.randn(BATCH, SIZES[-1])
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        (net(inputs) - targets).square().mean().backward()
        optimizer.step()

    return step


def _graph(rounds: int) -> Row:
    """The paper's network on its L = 100 access points, the same weights on both sides."""
    try:
        geometric: Any = importlib.import_module("torch_geometric.nn")
    except ImportError:
        raise MissingExtra(
            "no torch_geometric", "PyTorch Geometric to compare with", "pip install 'fewer[dev]'"
        ) from None
    task = CellFree(Settings(model="sage", learn_missing=0.0, train_phones=PHONES, test_phones=PHONES))
    survey, net = task.survey("test"), fresh_modules(task, 0)["net"]
    graph, reports = hetero_data(task.world, survey), task.inputs(phones_of(survey))
    nets, noise = NetworkSet({"net": net}, training=False), Stream(torch.tensor(0), torch.tensor(0))
    with torch.no_grad():
        calls: dict[str, Callable[[], Tensor]] = {
            "ours": lambda: task.logits(nets, reports, noise),
            "theirs": partial(_message_passing, geometric, task, net, graph, reports),
        }
        difference = (calls["theirs"]().view(PHONES, -1)[:, 1:] - calls["ours"]()).abs().max()
        if not float(difference) < 1e-2:
            raise RuntimeError(f"the two networks differ by {float(difference):.3g}")
        seconds = interleaved_seconds(calls, rounds=rounds)
    return Row(f"the paper's graph network, {PHONES} phones", PHONES / seconds["ours"], PHONES / seconds["theirs"],
               "phones/s", seconds["theirs"] / seconds["ours"], "PyTorch Geometric message passing")  # fmt: skip


def _message_passing(geometric: Any, task: CellFree, net: Any, graph: Any, reports: Reports) -> Tensor:
    """Equations 2 to 4 as PyG's users write them."""
    near = graph["access_point", "near", "access_point"].edge_index
    serves = graph["access_point", "serves", "phone"].edge_index
    aggregate, points = geometric.aggr.MaxAggregation(), len(task.world.deployment)

    def pooled(convolution: Any, h: Tensor, edges: Tensor, count: int) -> Tensor:
        return aggregate(convolution.message(h)[edges[0]], edges[1], dim_size=count, dim=0)  # type: ignore[no-any-return]

    h = task.constants["features"]
    for convolution in (net.first, net.second):
        h = convolution.update(h, pooled(convolution, h, near, points))
    phones = torch.selu(net.phone(task.node_features(reports)))
    for convolution in (net.third, net.fourth):
        heard = pooled(convolution, h, serves, len(phones))
        h, phones = convolution.update(h, None), convolution.update(phones, heard)
    return (h[serves[0]] * phones[serves[1]]).sum(1)
