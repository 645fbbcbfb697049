"""Two other ways to a light robust network, both starting from hardened ones: learned scores and useful features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import Loop, fit, save_results
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.pruning.features.shrink import MEASURES, Shrinking, shrink
from fewer.pruning.features.tolerance import until_it_hurts
from fewer.pruning.features.usefulness import Reach
from fewer.pruning.hydra import hydra
from fewer.systems.vision.studies.measure import Row, accuracies, counts, measured
from fewer.systems.vision.studies.pieces import Place, Recipe, read_modules
from fewer.systems.vision.task.task import Vision

__all__ = ["run_features", "run_scores"]

TUNING = "pgd:0.3,ramp=0"  # the networks are hardened already: the whole budget from the first step
TOLERANCE = 0.02  # of robust accuracy on held-out images


def _hardened(base: Recipe, place: Place, seed: int) -> dict[str, nn.Module]:
    """The unpruned network that the piece left."""
    folder = place.folder(base, base.prunings[0], seed)
    if not folder.finished:
        raise UserError(f"no {folder.path}", "the finished unpruned network", f"run the piece {base.name} first")
    return read_modules(folder, base.network)


def run_scores(base: Recipe, densities: Sequence[float], steps: int, place: Place) -> list[Row]:
    """HYDRA: scores learned under attack, then the kept weights trained on; `steps` for each of the two."""
    rows = []
    for density in densities:
        folders = {
            seed: Folder(place.out / "pieces" / "hydra" / f"hydra-{100 * density:g}-seed{seed}") for seed in base.seeds
        }
        missing = [seed for seed in base.seeds if not folders[seed].finished]
        if missing and place.source:
            _learn(base, density, steps, place, {seed: folders[seed] for seed in missing})
        rows += [folder.read_json("metrics.json") for folder in folders.values() if folder.finished]
    return rows


def _learn(base: Recipe, density: float, steps: int, place: Place, folders: Mapping[int, Folder]) -> None:
    seeds, task = list(folders), place.task(base.network)
    hardened = harden(task, TUNING)
    training = Training(steps, base.batch, Optimizer(lr=1e-3, decay_from=0.0), place.device)
    first = [_hardened(base, place, seed) for seed in seeds]
    loop = Loop(log_every=max(1, steps // 10))
    masks = hydra(hardened, 1 - density, training=training, seeds=seeds, modules=first, loop=loop)
    # an engine takes its modules over, so the second training reads them again
    again = [_hardened(base, place, seed) for seed in seeds]
    engine: Engine
    if len(seeds) == 1 and place.device == "cpu":
        engine = Plain(hardened, training, seeds[0], modules=again[0])
    else:
        engine = Cohort(hardened, training, seeds, modules=again)
    for replica, mask in enumerate(masks):
        engine.state.mask_(replica, mask)
    fit(engine, loop=loop)
    for replica, (seed, folder) in enumerate(folders.items()):
        row = {
            "piece": "hydra", "network": base.network, "method": "hydra", "when": "learned", "density": density,
            "seed": seed, "steps": base.steps + 2 * steps, **measured(task, engine, replica, limit=place.limit),
        }  # fmt: skip
        folder.path.mkdir(parents=True, exist_ok=True)
        save_results(engine, replica, folder)
        folder.write_json("metrics.json", row)
        place.log(f"hydra {density:g} seed {seed}: clean {row['clean']:.2%}, PGD-40 {row['pgd40']:.2%}")


def run_features(base: Recipe, steps: int, place: Place, *, samples: int) -> list[Row]:
    """Half of the features removed each round by their robust usefulness until it hurts; others down to its size."""
    rows: list[Row] = []
    for seed in base.seeds:
        folder = Folder(place.out / "pieces" / "features" / f"seed{seed}")
        if not folder.finished and place.source:
            task = place.task(base.network, validation=base.validation)
            found = _shrink_all(task, base, steps, place, samples=samples, seed=seed)
            folder.path.mkdir(parents=True, exist_ok=True)
            folder.write_json("metrics.json", found)
        rows += folder.read_json("metrics.json") if folder.finished else []
    return rows


def _shrink_all(task: Vision, base: Recipe, steps: int, place: Place, *, samples: int, seed: int) -> list[Row]:
    """The measures after `robust`, which decides how far it goes, are followed as far."""
    tuned = harden(task, TUNING)
    training = Training(steps, base.batch, Optimizer(lr=1e-3, decay_from=0.0), place.device)
    rows: list[Row] = []
    rounds = 0
    for measure in MEASURES:
        first = {name: net.to(place.device) for name, net in _hardened(base, place, seed).items()}
        settings = Shrinking(
            measure=measure, share=0.5, least=5, samples=samples, seed=seed, reach=Reach(step=0.1, steps=3)
        )
        tolerance = TOLERANCE if measure == "robust" else float("inf")
        stages = until_it_hurts(
            first,
            shrink(tuned, first, settings, training=training),
            lambda modules: float(accuracies(task, modules, limit=place.limit, split="validation")["pgd40"]),
            tolerance=tolerance,
        )
        for number, (stage, held_out, stands) in enumerate(stages, start=1):
            rows.append({
                "piece": "features", "network": base.network, "method": measure, "when": "features", "seed": seed,
                "round": number, "held out pgd40": held_out, "stands": stands, **counts(stage.modules, {}),
                "features": stage.modules["net"].get_parameter("head.weight").shape[1],
                **accuracies(task, stage.modules, limit=place.limit),
            })  # fmt: skip
            place.log(f"features by {measure}, seed {seed}: {rows[-1]['weights']} weights {rows[-1]['pgd40']:.2%}")
            if measure != "robust" and number == rounds:
                break
        rounds = rounds or len(rows)
    return rows
