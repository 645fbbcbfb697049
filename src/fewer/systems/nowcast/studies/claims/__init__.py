"""Every testable sentence of the nowcast paper, in our words, judged from the tables that are kept."""

from __future__ import annotations

from collections.abc import Callable

from fewer.studies.claims import Claim, Records, Verdict
from fewer.systems.nowcast.studies.claims import judges
from fewer.systems.nowcast.studies.claims.judges import SHORT, decided
from fewer.systems.nowcast.studies.claims.judging import STUDIES, alike, gaps, of_pairs

__all__ = ["CLAIMS"]

_TABLE1, _TEXT = "Section 3.3, Table 1", "Section 3.3"
_ROWS = ("nowcast/table1",)
_HELDOUT = ("nowcast/table2", "nowcast/longer")
_ADDED = f"{SHORT}; 560 windows are added to 7,840"
_UNSURE = "The shorter the training, the lower all probabilities: thresholds of validation lie well below 0.5"
_MASKED = "The authors' own list of submissions has 0.2515 with the mask and 0.2517 without"


def _alike(one: str, two: str) -> Callable[[Records], Verdict]:
    return lambda records: alike(list(gaps(records, [(one, two)], _ROWS)), 0.02)


def _untested(why: str) -> Callable[[Records], Verdict]:
    return lambda records: Verdict("untestable", why=why)


_LOSSES = (
    Claim("loss-iou-baseline", _TABLE1,
          "Training the baseline on the target metric, IoU, is worse than training it on cross-entropy.",
          STUDIES, of_pairs([("baseline-iou", "baseline")], -1, SHORT)),
    Claim("loss-iou-swin", _TABLE1, "Training Swin-UNETR on IoU is worse than training it on cross-entropy.",
          STUDIES, of_pairs([("swin-iou", "swin")], -1, SHORT)),
    Claim("loss-dice-focal", _TABLE1, "Dice with focal loss does not improve on cross-entropy.",
          STUDIES, of_pairs([("swin-dice", "swin")], -1, SHORT)),
    Claim("loss-bce-best", _TEXT, "The best results come with cross-entropy in which rain is weighted.",
          _ROWS, judges.best_loss),
)  # fmt: skip
_DATA = (
    Claim("train-all-baseline", _TABLE1, "Learning from the validation windows too improves the baseline slightly.",
          STUDIES, of_pairs([("baseline-all", "baseline")], 1, _ADDED)),
    Claim("train-all-swin", _TABLE1, "Learning from the validation windows too improves Swin-UNETR slightly (the "
          "paper's own rows say 0.249 with and 0.252 without).",
          STUDIES, of_pairs([("swin-all", "swin")], 1, _ADDED)),
    Claim("train-all-validation", _TEXT, "Then the validation metric is no longer consistent with the test.",
          _ROWS, judges.inflated),
    Claim("train-all-overfits", _TABLE1, "Training on all for 54 instead of 25 epochs overfits: 0.166 after 0.222.",
          _ROWS, of_pairs([("baseline-all-long", "baseline-all")], -1, SHORT)),
    Claim("mismatch", "Section 2.1", "Rain rates of training and validation differ almost by two in one region.",
          (), _untested("it is about the competition's files; `fewer data nowcast` counts them")),
    Claim("calibration-mask", "Section 2.1",
          "Weighting probabilities by how the splits differ at each pixel can mend that mismatch.",
          STUDIES, decided("calibration mask", 1, _MASKED)),
)  # fmt: skip
_MODELS = (
    Claim("improvements", _TEXT, "Attention gates, RReLU, instance norm and resizing tend to improve the baseline.",
          STUDIES, of_pairs([("improved-all", "baseline-all"), ("improved-transposed-all", "baseline-all"),
                             ("improved", "baseline")], 1, SHORT)),
    Claim("resize", _TABLE1, "With or without transposed convolutions the improved baseline scores alike.",
          _ROWS, _alike("improved-transposed-all", "improved-all")),
    Claim("above-baseline-swin", _TABLE1, "Swin-UNETR is significantly better than the official baseline.",
          STUDIES, of_pairs([("swin", "baseline")], 1, SHORT)),
    Claim("above-baseline-improved", _TABLE1, "The improved baseline is significantly better than the official one.",
          STUDIES, of_pairs([("improved-transposed-all", "baseline"), ("improved", "baseline")], 1, SHORT)),
    Claim("above-baseline-heldout", "Section 3.4, Table 2", "Both are better than it on held-out windows too.",
          _HELDOUT, judges.above_baseline),
    Claim("best-single", _TABLE1, "The best single model is a Swin-UNETR.", STUDIES, judges.best_single),
    Claim("years", _TEXT, "The improved baseline is better in 2019, Swin-UNETR in 2020.", STUDIES, judges.years),
    Claim("vivit", _TABLE1, "ViViT is less competitive than Swin-UNETR.",
          STUDIES, of_pairs([("vivit", "swin")], -1, SHORT)),
    Claim("vivit-token", _TEXT, "ViViT suffers from making all maps of one token: it does not tell where it rains.",
          STUDIES, judges.token),
    Claim("interleave", _TABLE1, "Repeating images is better than convolving time as channels.",
          STUDIES, of_pairs([("channels", "swin"), ("channels-adabelief", "swin-adabelief")], -1, SHORT)),
    Claim("upsample", _TABLE1, "Repeating images is better than the network that upsamples time.",
          _ROWS, of_pairs([("upsample", "swin")], -1, SHORT)),
    Claim("upsample-regions", _TEXT, "The network that upsamples time does well in some of the regions.",
          _ROWS, judges.regions),
    Claim("upsample-memory", _TEXT, "It needs much more GPU memory to train.",
          (), _untested("memory of these trainings is not measured in any result that is kept")),
    Claim("half-precision", _TABLE1, "Training in 16 bit makes little difference.",
          _ROWS, _alike("swin", "swin-float32")),
)  # fmt: skip
_DECISIONS = (
    Claim("threshold-lower", _TABLE1, "A threshold of 0.2 is worse than one of 0.5.",
          STUDIES, decided("threshold 0.2", -1, _UNSURE)),
    Claim("threshold-higher", _TABLE1, "A threshold of 0.65 is worse than one of 0.5.",
          STUDIES, decided("threshold 0.65", -1, SHORT)),
    Claim("threshold-default", "Section 2.1", "For data this unbalanced 0.5 may not be the best threshold.",
          STUDIES, judges.chosen_threshold),
    Claim("vote", "Section 3.5, Table 2", "The majority vote is significantly better than each of its members.",
          _HELDOUT, judges.vote),
    Claim("ensemble", "Abstract, Section 4", "Combining transformers with baselines gives the best scores.",
          _HELDOUT, judges.ensemble),
    Claim("per-region", "Section 3.6, Tables 1 and 2",
          "Taking each region's best prediction, chosen on the leaderboard itself, scores highest of all.",
          _HELDOUT, judges.per_region),
    Claim("front", "Figure 1", "The forecast shows the rain front gradually leaving the region.",
          ("nowcast/fig1",), judges.front),
)  # fmt: skip
CLAIMS = (*_LOSSES, *_DATA, *_MODELS, *_DECISIONS)
