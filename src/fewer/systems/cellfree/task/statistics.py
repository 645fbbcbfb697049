"""The paper's statistics of a network, and how well scores pick its serving access points."""

from __future__ import annotations

import numpy as np

from fewer.systems.cellfree.task.arrays import Bools, Floats
from fewer.systems.cellfree.task.survey import Survey

__all__ = [
    "average_precision",
    "best_f1",
    "calibration_error",
    "metrics",
    "network_statistics",
    "reliability",
    "roc_area",
]


def network_statistics(survey: Survey, threshold_db: float) -> dict[str, float]:
    """What the paper reports of its networks: positives ignored by clustering, power share, closest access points."""
    serves = survey.serves(threshold_db)
    return {
        "ignored": float(1.0 - serves.sum() / survey.serving.sum()),
        "power_share": float(survey.power_share.mean()),
        "closest": float(serves[:, 1].mean()),
        "closest_three": float(serves[:, 1:4].mean()),
        "serving_per_phone": float(survey.serving.mean()),
        "positive": float(serves.mean()),
        "fewer_than_three": float((survey.serving < 3).mean()),
    }


def _ranked(scores: Floats, labels: Bools) -> tuple[Floats, Floats, Floats]:
    """Thresholds from high to low, ties merged, with true and false positives at each."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], labels[order]
    last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    true = np.cumsum(hits, dtype=np.float64)[last]
    return ranked[last], true, last + 1.0 - true


def average_precision(scores: Floats, labels: Bools) -> float:
    """Sum of precision times the gain in recall, as scikit-learn counts it."""
    _, true, false = _ranked(scores.ravel(), labels.ravel())
    if true[-1] == 0:
        return float("nan")
    return float(np.sum(np.diff(true, prepend=0.0) * true / (true + false)) / true[-1])


def roc_area(scores: Floats, labels: Bools) -> float:
    """Area under the receiver operating characteristic."""
    _, true, false = _ranked(scores.ravel(), labels.ravel())
    if true[-1] == 0 or false[-1] == 0:
        return float("nan")
    high = np.append(0.0, true)
    width = np.diff(false, prepend=0.0)
    return float(np.sum(width * (high[1:] + high[:-1]) / 2) / (true[-1] * false[-1]))


def best_f1(scores: Floats, labels: Bools) -> float:
    """The largest F1 over all thresholds."""
    _, true, false = _ranked(scores.ravel(), labels.ravel())
    return float(np.max(2 * true / (true + false + labels.sum())))


def reliability(scores: Floats, labels: Bools, bins: int = 15) -> Floats:
    """(bins, 3): mean predicted probability, share that came true, share of all predictions."""
    place = np.minimum((scores.ravel() * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins).astype(np.float64)
    with np.errstate(invalid="ignore"):
        predicted = np.bincount(place, weights=scores.ravel(), minlength=bins) / count
        came_true = np.bincount(place, weights=labels.ravel(), minlength=bins) / count
    return np.stack([predicted, came_true, count / count.sum()], axis=1)


def calibration_error(scores: Floats, labels: Bools, bins: int = 15) -> float:
    """Expected calibration error: how far predicted probabilities are from what came true, on average."""
    table = reliability(scores, labels, bins)
    return float(np.nansum(np.abs(table[:, 0] - table[:, 1]) * table[:, 2]))


def metrics(scores: Floats, survey: Survey, threshold_db: float) -> dict[str, float]:
    """Precision and recall at one half as the paper counts them, ranking metrics, and all of it without the master.

    `recall` counts positives outside the candidates as misses; `recall_inside` does not. Names with `other_` leave
    the master's own link out, which is positive by definition and flatters every figure.
    """
    labels = survey.serves(threshold_db)
    other, other_labels = scores[:, 1:], labels[:, 1:]
    chosen, other_chosen = scores >= 0.5, other >= 0.5
    hits, other_hits = (chosen & labels).sum(), (other_chosen & other_labels).sum()
    return {
        "other_average_precision": average_precision(other, other_labels),
        "precision": float(hits / max(chosen.sum(), 1)),
        "recall": float(hits / survey.serving.sum()),
        "recall_inside": float(hits / max(labels.sum(), 1)),
        "auc": roc_area(scores, labels),
        "average_precision": average_precision(scores, labels),
        "best_f1": best_f1(scores, labels),
        "other_precision": float(other_hits / max(other_chosen.sum(), 1)),
        "other_recall": float(other_hits / max(survey.serving.sum() - len(survey), 1)),
        "other_auc": roc_area(other, other_labels),
        "calibration_error": calibration_error(other, other_labels),
        "ignored": float(1.0 - labels.sum() / survey.serving.sum()),
    }
