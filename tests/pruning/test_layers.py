"""Every layer of torch.nn is prunable, carried along or refused in one line; none is silently left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewer.core.data import TensorData
from fewer.core.engines.base import Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.mask import kept, prunable, total
from fewer.pruning.criteria import CRITERIA
from fewer.pruning.paths.lint import attempted
from fewer.pruning.pruning import Pruning, mask_for, prune_
from fewer.pruning.schedules.gradual import events_for
from fewer.sparse.engine import sparse_engine
from tests.toys import Fit, Pairs

pytestmark = pytest.mark.filterwarnings(
    "ignore:There is a performance drop", "ignore:enable_nested_tensor", "ignore:LSTM with projections"
)
RNN = "weight_ih_l0 weight_hh_l0"
# how to make it, and which of its parameters are weights to prune
PRUNABLE: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "Linear": (lambda: nn.Linear(4, 3), "weight"),
    "LinearCrossEntropyLoss": (lambda: nn.LinearCrossEntropyLoss(4, 3), "linear.weight"),
    "RNNCellBase": (lambda: nn.RNNCellBase(2, 4, True, 1), "weight_ih weight_hh"),
    "DataParallel": (lambda: nn.DataParallel(nn.Linear(4, 3)), "module.weight"),
    "Bilinear": (lambda: nn.Bilinear(2, 3, 4), "weight"),
    "Conv1d": (lambda: nn.Conv1d(2, 4, 3), "weight"),
    "Conv2d": (lambda: nn.Conv2d(4, 4, 3, groups=2), "weight"),
    "Conv3d": (lambda: nn.Conv3d(2, 4, 3), "weight"),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 2, 3, groups=2), "weight"),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 4, 3), "weight"),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 4, 3), "weight"),
    "Embedding": (lambda: nn.Embedding(5, 3), "weight"),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 3), "weight"),
    "RNN": (lambda: nn.RNN(1, 4), RNN),
    "RNNCell": (lambda: nn.RNNCell(2, 4), "weight_ih weight_hh"),
    "GRU": (lambda: nn.GRU(2, 4, bidirectional=True), f"{RNN} weight_ih_l0_reverse weight_hh_l0_reverse"),
    "GRUCell": (lambda: nn.GRUCell(2, 4), "weight_ih weight_hh"),
    "LSTM": (lambda: nn.LSTM(2, 4, proj_size=3), f"{RNN} weight_hr_l0"),
    "LSTMCell": (lambda: nn.LSTMCell(2, 4), "weight_ih weight_hh"),
    "RNNBase": (lambda: nn.RNNBase("GRU", 2, 4), RNN),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True), "in_proj_weight out_proj.weight"),
    "AdaptiveLogSoftmaxWithLoss": (lambda: nn.AdaptiveLogSoftmaxWithLoss(32, 9, [3, 5]), ""),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8), ""),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(4, 2, 8), ""),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1), ""),
    "TransformerDecoder": (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1), ""),
    "Transformer": (lambda: nn.Transformer(4, 2, 1, 1, 8), ""),
}  # fmt: skip
LAYERS = sorted(name for name, kind in vars(nn).items() if inspect.isclass(kind) and issubclass(kind, nn.Module))


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_class_has_its_place(name: str) -> None:
    made: Any
    if name.startswith("Lazy"):
        task = Fit()
        kind, rank = getattr(nn, name), 1 if name in ("LazyLinear",) else 2
        made = kind(*(3, 3)[:rank]) if "Norm" not in name else kind()
        task.networks = lambda: {"net": made}  # type: ignore[method-assign]
        with pytest.raises(UserError, match="call the network once") as caught:
            fresh_modules(task, 0)
        assert "\n" not in str(caught.value)
    elif name in PRUNABLE:
        make, names = PRUNABLE[name]
        found = prunable(make())
        assert found == names.split() if names else len(found) >= 4
        assert not [key for key in found if "bias" in key or "norm" in key]
    else:  # norms and what has no weights: carried along whole; a new layer that has some needs a line above
        made = None
        for given in ((), (2,), (2, 2), (1, (2, 2))):
            made = attempted(partial(getattr(nn, name), *given)) if made is None else made
        assert made is not None and prunable(made) == []


class Sequence(nn.Module):
    """(batch, 4) as a sequence of four, through a layer, to one number."""

    def __init__(self, layer: nn.Module, before: nn.Module, size: int) -> None:
        super().__init__()
        self.before, self.layer, self.head = before, layer, nn.Linear(size, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x[:, :, None])
        answer: Any = self.layer(x, x, x) if isinstance(self.layer, nn.MultiheadAttention) else self.layer(x)
        seen: Tensor = answer[0] if isinstance(answer, tuple) else answer
        last: Tensor = self.head(seen[:, -1])
        return last


class Tokens(nn.Module):
    """Whole numbers through a table."""

    def __init__(self, table: nn.Module) -> None:
        super().__init__()
        self.table, self.head = table, nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        found = self.table(x)
        answer: Tensor = self.head(found if found.ndim == 2 else found.mean(1))
        return answer


class Pairwise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.both, self.head = nn.Bilinear(4, 4, 6), nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(self.both(x, x))
        return answer


class Table(nn.Module):
    """A parameter that belongs to no layer of torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.mixing, self.token = nn.Parameter(torch.randn(4, 6)), nn.Parameter(torch.randn(1, 6))
        self.head = nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(torch.tanh(x @ self.mixing + self.token))
        return answer


def images(*layers: nn.Module, shape: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, shape), *layers, nn.Flatten(), nn.LazyLinear(1))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "rnn": lambda: Sequence(nn.RNN(1, 6, 2, batch_first=True), nn.Identity(), 6),
    "gru": lambda: Sequence(nn.GRU(1, 6, batch_first=True, bidirectional=True), nn.Identity(), 12),
    "lstm": lambda: Sequence(nn.LSTM(1, 6, batch_first=True, proj_size=4), nn.Identity(), 4),
    "attention": lambda: Sequence(nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(1, 6), 6),
    "projections": lambda: Sequence(nn.MultiheadAttention(6, 2, kdim=6, vdim=6, batch_first=True), nn.Linear(1, 6), 6),
    "transformer": lambda: Sequence(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), 1), nn.Linear(1, 6), 6
    ),
    "embedding": lambda: Tokens(nn.Embedding(9, 6)),
    "bag": lambda: Tokens(nn.EmbeddingBag(9, 6)),
    "bilinear": Pairwise,
    "custom": Table,
    "conv1d": lambda: images(nn.Conv1d(2, 4, 2, groups=2), shape=(2, 2)),
    "conv2d": lambda: images(nn.Conv2d(1, 4, 2), nn.ReLU(), shape=(1, 2, 2)),
    "conv3d": lambda: images(nn.Conv3d(1, 4, 1), shape=(1, 1, 2, 2)),
    "transposed1d": lambda: images(nn.ConvTranspose1d(2, 4, 2, groups=2), shape=(2, 2)),
    "transposed2d": lambda: images(nn.ConvTranspose2d(1, 4, 2), shape=(1, 2, 2)),
    "transposed3d": lambda: images(nn.ConvTranspose3d(1, 4, 2), shape=(1, 1, 2, 2)),
}  # fmt: skip


class OneOf(Fit):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        if name in ("embedding", "bag"):
            batch = self.samples.samples
            self.samples = TensorData(Pairs((batch.x * 4 + 4).long(), batch.y))

    def networks(self) -> dict[str, nn.Module]:
        net = NETWORKS[self.name]()
        net(self.samples.samples.x[:2].to(torch.get_default_dtype() if self.name not in ("embedding", "bag") else int))
        return {"net": net}


def left(state: Any, replica: int = 0) -> tuple[int, int]:
    """Weights that are kept, and all, of what can be pruned; what is not kept is zero."""
    mask, weights = state.mask_of(replica)["net"], state.weights_of(replica)["net"]
    assert not any(bool(weights[key][~m].any()) for key, m in mask.items())
    return kept({"net": mask}), total({"net": mask})


@pytest.mark.parametrize("name", NETWORKS)
def test_every_criterion_and_schedule_prunes_every_kind_of_layer_on_every_engine(name: str) -> None:
    task, training = OneOf(name), Training(12, 10, precision="float64")
    modules = {key: module.double() for key, module in fresh_modules(task, 0).items()}
    for method in CRITERIA:
        if (name, method) == ("bag", "grasp"):
            with pytest.raises(UserError, match="layers with second derivatives; --prune snip"):
                mask_for(task, modules, Pruning(method, 0.5, samples=10), seed=0)
            continue
        mask = mask_for(task, modules, Pruning(method, 0.5, scope="layer", samples=10, iterations=2), seed=0)["net"]
        assert set(mask) == set(prunable(modules["net"]))
        assert sum(int(m.sum()) for m in mask.values()) == round(sum(m.numel() for m in mask.values()) / 2)
    for when in ("gradual", "set", "rigl"):
        pruning = Pruning("magnitude", 0.5, scope="layer", samples=10, when=when, every=2)
        engines = [Plain(task, training, 1), Cohort(task, training, [0, 1]), Plain(task, training, 1)]
        for engine in engines:
            for replica in range(engine.state.replicas if when != "gradual" else 0):
                prune_(engine, pruning, replica)
        engines[2] = sparse_engine(engines[2])
        for engine in engines:
            (event,) = events_for([pruning] * engine.state.replicas, training.steps)
            for step in range(training.steps):
                if event.next(step) == step:
                    event.act(engine)
                engine.advance(1)
        found = [left(engine.state, engine.state.replicas - 1) for engine in engines]
        assert found[0] == found[1] == found[2] == (round(found[0][1] / 2), found[0][1])
        weights = [engine.state.weights_of(engine.state.replicas - 1)["net"] for engine in engines]
        for key, tensor in weights[0].items():
            assert torch.allclose(tensor, weights[1][key], atol=1e-7), key
            assert torch.allclose(tensor, weights[2][key], atol=1e-7), key


def test_an_embedding_loses_whole_rows_where_so_asked() -> None:
    task = OneOf("embedding")
    modules = fresh_modules(task, 0)
    pruning = Pruning("magnitude", 0.5, scope="layer", samples=10, rows=True)
    mask = mask_for(task, modules, pruning, seed=0)["net"]["table.weight"]
    whole = mask.all(1) | ~mask.any(1)
    assert int(mask.sum()) == 27 and int((~whole).sum()) <= 1
    rows = modules["net"].get_parameter("table.weight").detach().abs().mean(1)
    assert float(rows[mask.any(1)].min()) >= float(rows[~mask.any(1)].max())
