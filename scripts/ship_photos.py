"""Write two small photograph classifiers of a `vision/cifar-robust` study as packs that come with the package.

python scripts/ship_photos.py STUDY_FOLDER            of its pieces, those that are there
python scripts/judge_photos.py cifar10-jpeg.tar.xz    then judges the packs, without torch, and notes what it finds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from fewer.core.files.run_folder import MASK, METRICS, WEIGHTS, Folder
from fewer.packs import pack
from fewer.packs.trace.trace import trace
from fewer.systems.vision.task.networks import NETWORKS, Normalise

PIECES = {"photos-pruned": "small-98k", "photos-hardened": "small-hardened-98k"}
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SHAPE = (3, 32, 32)


def main() -> None:
    """One pack a piece, its weights as float16."""
    zoo = Path(__file__).parents[1] / "src/fewer/zoo"
    for name, piece in PIECES.items():
        folder = Folder(Path(sys.argv[1]) / "photographs" / piece)
        if not folder.finished:
            continue
        found, net = folder.read_json(METRICS), network(folder)
        with torch.no_grad():
            program, tensors = trace(
                lambda nets, x: functional.log_softmax(nets.net(x), -1),
                {"x": torch.rand(2, *SHAPE)},
                networks={"net": net},
            )
        masks = {f"net.{key}": mask.bool().numpy() for key, mask in folder.read_networks(MASK)["net"].items()}
        settings = {
            "task": "vision", "settings": [f"network={found['network']}", "normalise=yes"], "classes": list(CLASSES),
            "kept": found["kept"], "biases": found["biases"], "pixels": found["pixels"],
            **({"hardened": found["hardening"]} if found["hardening"] else {}), "metrics": stood(folder),
        }  # fmt: skip
        size = pack.write(zoo / f"{name}.pack", program, tensors, masks=masks, values="float16", settings=settings)
        print(json.dumps({"pack": name, "bytes": size, "of the study": found["clean"], **settings["metrics"]}))


def network(folder: Folder) -> nn.Module:
    """As the piece left it."""
    found, tensors = folder.read_json(METRICS), folder.read_networks(WEIGHTS)["net"]
    net = NETWORKS[found["network"]](SHAPE, len(CLASSES))
    net.normalise = Normalise(tensors["normalise.mean"], tensors["normalise.deviation"])
    net.load_state_dict({key: value.float() if value.is_floating_point() else value for key, value in tensors.items()})
    return net.eval()


def stood(folder: Folder) -> dict[str, Any]:
    """What the study's audit left of all test images, under the attacks that were over."""
    file = next((name for name in ("suite.json", "suite-part.json") if (folder.path / name).exists()), None)
    if file is None:
        return {}
    lines = folder.read_json(file)["lines"]
    names = [line["attack"].partition(", L-inf")[0].partition(" (")[0] for line in lines]
    whole = "whole suite at 8/255" if file == "suite.json" else f"{' + '.join(names)} at 8/255"
    return {whole: lines[-1]["standing"]}


if __name__ == "__main__":
    main()
