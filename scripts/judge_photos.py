"""Judge the photograph classifiers that come with the package on CIFAR-10's test images, with numpy alone.

python scripts/judge_photos.py cifar10-jpeg.tar.xz [IMAGES_UNDER_ATTACK [PACK ...]]

Accuracy on all test images, PGD-40 on the first 500 (in the order in which training tools see them); written into the
packs. That they do without torch is a part of what is judged: it must not have been imported in the end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from fewer import zoo
from fewer.packs import pack
from fewer.packs.file.tensors import Array
from fewer.packs.input_gradient import InputGradient
from fewer.systems.vision.task.files.archive import read_archive

NAMES = ("photos-pruned", "photos-hardened")
BUDGET, STEPS = 8 / 255, 40
AT_ONCE = 50


def main() -> None:
    """Both packs, or those that are named."""
    images, labels = read_archive(Path(sys.argv[1]))["test"]
    order = np.random.RandomState(0).permutation(len(labels))  # as `task.data.mixed` orders them
    pixels, labels = images[order].astype(np.float32) / 255, labels[order]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    for name in sys.argv[3:] or NAMES:
        path, begin = zoo.path(name), time.process_time()
        found = pack.load(path)
        right = np.concatenate([found.predict(part).argmax(1) for part in np.array_split(pixels, 100)]) == labels
        standing = stood(InputGradient(found), pixels[:count], labels[:count])
        attacked = f"PGD-{STEPS} at 8/255, "
        metrics = {key: value for key, value in found.settings["metrics"].items() if not key.startswith(attacked)}
        metrics |= {"accuracy": float(right.mean()), f"{attacked}{count} images": float(standing.mean())}
        program = next(iter(found.networks.values())).program
        metrics = {**dict(sorted(metrics.items(), reverse=True)), "test_images": len(right)}
        settings = {**found.settings, "metrics": metrics}
        pack.write(path, program, found.tensors(), masks=found.masks, values="float16", settings=settings)
        seconds = round(time.process_time() - begin, 1)
        print(json.dumps({"pack": name, "bytes": path.stat().st_size, "seconds": seconds, **settings["metrics"]}))
    if "torch" in sys.modules:
        raise SystemExit("torch was imported")


def stood(gradient: InputGradient, pixels: Array, labels: Array) -> Array:
    """Whether each image is named rightly at every point that PGD visits."""
    low, high = np.clip(pixels - BUDGET, 0, 1), np.clip(pixels + BUDGET, 0, 1)
    noise = np.random.default_rng(0).uniform(-BUDGET, BUDGET, pixels.shape)
    x, standing = np.clip(pixels + noise, low, high).astype(np.float32), np.ones(len(pixels), dtype=bool)
    for _ in range(STEPS + 1):
        for rows in np.array_split(np.flatnonzero(standing), max(1, int(standing.sum()) // AT_ONCE)):
            answer, slope = gradient(x[rows], labels[rows])
            standing[rows] = answer.argmax(1) == labels[rows]
            x[rows] = np.clip(x[rows] - BUDGET / 30 * np.sign(slope), low[rows], high[rows]).astype(np.float32)
    return standing


if __name__ == "__main__":
    main()
