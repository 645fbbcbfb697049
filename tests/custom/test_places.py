"""Labels of every place, as taggers and segmenters have them, and double precision: from objects to packs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fewer
from fewer.core.errors import UserError
from fewer.custom.places import class_axis

torch.set_num_threads(1)


class Tagger(nn.Module):
    """Words and a number beside each; a class for every word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cells, self.head = nn.Embedding(9, 6), nn.LSTM(7, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, words: Tensor, beside: Tensor) -> Tensor:
        answer: Tensor = self.head(self.cells(torch.cat([self.words(words), beside], -1))[0])
        return answer


def sentences() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    words = torch.randint(0, 9, (40, 5))
    tags = (words % 3).clone()
    tags[::2, 3:] = -100  # padding
    return words, torch.randn(40, 5, 1), tags


def test_a_tagger_is_pruned_trained_hardened_packed_and_takes_other_lengths(tmp_path: Path) -> None:
    words, beside, tags = sentences()
    words_ = {"steps": 60, "batch": 16, "lr": 3e-2, "prune": "lamp,sparsity=0.5", "harden": "fgsm:0.02"}
    run = fewer.train(Tagger(), tmp_path / "run", data=(words, beside, tags), **words_)
    answer = torch.from_numpy(fewer.pack(run, tmp_path / "net.pack").predict(words[4::5].numpy(), beside[4::5].numpy()))
    counts = tags[4::5] != -100  # every fifth sample is held out
    right = (answer.argmax(-1) == tags[4::5])[counts].double().mean()
    loss = nn.functional.cross_entropy(answer.flatten(0, 1), tags[4::5].flatten(), ignore_index=-100)
    assert run.metrics["accuracy"] == pytest.approx(float(right)) and run.metrics["accuracy"] > 0.6
    assert run.metrics["loss"] == pytest.approx(float(loss), rel=1e-4)
    assert fewer.open_pack(tmp_path / "net.pack").predict(words[:2, :3].numpy(), beside[:2, :3].numpy()).shape == (
        2,
        3,
        3,
    )
    read = fewer.load(tmp_path / "run")
    assert fewer.evaluate(read.task, fewer.predictor(read.task, read.modules)) == pytest.approx(run.metrics)
    with pytest.raises(UserError, match="GivenPlaces"):
        fewer.audit(run, "fgsm:0.1", limit=5)


def test_scores_of_pixels_may_lie_behind_the_samples_as_torch_has_them(tmp_path: Path) -> None:
    torch.manual_seed(0)
    images = torch.randn(30, 1, 4, 4)
    labels = (images[:, 0] > 0).long()
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1))
    run = fewer.train(model, tmp_path / "run", data=(images, labels), steps=80, batch=16, lr=1e-2)
    assert run.metrics["accuracy"] > 0.9
    expected = nn.functional.cross_entropy(fewer.to_torch(run).eval()(images[4::5]), labels[4::5])
    assert run.metrics["loss"] == pytest.approx(float(expected.detach()), rel=1e-4)


@pytest.mark.parametrize(
    ("answer", "labels", "axis"),
    [
        ((2, 5, 3), (2, 5), -1), ((2, 3, 5), (2, 5), 1), ((2, 5, 5), (2, 5), -1), ((2, 4, 6, 6), (2, 6, 6), 1),
        ((2, 6, 6, 6), (2, 6, 6), 1), ((2, 6, 7, 4), (2, 6, 7), -1), ((2, 3), (2, 1), None), ((2, 3), (2,), None),
    ],
)  # fmt: skip
def test_the_axis_of_classes_is_the_one_that_labels_leave(answer: tuple, labels: tuple, axis: int | None) -> None:
    assert class_axis(torch.zeros(answer), torch.zeros(labels)) == axis


def test_labels_that_are_no_class_of_a_place_are_one_line(tmp_path: Path) -> None:
    words, beside, tags = sentences()
    for wrong, said in ((tags.clamp(min=-100) + 3, "0 to 2, or -100"), (torch.full_like(tags, -100), "all -100")):
        with pytest.raises(UserError, match=said):
            fewer.train(Tagger(), tmp_path / said, data=(words, beside, wrong), steps=1)
    with pytest.raises(UserError, match="one class a sample"):
        fewer.train(Tagger(), tmp_path / "short", data=(words, beside, tags[:, :4]), steps=1)


def test_a_network_trained_from_double_precision_is_packed_in_its_own(tmp_path: Path) -> None:
    torch.manual_seed(0)
    rows, model = (
        torch.randn(40, 2, 9, dtype=torch.float64),
        nn.Sequential(nn.Conv1d(2, 4, 3), nn.Flatten(), nn.Linear(28, 2)),
    )
    run = fewer.train(model, tmp_path / "run", data=(rows, torch.arange(40) % 2), steps=2, batch=8)
    pack = fewer.pack(run, tmp_path / "net.pack")
    expected = fewer.to_torch(run)(rows[:3].float()).log_softmax(-1).detach().numpy()
    assert pack.networks["net"].inputs[0].dtype == "float32"
    assert np.abs(pack.predict(rows[:3].numpy()) - expected).max() < 1e-5
