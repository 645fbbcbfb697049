"""Detectors speak when training has failed, and only then."""

from __future__ import annotations

import math

import torch

from fewer.attack.hardening.detectors import overfitting, plateau


def test_a_loss_at_chance_for_more_than_300_steps_is_said() -> None:
    sentence = plateau([2.9] * 50 + [2.31] * 301, 10)
    assert sentence is not None and "ramp" in sentence and "2.31" in sentence


def test_300_steps_or_a_loss_a_little_off_chance_are_not_yet_a_plateau() -> None:
    assert plateau([2.31] * 300, 10) is None
    assert plateau([2.31] * 300 + [2.27], 10) is None
    assert plateau([math.log(10)] * 400, 2) is None


def test_one_class_for_every_input_is_said_from_classes_and_from_scores() -> None:
    sentence = plateau([1.0], 10, torch.full((50,), 7))
    assert sentence is not None and "class 7" in sentence
    scores = torch.zeros(50, 10)
    scores[:, 3] = 1
    assert "class 3" in (plateau([1.0], 10, scores) or "")
    scores[0, 4] = 2
    assert plateau([1.0], 10, scores) is None


def test_fgsm_high_and_pgd_at_zero_is_catastrophic_and_a_wide_gap_is_a_warning() -> None:
    assert "catastrophic" in (overfitting(0.937, 0.001) or "")
    warning = overfitting(0.65, 0.244)
    assert warning is not None and "catastrophic" not in warning
    assert "catastrophic" in (overfitting(0.65, 0.05) or "") and "catastrophic" not in (overfitting(0.65, 0.06) or "")
    assert overfitting(0.78, 0.70) is None
    assert overfitting(0.02, 0.0) is None
