"""Python as one writes it in a notebook: five functions, light to import, whose results show themselves."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fewer
from fewer.bench.row import Row
from fewer.core.errors import UserError
from fewer.core.mask import kept
from fewer.run.load import Trained
from fewer.studies.study import Result
from tests import toys


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("run") / "small"
    return fewer.train(
        "vision", out, settings={"network": "cnn0", "classes": (3, 7)}, prune="snip,sparsity=0.8", steps=40
    )


class Cells(HTMLParser):
    """The text of every cell, and that every element that opens also closes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.cells.append(data)


def test_importing_the_package_imports_neither_torch_nor_numpy() -> None:
    code = "import sys, fewer; assert not {'torch', 'numpy'} & set(sys.modules); assert 'train' in dir(fewer)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_opening_a_pack_needs_no_torch() -> None:
    code = "import sys, fewer; fewer.open_pack('digits-3197'); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tarin'"):
        fewer.tarin  # noqa: B018


def test_a_run_trains_with_the_settings_given_and_is_found_again(run: Trained) -> None:
    again = fewer.load(run.path)
    assert again.job.settings == ("network=cnn0", "classes=3,7")
    assert again.job.training.steps == 40 and again.job.training.batch == 128
    assert again.metrics == run.metrics


def test_a_pack_says_what_the_run_says(run: Trained, tmp_path: Path) -> None:
    batch = run.task.data("test").take(torch.arange(5))
    with torch.no_grad():
        expected = run.modules["net"](batch.pixels).log_softmax(1).numpy()
    packed = fewer.pack(run, tmp_path / "small.pack")
    assert np.allclose(packed.predict(batch.pixels.numpy()), expected, atol=1e-5)


def test_a_run_shows_its_figures_and_kept_weights(run: Trained) -> None:
    cells = Cells(run._repr_html_()).cells
    assert f"{run.metrics['accuracy']:.4g}" == cells[cells.index("accuracy") + 1]
    assert f"{kept(run.mask):,} of " in cells[cells.index("weights kept") + 1]


def test_an_audit_shows_every_attack(run: Trained) -> None:
    report = fewer.audit(run, "fgsm:0.1", limit=20)
    cells = Cells(report._repr_html_()).cells
    assert cells[-3].startswith("FGSM") and cells[-1] == f"{report.robust:.2%}"


def test_a_study_and_a_bench_show_their_rows_with_markup_escaped() -> None:
    result = Result("title", ["kept", "a < b"], [[1200, 0.98765]], ["a note"])
    assert Cells(result._repr_html_()).cells == ["kept", "a < b", "1,200", "0.9877"]
    assert "3.00x" in Cells(Row("packs", 1.0, 3.0, "ms", 3.0, "torch")._repr_html_()).cells


def test_a_class_that_cannot_be_imported_again_is_refused(tmp_path: Path) -> None:
    from fewer.systems.vision.task.task import Vision

    class Inner(Vision):
        pass

    with pytest.raises(UserError, match="a class in a file of its own"):
        fewer.train(Inner, tmp_path / "run", steps=1)


def test_a_run_may_be_named_by_its_folder(run: Trained, tmp_path: Path) -> None:
    fewer.pack(run, tmp_path / "a.pack")
    for place in (run.path, str(run.path)):
        fewer.pack(place, tmp_path / "b.pack")
        assert (tmp_path / "b.pack").read_bytes() == (tmp_path / "a.pack").read_bytes()
    assert fewer.audit(run.path, "fgsm:0.1", limit=20).robust == fewer.audit(run, "fgsm:0.1", limit=20).robust


def test_an_instance_of_a_task_is_one_line_that_names_its_class(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"an instance of Fit; .*write train\(Fit, ") as caught:
        fewer.train(toys.Fit(), tmp_path / "run", steps=1)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


class Tied(toys.Fit):
    def networks(self) -> dict[str, nn.Module]:
        first, second = nn.Linear(4, 4), nn.Linear(4, 4)
        second.weight = first.weight
        return {"net": nn.Sequential(first, nn.Tanh(), second, nn.Linear(4, 1))}


@pytest.mark.parametrize("prune", [None, "magnitude,sparsity=0.5"])
def test_layers_that_share_weights_still_share_them_after_training(tmp_path: Path, prune: str | None) -> None:
    net = fewer.train(Tied, tmp_path / "run", prune=prune, steps=3).modules["net"]
    assert net[0].weight is net[2].weight and bool((net[0].weight == 0).any()) == (prune is not None)


class Sharing(toys.Fit):
    def networks(self) -> dict[str, nn.Module]:
        shared = nn.Linear(4, 4)
        return {"net": nn.Sequential(shared, nn.Linear(4, 1)), "other": nn.Sequential(shared)}


def test_networks_that_share_a_parameter_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"other\.0\.weight, which is also net\.0\.weight"):
        fewer.train(Sharing, tmp_path / "run", steps=1)
    assert not (tmp_path / "run").exists()
