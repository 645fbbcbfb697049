"""Attack digit classifiers that come with the package, and write what stands into their packs.

python scripts/audit_packs.py NAME...
"""

from __future__ import annotations

import sys

import torch

from fewer import zoo
from fewer.attack.audit import Audit, robust
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.state import fill_
from fewer.core.settings import from_text
from fewer.packs import pack
from fewer.systems.vision.task.task import Settings, Vision

ATTACK, FIGURE = "pgd:0.3,steps=40,step=0.01", "PGD-40 at 0.3"


def main() -> None:
    """All test images, the pack's own weights, rounded as they are."""
    for name in sys.argv[1:]:
        path = zoo.path(name)
        found = pack.load(path)
        task = Vision(from_text(Settings, found.settings["settings"]))
        modules = task.networks()
        for network, module in modules.items():
            own = {key: torch.from_numpy(value.copy()) for key, value in found.tensors().items()}
            fill_(module, {key.removeprefix(f"{network}."): value for key, value in own.items()})
            module.train(False)
        report = robust(task, NetworkSet(modules, training=False), ATTACK, Audit())
        metrics = {"accuracy": report.clean, FIGURE: report.robust, "test_images": report.images}
        settings, values = {**found.settings, "metrics": metrics}, "float32"
        if settings.pop("figures_of", None):  # they were the run's; these are the rounded file's own
            values = "float16"
        program = next(iter(found.networks.values())).program
        size = pack.write(path, program, found.tensors(), masks=found.masks, values=values, settings=settings)
        shares = f"{report.clean:.4f} right, {report.robust:.4f} under {ATTACK}"
        print(f"{name}: {size} bytes, {shares}, {report.images} images")


if __name__ == "__main__":
    main()
