"""A network as an object, with its weights: pruned, trained, read again elsewhere, and given back to torch."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import fewer
from fewer.core.errors import UserError
from fewer.core.mask import prunable

torch.set_num_threads(1)
X = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > X[:, 1]).long()


class Mlp(nn.Module):
    """With a norm, dropout, a shared weight and a buffer that no state dict has."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1))
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.second.weight = self.first.weight
        self.head = nn.Linear(width, 2)
        self.register_buffer("scale", torch.ones(width), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(torch.relu(self.second(torch.relu(self.first(self.body(x) * self.scale)))))
        return answer


def pretrained() -> Mlp:
    """Weights that no seed draws."""
    torch.manual_seed(5)
    net = Mlp()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.01)
    return net


def counted(module: nn.Module) -> tuple[int, int]:
    weights = [parameter for parameter in module.parameters() if parameter.ndim > 1]
    return sum(int((w != 0).sum()) for w in weights), sum(w.numel() for w in weights)


def test_pruning_at_once_keeps_the_share_asked_for_and_the_weights_that_stay() -> None:
    net = pretrained()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    small = fewer.prune(net, (X, Y), sparsity=0.9)
    kept, total = counted(small)
    assert kept == round(0.1 * total) and type(small) is Mlp
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    for key, value in small.state_dict().items():
        assert torch.equal(value[value != 0], before[key][value != 0])
    optimizer = torch.optim.AdamW(small.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(small(X), Y).backward()
        optimizer.step()
    assert counted(small)[0] <= kept


@pytest.mark.parametrize("prune", ["lamp,sparsity=0.8", "magnitude,sparsity=0.8,when=gradual", "snip,sparsity=0.8"])
def test_training_begins_at_the_weights_given_and_ends_at_the_sparsity(prune: str, tmp_path: Path) -> None:
    net = pretrained()
    run = fewer.train(net, tmp_path / "none", data=(X, Y), steps=0)
    for key, value in net.state_dict().items():
        assert torch.equal(run.modules["net"].state_dict()[key], value)
    lines: list[dict[str, Any]] = []
    run = fewer.train(
        net, tmp_path / "run", data=(X, Y), prune=prune, steps=60, batch=32, lr=3e-3, callbacks=[lines.append]
    )
    kept, total = counted(fewer.to_torch(run))
    assert kept == round(0.2 * total) and lines[-1]["step"] == 60
    assert run.metrics["accuracy"] > 0.7
    again = fewer.train(net, tmp_path / "run", data=(X, Y), prune=prune, steps=60, batch=32, lr=3e-3)
    assert again.metrics == run.metrics
    with torch.no_grad():
        net.head.bias.add_(1)
    with pytest.raises(UserError, match="holds another run: settings"):
        fewer.train(net, tmp_path / "run", data=(X, Y), prune=prune, steps=60, batch=32, lr=3e-3)


READ = """
import sys, numpy as np, torch, fewer
run = fewer.load(sys.argv[1])
state = fewer.to_torch(run, "state_dict")
np.savez(sys.argv[2], **{key: value.numpy() for key, value in state.items()})
x = torch.linspace(-1, 1, 18).reshape(3, 6)
print(fewer.to_torch(run)(x).detach().numpy().tolist())
metrics = fewer.evaluate(run.task, fewer.predictor(run.task, run.modules))
assert metrics == run.metrics, (metrics, run.metrics)
fewer.pack(run, sys.argv[1] + "/it.pack").predict(x.numpy())
fewer.audit(run, "fgsm:0.1", limit=20)
"""


def test_another_process_reads_the_run_without_the_class_and_the_state_loads_into_it(tmp_path: Path) -> None:
    run = fewer.train(pretrained(), tmp_path / "run", data=(X, Y), prune="lamp", steps=20, harden="fgsm:0.1")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(run.path), str(tmp_path / "state.npz")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    state = {key: torch.from_numpy(value) for key, value in np.load(tmp_path / "state.npz").items()}
    net = Mlp()
    net.load_state_dict(state)
    x = torch.linspace(-1, 1, 18).reshape(3, 6)
    assert np.allclose(np.array(eval(done.stdout)), net.eval()(x).detach().numpy(), atol=1e-6)
    assert net.first.weight is net.second.weight
    program = fewer.to_torch(run, "program").module()
    assert torch.allclose(program(x), net(x), atol=1e-6)


def test_what_cannot_be_exported_trains_and_says_what_to_do(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(6, 2)

        def forward(self, x: Tensor) -> Tensor:
            answer: Tensor = self.head(x * float(x.abs().sum().item() > 0))
            return answer

    net = Odd()
    with pytest.warns(UserWarning, match=r"fewer\.load\(path, model=\.\.\.\)"):
        run = fewer.train(net, tmp_path / "run", data=(X, Y), steps=3)
    path, weight = run.path, run.modules["net"].get_parameter("head.weight")
    del net, run
    gc.collect()
    with pytest.raises(UserError, match="torch could not export"):
        fewer.load(path)
    assert torch.equal(fewer.load(path, model=Odd()).modules["net"].get_parameter("head.weight"), weight)


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other, self.head = nn.Linear(6, 8), nn.Embedding(5, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor, kind: Tensor) -> Any:
        from types import SimpleNamespace

        return SimpleNamespace(logits=self.head(torch.relu(self.one(x) + self.other(kind))))


KIND = torch.arange(200) % 5
FORMS: dict[str, Any] = {
    "arrays of numpy in double precision": (Mlp, (X.double().numpy(), Y.numpy())),
    "a data set": (Mlp, TensorDataset(X, Y)),
    "a loader": (Mlp, DataLoader(TensorDataset(X, Y), 32, shuffle=True)),
    "splits of loaders": (Mlp, {"train": DataLoader(TensorDataset(X, Y), 32), "test": [(X, Y)]}),
    "splits of arrays": (Mlp, {"train": (X, Y), "test": (X, Y), "validation": (X, Y)}),
    "two inputs": (Two, DataLoader(TensorDataset(X, KIND, Y), 32)),
    "two inputs as a pair": (Two, {split: [((X, KIND), Y)] for split in ("train", "test")}),
    "dicts": (Two, [{"kind": KIND, "x": X, "labels": Y}]),
    "a dict of arrays": (Two, {"kind": KIND.numpy(), "x": X.numpy(), "labels": Y.numpy()}),
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.replace(" ", "-"))
def test_data_may_come_in_every_usual_form(form: str, tmp_path: Path) -> None:
    kind, data = FORMS[form]
    torch.manual_seed(0)
    run = fewer.train(kind(), tmp_path / "run", data=data, prune="snip,sparsity=0.5,samples=50", steps=10, batch=16)
    kept, total = counted(fewer.to_torch(run))
    assert kept == round(0.5 * total) == sum(int(m.sum()) for m in run.mask["net"].values())
    assert 0 <= fewer.load(run.path).metrics["accuracy"] <= 1
    assert fewer.load(tmp_path / "run", data=data).metrics == run.metrics


def test_several_seeds_begin_at_the_same_weights_and_are_all_returned(tmp_path: Path) -> None:
    net = pretrained()
    run = fewer.train(net, tmp_path / "run", data=(X, Y), steps=4, seeds="0-2", prune="lamp,sparsity=0.5")
    assert [part.job.seeds[0] for part in run.replicas] == [0, 1, 2] and run.metrics == run.replicas[0].metrics
    assert len({float(part.modules["net"].get_parameter("head.weight").detach().sum()) for part in run.replicas}) == 3
    del net
    assert fewer.load(tmp_path / "run/seed-1").metrics == run.replicas[1].metrics


def test_quantities_are_told_from_classes_by_the_targets(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    run = fewer.train(net, tmp_path / "run", data=(X, X[:, :1] * 2), steps=100, lr=0.01, prune="lamp,sparsity=0.5")
    assert run.metrics["r2"] > 0.5


def test_every_prunable_parameter_of_a_given_network_is_in_the_mask(tmp_path: Path) -> None:
    run = fewer.train(pretrained(), tmp_path / "run", data=(X, Y), steps=1, prune="magnitude,sparsity=0.5,scope=layer")
    assert set(run.mask["net"]) == set(prunable(Mlp()))


NOTEBOOK = """
import sys, torch, fewer
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 2)
    def forward(self, x):
        return self.head(x)

class Mine(fewer.Classification):
    def model(self):
        return Net()
    def loaders(self):
        x = torch.randn(60, 6, generator=torch.Generator().manual_seed(0))
        return {"train": [(x, (x[:, 0] > 0).long())], "test": [(x, (x[:, 0] > 0).long())]}

run = fewer.train(Mine, sys.argv[1] + "/class", steps=5, prune="lamp,sparsity=0.5")
again = fewer.train(Net(), sys.argv[1] + "/object", steps=5, data=Mine().loaders())
print(type(fewer.to_torch(again)).__name__, fewer.load(run.path).metrics == run.metrics)
"""


def test_classes_of_a_notebook_train_and_are_read_after_it_has_ended(tmp_path: Path) -> None:
    words = [sys.executable, "-c", NOTEBOOK, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Net", "True"] and done.stderr == ""
    for name in ("class", "object"):
        run = fewer.load(tmp_path / name)
        assert fewer.evaluate(run.task, fewer.predictor(run.task, run.modules)) == pytest.approx(run.metrics)
