"""A network that somebody has trained on photographs, pruned to a tenth by `fewer.train(network, ...)`.

Three trainings, each through the path that a user's own network takes: `dense` from first weights, then from its
weights `pruned`, and `further`, which trains as long and as `pruned` does but loses nothing: what tuning alone is
worth. Every tenth training image is held out for validation; no choice was made on test images. Without --data, and
at scale quick, the embedded digits stand in.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.core.settings import from_text
from fewer.pruning.reach import count
from fewer.run import api
from fewer.run.load import Trained
from fewer.studies.order import Order
from fewer.studies.pieces import Piece, Pieces, choice
from fewer.studies.remarks import Record
from fewer.studies.study import Result
from fewer.systems.vision.studies.light.photo_training import pixels
from fewer.systems.vision.task.data import load, mixed, split_up, tensors
from fewer.systems.vision.task.deep import resnet
from fewer.systems.vision.task.networks import Normalise

__all__ = ["Recipe", "Slim", "catalogue", "pretrained", "settings", "within"]

DENSE, PRUNED, FURTHER = PIECES = ("dense", "pruned", "further")
_HELD_OUT = 0.1
_PACK = "network.pack"


@dataclass(frozen=True)
class Recipe:
    """Sizes of the study."""

    width: int = choice(16, "channels of the first stage; each of four stages has one block and twice as many")
    epochs: int = choice(5, "of the dense training")
    tuning: int = choice(4, "epochs of the trainings that begin at its weights")
    batch: int = choice(128, "images in a batch")
    lr: float = choice(0.1, "highest rate of the dense training")
    tuning_lr: float = choice(0.05, "highest rate of the other two")
    sparsity: float = choice(0.9, "share of the prunable weights that goes")
    precision: str = choice("bfloat16", "of the forward pass in training; tests are in float32")
    prune: str = choice("lamp,when=gradual,begin=0.05,end=0.5", "by what and when")


class Slim(nn.Module):
    """A residual network of ten layers; what it is given are pixels from 0 to 1."""

    def __init__(self, images: Tensor, classes: int, width: int) -> None:
        super().__init__()
        self.normalise = Normalise(images.mean((0, 2, 3)), images.std((0, 2, 3)))
        self.body, features = resnet((images.shape[1], images.shape[2], images.shape[3]), width=width, blocks=(1,) * 4)
        self.head = nn.Linear(features, classes)

    def forward(self, pixels: Tensor) -> Tensor:
        """(batch, channels, height, width) to (batch, classes)."""
        # channels last: an update of the slim network takes 0.81 of the time on a Zen 4 core
        seen: Tensor = self.normalise(pixels).contiguous(memory_format=torch.channels_last)
        answer: Tensor = self.head(self.body(seen))
        return answer


def _recipe(order: Order) -> Recipe:
    quick = Recipe(width=4, epochs=1, tuning=1, batch=32, tuning_lr=0.02, sparsity=0.8)
    return from_text(Recipe, order.words, quick if order.scale == "quick" else Recipe())


def settings(order: Order) -> dict[str, Any]:
    """What an order stands for."""
    return asdict(_recipe(order))


def catalogue(order: Order) -> Pieces:
    """The three trainings."""
    recipe = _recipe(order)
    lines = {
        DENSE: f"width {recipe.width}, {recipe.epochs} epochs of batch {recipe.batch}",
        PRUNED: f"{recipe.prune} to {recipe.sparsity:.0%} in {recipe.tuning} epochs from {DENSE}",
        FURTHER: f"{recipe.tuning} epochs from {DENSE}, nothing pruned",
    }
    made = {
        name: Piece(line, lambda name=name: train(name, recipe, order), late=name != DENSE)  # type: ignore[misc]
        for name, line in lines.items()
    }
    return Pieces(made, Recipe)


def _splits(order: Order) -> dict[str, tuple[Tensor, Tensor]]:
    if order.scale != "quick" and not order.data:
        raise UserError("no --data", "photographs", "fewer reproduce vision/pretrained --data cifar10-jpeg.tar.xz")
    arrays = {split: mixed(part) for split, part in load(order.data or "digits").items()}
    return {split: tuple(tensors(part)) for split, part in split_up(arrays, _HELD_OUT).items()}  # type: ignore[misc]


def _folder(name: str, order: Order) -> Folder:
    return Folder(order.out / "pretrained" / name)


def train(name: str, recipe: Recipe, order: Order) -> None:
    """One training into its folder, with what its network and its pack score."""
    folder = _folder(name, order)
    if (folder.path / "row.json").exists():
        return
    data = _splits(order)
    torch.manual_seed(0)
    net: nn.Module = Slim(data["train"][0], int(data["train"][1].max()) + 1, recipe.width)
    if name != DENSE:
        net.load_state_dict(api.to_torch(_finished(order), "state_dict"))
    run = api.train(net, folder.path, data=data, **_words(name, recipe, len(data["train"][1])))
    folder.write_json("row.json", _row(name, run, folder))
    order.log(f"{name}: {run.metrics}")


def _words(name: str, recipe: Recipe, images: int) -> Any:
    epochs, lr = (recipe.epochs, recipe.lr) if name == DENSE else (recipe.tuning, recipe.tuning_lr)
    steps = max(1, epochs * images // recipe.batch)
    prune = {"prune": recipe.prune, "sparsity": recipe.sparsity} if name == PRUNED else {}
    optimizer = f"sgd,lr={lr},weight_decay=5e-4,warmup={steps // 10},decay_from=0"
    words = {"steps": steps, "batch": recipe.batch}
    return {**words, "optimizer": optimizer, "precision": recipe.precision, **prune}


def _finished(order: Order) -> Path:
    folder = _folder(DENSE, order)
    if not (folder.path / "row.json").exists():
        raise UserError(f"no finished {DENSE} in {order.out}", "it", f"--pieces {DENSE} first")
    return folder.path


def _row(name: str, run: Trained, folder: Folder) -> dict[str, Any]:
    """Validation and test, and the pack beside the network, on every test image."""
    pack = api.pack(run, folder.path / _PACK)
    packed = evaluate(run.task, lambda batch: torch.from_numpy(pack.predict(batch.x.numpy())))
    held_out = evaluate(run.task, predictor(run.task, run.modules), "validation")
    return {
        "training": name,
        **run.metrics,
        **count(run.task, run.modules, run.mask).metrics(),
        "validation": held_out["accuracy"], "packed": packed["accuracy"],
        "pack_bytes": (folder.path / _PACK).stat().st_size, "test_images": len(run.task.data("test")),
        "train_images": len(run.task.data("train")), "steps": run.job.training.steps,
    }  # fmt: skip


def pretrained(order: Order) -> Result:
    """The table of what is finished; at scale quick all is made first."""
    recipe = _recipe(order)
    if order.scale == "quick":
        for piece in catalogue(order).every.values():
            piece.make()
    found = [
        _folder(name, order).read_json("row.json")
        for name in PIECES
        if (_folder(name, order).path / "row.json").exists()
    ]
    rows = [
        [
            each["training"], each["kept_weights"], each["weights"], f"{each['validation']:.2%}",
            f"{each['accuracy']:.2%}", f"{each['packed']:.2%}", each["pack_bytes"],
        ]
        for each in found
    ]  # fmt: skip
    columns = ["training", "kept weights", "of", "validation", "test", "test, by the pack", "bytes of the pack"]
    notes = [
        f"{pixels(order)}; a residual network of ten layers, width {recipe.width}; {recipe.epochs} epochs, then "
        f"{recipe.tuning} from its weights; batch {recipe.batch}, {recipe.precision}, SGD by a cosine, no "
        "augmentation; one seed",
        f"{PRUNED}: {recipe.prune}, {recipe.sparsity:.0%} of the prunable weights go; {FURTHER}: the same tuning, "
        "nothing pruned",
    ]
    title = (
        f"A trained network, {recipe.sparsity:.0%} pruned by fewer.train(network, ...): {pixels(order)}, a residual "
        f"network of ten layers and width {recipe.width}, {recipe.epochs} epochs and {recipe.tuning} more, one seed"
    )
    return Result(title, columns, rows, notes, details={"trainings": found}, commands=_commands(order))


def _commands(order: Order) -> list[str]:
    if order.scale == "quick":
        return []
    made = replace(order, words=()).command()
    return [made.replace(" --out", " --pieces all --out"), made]


def within(record: Record) -> list[str]:
    """How far the pruned network is from the other two on test images, in points."""
    by_name = {each["training"]: each for each in record["details"]["trainings"]}
    if not {DENSE, PRUNED} <= by_name.keys():
        return []
    lines = []
    for other in (DENSE, FURTHER):
        if other in by_name:
            points = 100 * (by_name[PRUNED]["accuracy"] - by_name[other]["accuracy"])
            lines.append(
                f"{PRUNED} is {abs(points):.2f} points {'above' if points >= 0 else 'below'} {other} on test images."
            )
    return lines
