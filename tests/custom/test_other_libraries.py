"""Pruning inside other libraries' training: scikit-learn, Lightning and Hugging Face, each against the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import fewer
from fewer.core.errors import UserError
from fewer.custom.pruner import Pruner

torch.set_num_threads(1)
STEPS, SPARSITY = 24, 0.8
X = torch.randn(96, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()
RECIPES = ["lamp,when=gradual", "magnitude", "random,when=gradual,scope=layer"]


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 2))


def by_hand(prune: str) -> dict[str, Tensor]:
    """The masks of a plain loop with the same batches and the same optimiser."""
    net, pruner = network(), Pruner(prune, sparsity=SPARSITY)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    pruner.begin_(net, STEPS)
    for step in range(STEPS):
        rows = slice(step % 12 * 8, step % 12 * 8 + 8)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X[rows]), Y[rows]).backward()
        optimizer.step()
        pruner.step_(net, step + 1)
    check(net, pruner)
    return pruner.mask


def check(net: nn.Module, pruner: Pruner) -> None:
    """Exactly as many are kept as were asked for, and what is not kept is zero."""
    total = sum(p.numel() for p in net.parameters() if p.ndim > 1)
    assert sum(int(m.sum()) for m in pruner.mask.values()) == round((1 - SPARSITY) * total)
    assert not any(bool(net.get_parameter(name)[~m].any()) for name, m in pruner.mask.items())
    everything = sum(p.numel() for p in net.parameters())
    assert pruner.count(net).kept == everything - total + round((1 - SPARSITY) * total)


@pytest.mark.parametrize("prune", RECIPES)
def test_a_loop_of_ones_own_ends_at_the_sparsity(prune: str) -> None:
    assert by_hand(prune)


@pytest.mark.parametrize(
    ("prune", "said"), [("snip", "magnitude, lamp, random"), ("lamp,when=rigl", "start or gradual")]
)
def test_what_needs_data_or_chooses_by_itself_is_one_line(prune: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        Pruner(prune)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("prune", RECIPES)
def test_lightning_prunes_as_a_plain_loop_does(prune: str, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def training_step(self, batch: Any, _index: int) -> Tensor:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    callback = fewer.lightning.Prune(prune, sparsity=SPARSITY)
    trainer = lightning.Trainer(
        max_epochs=2, callbacks=[callback], logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accelerator="cpu", default_root_dir=tmp_path,
    )  # fmt: skip
    module = Module()
    hooks = (callback.on_train_start, callback.on_train_batch_end, module.training_step, module.configure_optimizers)
    assert all(hook.__func__ is not getattr(lightning.LightningModule, hook.__name__, None) for hook in hooks)
    trainer.fit(module, DataLoader(TensorDataset(X, Y), 8))
    check(module, callback.pruner)
    assert float(trainer.callback_metrics["density"]) == pytest.approx(callback.pruner.count(module).density)
    if "random" not in prune:  # which draws by name, and names begin with net. here
        expected = by_hand(prune)
        assert all(
            torch.equal(mask, expected[name.removeprefix("net.")]) for name, mask in callback.pruner.mask.items()
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("prune", RECIPES)
def test_hugging_face_prunes_as_a_plain_loop_does(prune: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.net(x)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    callback = fewer.transformers.Prune(prune, sparsity=SPARSITY)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), max_steps=STEPS, per_device_train_batch_size=8, learning_rate=0.1, optim="sgd",
        optim_args="momentum=0.9", lr_scheduler_type="constant", report_to=[], use_cpu=True, max_grad_norm=0.0,
        logging_steps=5, save_strategy="no", disable_tqdm=True, train_sampling_strategy="sequential",
    )  # fmt: skip
    rows = [{"x": x, "labels": y} for x, y in zip(X, Y)]
    model = Model()
    assert callback.on_train_begin and callback.on_step_end
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[callback])
    trainer.train()
    check(model, callback.pruner)
    logged = [line["density"] for line in trainer.state.log_history if "density" in line]
    assert logged and logged[-1] == pytest.approx(callback.pruner.count(model).density)
    if "random" not in prune:
        expected = by_hand(prune)
        assert all(
            torch.equal(mask, expected[name.removeprefix("net.")]) for name, mask in callback.pruner.mask.items()
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["SparseClassifier", "SparseRegressor"])
def test_scikit_learns_own_suite_accepts_the_estimators(name: str) -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks", reason="scikit-learn is not installed")
    checks.check_estimator(getattr(fewer.sklearn, name)(hidden=(40,), steps=150, batch=32))


def test_few_rows_of_many_classes_are_learned_whatever_the_random_state() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    chance = np.random.RandomState(0)
    for state in range(6):
        rows, classes = chance.randn(80, 3), chance.randint(0, 6, 80)
        found = fewer.sklearn.SparseClassifier(hidden=(20,), steps=60, batch=32, random_state=state).fit(rows, classes)
        assert all(bool((p != 0).flatten(1).any(1).all()) for p in list(found.network_.parameters())[-2:-1])


def test_an_estimator_keeps_the_share_asked_for_and_learns() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    x = np.random.default_rng(0).normal(size=(300, 8))
    names = np.array(["low", "high"])[(x[:, 0] + x[:, 1] > 0).astype(int)]
    found = fewer.sklearn.SparseClassifier(sparsity=0.8, steps=200, random_state=0).fit(x, names)
    weights = [p for p in found.network_.parameters() if p.ndim > 1]
    kept = sum(int((w != 0).sum()) for w in weights)
    assert kept == round(0.2 * sum(w.numel() for w in weights)) and found.density_ == pytest.approx(0.2)
    assert found.score(x, names) > 0.9
    assert fewer.sklearn.SparseRegressor().__sklearn_tags__().target_tags.multi_output
    line = fewer.sklearn.SparseRegressor(sparsity=0.5, steps=200, random_state=0).fit(x, 3 * x[:, 0] + 100)
    assert line.score(x, 3 * x[:, 0] + 100) > 0.8
