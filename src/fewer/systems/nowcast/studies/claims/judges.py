"""The judges of claims about the nowcast paper that need more than one paired difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fewer.studies.claims import Records, Verdict
from fewer.systems.nowcast.studies.claims.judging import DATA, STUDIES, held_out, judged, length, ordered

__all__ = [
    "SHORT", "above_baseline", "best_loss", "best_single", "chosen_threshold", "decided", "ensemble", "front",
    "inflated", "per_region", "regions", "token", "vote", "years",
]  # fmt: skip

SHORT = "Training is far shorter than the paper's, on generated weather"
_VOTE = "majority of the paper's voters"
_PAPERS = ("baseline", "improved", "swin", "vivit")  # whose model it is
_SWINS = ("swin", "channels", "upsample")


def decided(kind: str, sense: int, why: str) -> Callable[[Records], Verdict]:
    """A judge of another decision's IoU being below (-1) or above (1) that of 0.5, for Swin-UNETR."""

    def judge(records: Records) -> Verdict:
        found = [
            (f"{kind} less 0.5 ({length(records, study)})", each[kind]["above_half"])
            for study in STUDIES
            for name, each in records[study]["details"].items()
            if name.endswith(", other decisions") and "above_half" in each.get(kind, {})
        ]
        return judged(found, sense, why)

    return judge


def _models(details: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What was trained, without baselines that learn nothing."""
    return {name: one for name, one in details.items() if isinstance(one, Mapping) and one.get("settings")}


def chosen_threshold(records: Records) -> Verdict:
    """The threshold of validation against 0.5."""
    found = {}
    for study in STUDIES:
        for name, one in _models(records[study]["details"]).items():
            if name in ("baseline", "swin", "vivit"):
                words = f"{name}, threshold {one['threshold']:.2f} and 0.5 ({length(records, study)})"
                found[words] = one["at_threshold"]["total"], one["at_half"]["total"]
    return ordered(found)


def best_loss(records: Records) -> Verdict:
    """The best of the paper's models with each loss."""
    best: dict[str, float] = {}
    for one in _models(records["nowcast/table1"]["details"]).values():
        if one["settings"]["model"] in _PAPERS:
            loss = one["settings"]["loss"]
            best[loss] = max(best.get(loss, 0.0), one["at_threshold"]["total"])
    others = {f"best with bce, with {loss}": (best["bce"], value) for loss, value in best.items() if loss != "bce"}
    return ordered(others, SHORT)


def best_single(records: Records) -> Verdict:
    """The best Swin-UNETR against the best other model of the paper's."""
    found = {}
    for study in STUDIES:
        papers = {
            name: one["at_threshold"]["total"]
            for name, one in _models(records[study]["details"]).items()
            if one["settings"]["model"] in _PAPERS
        }
        swin = max(value for name, value in papers.items() if name.startswith(_SWINS))
        rest = max(value for name, value in papers.items() if not name.startswith(_SWINS))
        found[f"best Swin-UNETR, best other of the paper's ({length(records, study)})"] = swin, rest
    return ordered(found)


def inflated(records: Records) -> Verdict:
    """Validation IoU less test IoU, of models that learnt from validation windows and of those that did not."""
    details = records["nowcast/table1"]["details"]
    if "chosen_iou" not in details["baseline"]:
        return Verdict("untestable", why="the kept record has no scores on the windows that thresholds were chosen on")
    found = {}
    for name in ("baseline", "swin"):
        every, some = (
            details[one]["chosen_iou"] - details[one]["at_threshold"]["total"] for one in (f"{name}-all", name)
        )
        found[f"{name}, validation less test, trained on all and not"] = every, some
    return ordered(found, "Each validation window is seen about once: there is little to learn by heart")


def years(records: Records) -> Verdict:
    """The improved baseline in the one year, Swin-UNETR in the other."""
    found = {}
    for study, improved in (("nowcast/table1", "improved-transposed-all"), ("nowcast/longer", "improved")):
        one, two = (records[study]["details"][name]["at_threshold"] for name in (improved, "swin"))
        found[f"2019, improved and Swin-UNETR ({length(records, study)})"] = one["2019"], two["2019"]
        found[f"2020, Swin-UNETR and improved ({length(records, study)})"] = two["2020"], one["2020"]
    return ordered(found, "Years of generated weather differ by how wet their regions are, and in nothing else")


def vote(records: Records) -> Verdict:
    """The paper's vote on held-out windows, from 0.5 on and at thresholds, against the best of its members."""
    found = []
    for words, details in held_out(records).items():
        for name, one in details.items():
            if name.startswith(_VOTE):
                key = "above_best_single_at_half" if "above_best_single_at_half" in one else "above_best_single"
                found.append((f"{name}, less {one['best_single']} ({words})", one[key]))
    return judged(found, 1, f"Tried as well: {_tried(records)}")


def _tried(records: Records) -> str:
    """All votes of the longer study, on test windows."""
    gains = [
        one["above_best_single"]
        for one in records["nowcast/longer"]["details"].values()
        if isinstance(one, Mapping) and "above_best_single" in one
    ]
    above = sum(low > 0 for _, low, _ in gains)
    ways = "majorities, means, weighted means and bests of three groups of models"
    return f"{ways} ({length(records, 'nowcast/longer')}); {above} of {len(gains)} are above their best member"


def ensemble(records: Records) -> Verdict:
    """Every combination of the paper's voters on held-out windows against the best of them alone."""
    found = [
        (f"{name}, less {one['best_single']} ({words})", one["above_best_single"])
        for words, details in held_out(records).items()
        for name, one in details.items()
        if "of the paper's voters" in name and "above_best_single" in one
    ]
    return judged(found, 1, "The members are unequal: those that know less about where it rains outvote the best")


def per_region(records: Records) -> Verdict:
    """Each region's best, chosen on the windows that are counted, against votes, their members and single rows."""
    found = {}
    for words, details in held_out(records).items():
        best = [one["total"] for name, one in details.items() if "of the paper's" in name and "very windows" in name]
        voted = [one for name, one in details.items() if name.startswith(_VOTE)]
        alone = [one["total"] - one["above_best_single"][0] for one in voted if "above_best_single" in one]
        rest = [*(one["total"] for one in voted), *alone, *_rows(details)]
        found[f"best per region, best vote or single model ({words})"] = max(best), max(rest)
    return ordered(found)


def above_baseline(records: Records) -> Verdict:
    """Swin-UNETR and the improved baselines less the official one, on held-out windows."""
    names = ("swin-float32", "swin", "improved-transposed-all", "improved")
    found = [
        (f"{name} less baseline {said} ({words})", details["contrasts"][f"{name} above baseline"][key])
        for words, details in held_out(records).items()
        for name in names
        for key, said in (("at_half", "from 0.5 on"), ("at_threshold", "at the thresholds of validation"))
        if f"{name} above baseline" in details["contrasts"]
    ]
    return judged(found, 1, SHORT)


def _rows(details: Mapping[str, Any]) -> list[float]:
    """Single rows of Table 2, ours apart."""
    return [one["total"] for name, one in details["members"].items() if name not in ("drift", "focus")]


def token(records: Records) -> Verdict:
    """Whether probabilities are higher where it rained, within a window."""
    found = {}
    for study in STUDIES:
        one, two = (records[study]["details"][name]["knows_where"] for name in ("swin", "vivit"))
        found[f"knows where, Swin-UNETR and ViViT ({length(records, study)})"] = one, two
    return ordered(found)


def regions(records: Records) -> Verdict:
    """Region-years in which upsampling is above interleaving."""
    details = records["nowcast/table1"]["details"]
    one, two = (details[name]["by_place_at_threshold"] for name in ("upsample", "swin"))
    above = sum(one[place] > two[place] for place in one)
    text = f"above interleave in {above} of {len(one)} region-years"
    return Verdict("holds on ours" if above else "fails", text, data=DATA, why="" if above else SHORT)


def front(records: Records) -> Verdict:
    """Whether the forecast of the window that is drawn has less rain at the end, as what fell has."""
    shown = records["nowcast/fig1"]["details"]["shown"]
    said, fell = shown["forecast"], shown["observed"]
    leaves = said[0] > said[-1] and fell[0] > fell[-1]
    parts = [", ".join(f"{part:.0%}" for part in each) for each in (said, fell)]
    text = f"rain on {parts[0]} of the area at hours 1 to 8 of the forecast; it fell on {parts[1]}"
    return Verdict("holds on ours" if leaves else "fails", text, data=DATA, why="" if leaves else SHORT)
