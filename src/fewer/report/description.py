"""What numbers and settings mean, in words: per task who asks, what each figure counts, what an adversary may do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fewer.core.registry import TASKS
from fewer.run.job import Job

__all__ = ["FIGURES", "MEANINGS", "Meaning", "figure_of", "in_words", "meaning_of", "shown"]


@dataclass(frozen=True)
class Meaning:
    """Of a task: a heading, what it is for, the attack that its chapter draws, and what a budget of 1 is."""

    heading: str
    lead: str
    attack: str = ""
    unit: str = ""
    adversary: str = ""
    figures: tuple[str, ...] = ()  # the ones to show first; the others are a click away


MEANINGS = {
    "vision": Meaning(
        "Vision: which digit is it?",
        "A classifier looks at an image and names what it shows. It should still do so when somebody changes every "
        "pixel a little in the worst possible way.",
        "pgd:0.2,steps=10", "largest change of a pixel, which goes from 0 to 1",
        "The adversary knows the network and may change every pixel by up to the budget.",
        ("accuracy", "loss"),
    ),
    "cellfree": Meaning(
        "Cell-free radio: who should serve this phone?",
        "A phone reports the signal of a few access points near its strongest one, the master. The network says which "
        "of the other candidates are nearly as strong and should serve it too, without measuring them.",
        "pgd:4,steps=10", "largest change of a report, in dB",
        "The adversary may change every reported signal by up to the budget.",
        ("other_average_precision", "other_precision", "other_recall", "calibration_error"),
    ),
    "control": Meaning(
        "Control: a policy from logged data",
        "A policy turns what a robot senses into what its joints do. It was learnt from an expert's recorded steps "
        "alone, without trying anything out, and is judged by letting it act in the simulator.",
        "fgsm:0.2", "largest change of a sensor, in its standard deviations",
        "The adversary may change every sensor at every step by up to the budget, away from what the policy would do. "
        "Counted on 4 episodes that are cut after 400 steps: not to be compared with scores of whole episodes.",
        ("score", "return", "length", "value"),
    ),
    "nowcast": Meaning(
        "Nowcasting: where will it rain in the next eight hours?",
        "From one hour of satellite images the network forecasts rain for every pixel, every quarter of an hour up to "
        "eight hours ahead.",
        "pgd:0.2,steps=5", "largest change of a pixel, in standard deviations of its band",
        "The adversary may change every pixel of every satellite image by up to the budget.",
        ("iou", "pod", "far", "brier"),
    ),
}  # fmt: skip

# name: (label, what it counts, whether it is a share)
FIGURES: dict[str, tuple[str, str, bool]] = {
    "accuracy": ("accuracy", "share of test images that are named rightly", True),
    "other_average_precision": (
        "average precision",
        "how well serving access points are ranked before the others, the master left out; 1 is perfect",
        False,
    ),
    "other_precision": ("precision", "share of the chosen that truly serve, the master left out", True),
    "other_recall": ("recall", "share of the truly serving that were chosen, the master left out", True),
    "calibration_error": ("calibration error", "how far probabilities are from what comes true; 0 is perfect", False),
    "score": ("score", "0 is a policy that acts at random, 100 the expert of the benchmark; mean over episodes", False),
    "return": ("return", "sum of rewards of an episode, mean over episodes", False),
    "length": ("length", "steps until the robot falls or the episode ends", False),
    "iou": (
        "IoU",
        "rain forecast and fallen, over rain forecast or fallen, pooled over each region; 1 is perfect",
        False,
    ),
    "loss": ("loss", "mean of what training minimises, on the test split", False),
    "pod": ("detected", "share of the rain that was forecast", True),
    "far": ("false alarms", "share of the forecast rain that did not fall", True),
    "brier": ("Brier score", "mean squared error of the probabilities; 0 is perfect", False),
    "value": ("value", "what fitted Q evaluation expects of the policy, from the logs alone", False),
}


def meaning_of(task: str) -> Meaning:
    """Of a task of ours, or what can be said of anybody's."""
    if task in MEANINGS:
        return MEANINGS[task]
    about = TASKS[task][1] if task in TASKS else "A task of your own."
    return Meaning(task, about, "", "budget, in the units of the input", "The adversary may change the input.")


def figure_of(name: str) -> tuple[str, str, bool]:
    """Label, meaning, and whether it is a share, of a figure."""
    return FIGURES.get(name, (name.replace("_", " "), "", False))


def in_words(job: Job) -> str:
    """A run's settings as a sentence or three."""
    training = job.training
    chosen = ", ".join(pair.replace("=", " ", 1) for pair in job.settings)
    told = [f"With {chosen}." if chosen else "With the task's own settings."]
    optimizer = training.optimizer
    told.append(
        f"{training.steps:,} steps of {training.batch} samples by {optimizer.kind} from a rate of {optimizer.lr:g} "
        "(unless the task sets its own)."
    )
    told.append(_pruned(job.prune))
    if job.harden:
        told.append(f"Trained on attacked inputs: {job.harden}.")
    if job.start_from:
        told.append(f"Started from the weights of {job.start_from}.")
    return " ".join(part for part in told if part)


def _pruned(prune: Any) -> str:
    if prune is None:
        return "Nothing was pruned."
    share = f"{100 * prune.sparsity:.4g} % of the prunable weights"
    how = {"snip": "SNIP", "grasp": "GraSP", "synflow": "SynFlow", "lamp": "LAMP"}.get(prune.method, prune.method)
    by = "chosen at random" if prune.method == "random" else f"chosen by {how}"
    when = {
        "start": "before the first step",
        "gradual": "step by step on the way",
        "set": "and swapped during training (SET)",
        "rigl": "and swapped during training (RigL)",
        "rounds": "in rounds of training and rewinding (a lottery ticket)",
    }[prune.when]
    return f"{share} were removed {when}, {by}."


def shown(value: float, share: bool) -> str:
    """A figure as people write it."""
    if not math.isfinite(value):
        return "-"
    return f"{100 * value:.1f} %" if share else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
