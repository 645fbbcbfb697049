"""The chapter of one task: from what was trained to the picture that its users think in."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fewer.core.abilities import Attackable
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.registry import system_of
from fewer.core.system import imported
from fewer.ensemble.combine import combine
from fewer.packs import VALUES
from fewer.report.attacks import attack_curve, shortened
from fewer.report.chart import bars, curves
from fewer.report.description import in_words, metric_of, shown
from fewer.report.groups import Group, Interval, run_name, spelled
from fewer.report.layers import keeps, losses
from fewer.report.page import abreast, cards, details, figure, heading, table, words
from fewer.report.sizes import Sizes, sizes_of

__all__ = ["chapter"]


def chapter(task: str, groups: Sequence[Group], attacks: Sequence[str], limit: int) -> list[str]:
    """Parts of the section, in the order in which one asks."""
    sizes = {group.name: sizes_of(group.first) for group in groups}
    return [
        words(system_of(task).description.lead),
        _cards(task, groups, sizes),
        *_trained(groups),
        *_quality(task, groups),
        *_learning(task, groups),
        *_attacked(task, groups, attacks, limit),
        *_voted(task, groups, limit),
        *_sized(groups, sizes),
        *_pictures(task, groups, attacks),
    ]


def _leading(group: Group) -> str:
    return next(iter(group.first.metrics), "")


def _spelled(task: str, found: Interval, name: str) -> str:
    return spelled(found, lambda value: shown(value, metric_of(task, name).share))


def _cards(task: str, groups: Sequence[Group], sizes: dict[str, Sizes]) -> str:
    """Of the run with the fewest weights: what is left, how well it does, how small and fast it is."""
    least = min(groups, key=lambda group: group.kept)
    found, name = [], _leading(least)
    if least.kept < least.weights:
        found.append((f"{100 * least.count.density:.3g} %", f"of the weights kept in {least.name}: {least.count}"))
    if name:
        found.append(
            (
                shown(least.metric(name)[0], metric_of(task, name).share),
                f"{metric_of(task, name).label} of {least.name}",
            )
        )
    size = sizes[least.name]
    if math.isfinite(size.smaller):
        found.append((f"{size.smaller:.3g}x", f"smaller as a pack, lossless: {size.packed['float32']:,} bytes"))
    if math.isfinite(size.faster):
        found.append((f"{size.faster:.3g}x", "the speed of torch for one sample, through the pack"))
    return cards(found)


def _trained(groups: Sequence[Group]) -> list[str]:
    rows = []
    for group in groups:
        seeds = f" {len(group.runs)} seeds." if len(group.runs) > 1 else ""
        rows.append([group.name, in_words(group.job) + seeds])
    return [heading("What was trained"), table(["run", "settings"], rows, prose=True)]


def _quality(task: str, groups: Sequence[Group]) -> list[str]:
    names = list(dict.fromkeys(name for group in groups for name in group.first.metrics))
    wanted = [name for name in system_of(task).description.metrics if name in names] or names[:4]
    rows = [
        [g.name, f"{g.kept:,}", f"{g.count.kept_prunable:,}", *[_spelled(task, g.metric(n), n) for n in wanted]]
        for g in groups
    ]
    told = ". ".join(
        f"{metric_of(task, n).label.capitalize()}: {metric_of(task, n).meaning}"
        for n in wanted
        if metric_of(task, n).meaning
    )
    every = table(
        ["metric", *[g.name for g in groups]], [[n, *[_spelled(task, g.metric(n), n) for g in groups]] for n in names]
    )
    parts = [
        heading("How well it went"),
        table(["run", "weights", "of them prunable", *[metric_of(task, name).label for name in wanted]], rows),
        f'<p class="soft">{told}.</p>' if told else "",
        details("every metric", every) if len(names) > len(wanted) else "",
    ]
    return [part for part in parts if part]


def _against_sparsity(task: str, groups: Sequence[Group], name: str) -> str:
    """A line a recipe; the dense network, where there is one, begins each."""
    metric = metric_of(task, name)
    dense = [group for group in groups if group.kept == group.weights and not group.job.harden]
    series: dict[str, list[tuple[float, ...]]] = {}
    for group in sorted(groups, key=lambda g: g.sparsity):
        if group.kept == group.weights:
            recipe = "dense, hardened" if group.job.harden else "dense"
        else:
            prune = group.job.prune
            recipe = f"{prune.method} {prune.when}" if prune else "pruned before"
            recipe += f", {group.job.harden.split(':')[0]}-hardened" if group.job.harden else ""
            if recipe not in series and dense and not group.job.harden:
                series[recipe] = [(0.0, *dense[0].metric(name))]
        series.setdefault(recipe, []).append((100 * group.sparsity, *group.metric(name)))
    if len(series) > 1:  # it begins the other lines
        series.pop("dense", None)
    chart = curves(series, "weights removed, in percent of all", metric.label, percent=metric.share, marks=True)
    several = any(len(group.runs) > 1 for group in groups)
    bands = " Bands are 95 % confidence intervals over seeds." if several else " One seed a point: no intervals."
    return figure(chart, f"Quality against sparsity.{bands}")


def _learning(task: str, groups: Sequence[Group]) -> list[str]:
    charts = [
        figure(curves(series, "step", f"loss of {network}"), f"Training loss of {network}, mean of each interval.")
        for network, series in losses(groups).items()
    ]
    if len({round(group.sparsity, 4) for group in groups}) > 1:
        charts.append(_against_sparsity(task, groups, _leading(groups[0])))
    pruned = [group for group in groups if group.first.mask]
    charts += [
        figure(
            bars(keeps(group.first), "%", most=100.0),
            f"{group.name}: share of the weights kept, prunable layer by layer.",
        )
        for group in pruned
    ]
    note = "A short bar is a layer of which the criterion kept little, a long bar one of which it kept much."
    return [heading("Learning, and what is left of the weights"), words(note) if pruned else "", abreast(*charts)]


def _voted(task: str, groups: Sequence[Group], limit: int) -> list[str]:
    """Members that were made for the same data, alone and together; on a part of the test split, all on the same."""
    members = [run for group in groups for run in group.runs if run.job.settings == groups[0].job.settings]
    if len(members) < 2:
        return []
    short, name = shortened(task, members[0].task, limit), _leading(groups[0])
    predicts = [predictor(short, run.modules, run.job.seeds[0]) for run in members]
    found = {run_name(run): evaluate(short, one) for run, one in zip(members, predicts)}
    found["mean of all"] = evaluate(short, combine(short, predicts, "mean"))
    rows = [[who, shown(metrics[name], metric_of(task, name).share)] for who, metrics in found.items()]
    label, mean = metric_of(task, name).label, found["mean of all"][name]
    passed = sum(mean > found[run_name(run)][name] for run in members)
    note = (
        "Each network's answers, and the mean of them all as one answer, all counted on the same part of the test "
        f"split. The mean's {label} is greater than that of {passed} of {len(members)} members."
    )
    return [heading("Voting"), words(note), table(["who", label], rows)]


def _attacked(task: str, groups: Sequence[Group], attacks: Sequence[str], limit: int) -> list[str]:
    described = system_of(task).description
    wanted = list(attacks) or ([described.attack] if described.attack else [])
    if not wanted or wanted == ["none"] or not all(isinstance(group.first.task, Attackable) for group in groups):
        return []
    metric = metric_of(task, _leading(groups[0]))
    parts = []
    for attack in wanted:
        found = attack_curve(groups, attack, limit)
        chart = curves(found, described.unit, f"{metric.label} under attack", percent=metric.share, marks=True)
        budgets = [f"{point[0]:g}" for point in next(iter(found.values()))]
        rows = [
            [name, *[_spelled(task, (p[1], p[2]), _leading(groups[0])) for p in line]] for name, line in found.items()
        ]
        parts.append(figure(chart, f"{metric.label} against the budget of {attack}."))
        parts.append(
            figure(table(["budget", *budgets], rows), "The same in numbers; the first column is not attacked.")
        )
    return [heading("Under attack"), words(described.adversary), abreast(*parts)]


def _sized(groups: Sequence[Group], sizes: dict[str, Sizes]) -> list[str]:
    rows = []
    for group in groups:
        size = sizes[group.name]
        packed = [f"{size.packed[kind]:,}" if kind in size.packed else "-" for kind in VALUES]
        ratio = f"{size.smaller:.3g}x" if math.isfinite(size.smaller) else "-"
        speed = [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in (size.torch_us, size.pack_us)]
        rows.append([group.name, size.dense, *packed, ratio, *speed])
    least = min(groups, key=lambda group: group.kept)
    small = {"dense float32": sizes[least.name].dense / 1024}
    small |= {f"pack, {kind}": size / 1024 for kind, size in sizes[least.name].packed.items()}
    notes = [f"{name} as {size.why}" for name, size in sizes.items() if size.why]
    columns = ["run", "dense bytes", *[f"pack, {kind}" for kind in VALUES], "smaller", "torch us", "pack us"]
    return [
        heading("Size and speed"),
        table(columns, rows),
        *[words(note) for note in notes],
        figure(bars(small, "KiB"), f"{least.name}: bytes of the weights in torch, and of the whole pack."),
    ]


def _pictures(task: str, groups: Sequence[Group], attacks: Sequence[str]) -> list[str]:
    """Of the densest and of the sparsest run: what pruning changed is what lies between them."""
    if not system_of(task).picture:
        return []
    draw = imported(system_of(task).picture)
    attack = next((a for a in attacks if a != "none"), "") or system_of(task).description.attack
    ends = list(dict.fromkeys([max(groups, key=lambda g: g.kept).name, min(groups, key=lambda g: g.kept).name]))
    parts = []
    for group in groups:
        if group.name in ends:
            parts += [heading(f"Seen: {group.name}"), draw(group.first, attack)]
    return parts
