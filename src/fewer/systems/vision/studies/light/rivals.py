"""Two other ways to a light robust network, both starting from hardened ones: learned scores and useful features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.cohort import Cohort
from fewer.core.engines.loop import Loop, fit, save_results
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.files.run_folder import Folder
from fewer.pruning.features.shrink import MEASURES, Shrinking, shrink
from fewer.pruning.features.tolerance import until_it_hurts
from fewer.pruning.features.usefulness import Reach
from fewer.pruning.hydra import hydra
from fewer.systems.vision.studies.measure import Row, accuracies, counts, measured
from fewer.systems.vision.studies.pieces import saved_modules
from fewer.systems.vision.studies.place import Place
from fewer.systems.vision.studies.recipe import DENSE, Recipe

__all__ = ["TUNING", "run_features", "run_scores", "tuning_of"]

TUNING = "pgd:0.3,ramp=0"  # the networks are hardened already: the whole budget from the first step
LEAST = 5  # features never gone below
TOLERANCE = 0.02  # of robust accuracy on held-out images


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
    training = tuning_of(base, steps, place)
    first = [saved_modules(base, DENSE, seed, place) for seed in seeds]
    loop = Loop(log_every=max(1, steps // 10))
    masks = hydra(hardened, 1 - density, training=training, seeds=seeds, modules=first, loop=loop)
    # an engine takes its modules over, so the second training reads them again
    again = [saved_modules(base, DENSE, seed, place) for seed in seeds]
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


def run_features(
    base: Recipe, steps: int, place: Place, *, samples: int, name: str = "features", tolerance: float = TOLERANCE
) -> list[Row]:
    """Half of the features removed each round by their robust usefulness until it hurts; others down to its size."""
    rows: list[Row] = []
    for seed in base.seeds:
        folder = Folder(place.out / "pieces" / name / f"seed{seed}")
        if not folder.finished and place.source:
            found = _shrink_all(base, steps, place, samples=samples, seed=seed, name=name, tolerance=tolerance)
            folder.path.mkdir(parents=True, exist_ok=True)
            folder.write_json("metrics.json", found)
        rows += folder.read_json("metrics.json") if folder.finished else []
    return rows


def _shrink_all(
    base: Recipe, steps: int, place: Place, *, samples: int, seed: int, name: str, tolerance: float
) -> list[Row]:
    """The measures after `robust`, which decides how far it goes, are followed as far."""
    task, tuning = place.images_of(base), tuning_of(base, steps, place)
    tuned = harden(task, TUNING)
    rows: list[Row] = []
    rounds = 0
    for measure in MEASURES:
        first = saved_modules(base, DENSE, seed, place)
        settings = Shrinking(
            measure=measure, share=0.5, least=LEAST, samples=samples, seed=seed, reach=Reach(step=0.1, steps=3)
        )
        stages = until_it_hurts(
            first,
            shrink(tuned, first, settings, training=tuning),
            lambda modules: float(accuracies(task, modules, limit=place.limit, split="validation")["pgd40"]),
            tolerance=tolerance if measure == "robust" else float("inf"),
        )
        for number, (stage, held_out, stands) in enumerate(stages, start=1):
            rows.append({
                "piece": name, "network": base.network, "method": measure, "when": "features", "seed": seed,
                "round": number, "held out pgd40": held_out, "stands": stands, **counts(stage.modules, {}),
                "features": stage.modules["net"].get_parameter("head.weight").shape[1],
                **accuracies(task, stage.modules, limit=place.limit),
            })  # fmt: skip
            place.log(f"{name} by {measure}, seed {seed}: {rows[-1]['weights']} weights {rows[-1]['pgd40']:.2%}")
            if measure != "robust" and number == rounds:
                break
        rounds = rounds or len(rows)
    return rows


def tuning_of(base: Recipe, steps: int, place: Place) -> Training:
    """How a hardened network is trained on after something was taken from it."""
    return Training(steps, base.batch, Optimizer(lr=1e-3, decay_from=0.0), place.device)
