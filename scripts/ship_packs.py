"""Write the hardened digit classifiers of a finished `vision/lightest` study as packs that come with the package.

python scripts/ship_packs.py STUDY_FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from fewer.core.files.run_folder import Folder
from fewer.core.seed import Stream
from fewer.packs import pack
from fewer.packs.trace.trace import trace
from fewer.systems.vision.studies.pieces import read_modules
from fewer.systems.vision.task.task import Settings, Vision

REPLICAS = {"digits-9348": "contrast/magnitude-3-seed0", "digits-3197": "lamp/lamp-1.026-seed0"}
SETTINGS = {"network": "small-cnn", "contrast": 80.0}


def main() -> None:
    """One pack a replica, with its figures inside."""
    pieces, zoo = Path(sys.argv[1]) / "pieces", Path(__file__).parents[1] / "src/fewer/zoo"
    task, noise = Vision(Settings(**SETTINGS)), Stream(torch.tensor(0), torch.tensor(0))
    for name, replica in REPLICAS.items():
        folder = Folder(pieces / replica)
        modules = read_modules(folder, **SETTINGS)
        example = {"x": torch.rand(2, 1, 28, 28)}
        with torch.no_grad():
            program, tensors = trace(lambda nets, x: task.predict(nets, x, noise), example, networks=modules)
        found, suite = folder.read_json("metrics.json"), folder.read_json("suite.json")
        settings = {
            "task": "vision",
            "settings": [f"{key}={value}" for key, value in SETTINGS.items()],
            "kept": found["kept"],
            "biases": found["biases"],
            "hardened": found["hardening"],
            "figures": {
                "accuracy": found["clean"],
                "PGD-40 at 0.3": found["pgd40"],
                "whole suite at 0.3": suite["robust"],
                "test_images": suite["images"],
            },
        }
        masks = {key.replace("/", "."): mask.numpy() for key, mask in folder.read_tensors("mask.safetensors").items()}
        written = pack.write(zoo / f"{name}.pack", program, tensors, masks=masks, settings=settings)
        print(json.dumps({"pack": name, "bytes": written, **settings["figures"]}))


if __name__ == "__main__":
    main()
