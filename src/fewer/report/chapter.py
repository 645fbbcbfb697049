"""The chapter of one task: from what was trained to the picture that its users think in."""

from __future__ import annotations

import html
import math
from math import nan

from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.registry import system_of
from fewer.core.system import imported
from fewer.ensemble.combine import combine
from fewer.packs import VALUES
from fewer.report.attacks import shortened
from fewer.report.chart import bars, curves
from fewer.report.description import in_words, metric_of, microseconds, shown
from fewer.report.groups import Group, run_name
from fewer.report.layers import keeps, losses
from fewer.report.measured import Measured, signed
from fewer.report.page import Card, abreast, cards, details, figure, heading, table, words

__all__ = ["chapter"]


def chapter(measured: Measured, limit: int) -> list[str]:
    """Parts of the section: what one sees at once, then what only some want to read, folded."""
    folded = {
        "How well it went: every figure": _quality(measured),
        "What was trained": _trained(measured),
        "Learning, and what is left of the weights": _learning(measured),
        "Size and speed": _sized(measured),
        "Voting": _voted(measured, limit),
    }
    return [
        words(system_of(measured.task).description.lead),
        _cards(measured),
        *_attacked(measured),
        *_pictures(measured),
        *[details(title, "".join(parts)) for title, parts in folded.items() if parts],
    ]


def _cards(measured: Measured) -> str:
    """Of the run with the fewest weights, each with its change against dense."""
    least, size, dense = measured.least, measured.sizes[measured.least.name], measured.dense
    found: list[Card] = []
    if least.kept < least.weights:
        removed = f"−{100 * (1 - least.count.density):.3g} % against all of them"
        found.append((f"{100 * least.count.density:.3g} %", f"of the weights kept in {least.name}", removed))
    if measured.name:
        change = measured.against_dense(least)
        told = f"{measured.change(*change.found[:3])} against {change.first}" if change else ""
        value = shown(least.metric(measured.name).mean, measured.metric.share)
        found.append((value, f"{measured.metric.label} of {least.name}", told))
    if math.isfinite(size.smaller):
        packed = size.packed["float32"]
        told = f"−{100 * (1 - packed / size.dense):.3g} % against dense float32, lossless"
        found.append((f"{packed / 1024:,.1f} KiB", f"as a pack, {size.smaller:.3g} times smaller", told))
    if math.isfinite(size.faster):
        less = 100 * (size.pack_us / size.torch_us - 1)
        told = f"{signed(less / 100, True)} % against torch, which takes {microseconds(size.torch_us)}"
        found.append((microseconds(size.pack_us), "for one sample, through the pack", told))
    for attack, lines in measured.attacked.items():
        mean, told = lines[least.name][-1].found.mean, ""
        if dense is not None and dense.name != least.name:
            told = f"{measured.change(mean - lines[dense.name][-1].found.mean, nan, nan)} against {dense.name}"
        value = shown(mean, measured.metric.share)
        found.append((value, f"{measured.metric.label} of {least.name}, attacked by {attack}", told))
    return cards(found)


def _trained(measured: Measured) -> list[str]:
    rows = []
    for group in measured.groups:
        seeds = f" {len(group.runs)} seeds." if len(group.runs) > 1 else ""
        rows.append([group.name, in_words(group.job) + seeds])
    colours = [group.colour for group in measured.groups]
    return [table(["run", "settings"], rows, prose=True, colours=colours)]


def _quality(measured: Measured) -> list[str]:
    task, groups = measured.task, measured.groups
    names = list(dict.fromkeys(name for group in groups for name in group.first.metrics))
    wanted = [name for name in system_of(task).description.metrics if name in names] or names[:4]
    rows = [
        [g.name, f"{g.kept:,}", f"{g.count.kept_prunable:,}", *[measured.spelled(g.metric(n), n) for n in wanted],
         _change(measured, g)]
        for g in groups
    ]  # fmt: skip
    told = ". ".join(
        f"{metric_of(task, n).label.capitalize()}: {metric_of(task, n).meaning}"
        for n in wanted
        if metric_of(task, n).meaning
    )
    over = {group.name: group.over for group in groups if group.over}
    if over:
        same = len(over) == len(groups) and len(set(over.values())) == 1
        each = [f"over {groups[0].over}"] if same else [f"{name} over {what}" for name, what in over.items()]
        told += f". In brackets 95 % intervals, {', '.join(each)}"
    every = table(
        ["metric", *[g.name for g in groups]],
        [[n, *[measured.spelled(g.metric(n), n) for g in groups]] for n in names],
    )
    labels = [metric_of(task, name).label for name in wanted]
    head = ["run", "weights", "of them prunable", *labels, f"{measured.metric.label} against dense"]
    parts = [
        table(head, rows, colours=[group.colour for group in groups]),
        f'<p class="soft">{html.escape(told)}.</p>' if told else "",
        details("every metric", every) if len(names) > len(wanted) else "",
    ]
    return [part for part in parts if part]


def _change(measured: Measured, group: Group) -> str:
    change = measured.against_dense(group)
    return measured.change(*change.found[:3]) if change else "-"


def _against_sparsity(measured: Measured) -> str:
    """A point a run."""
    series = {g.name: [(100 * g.sparsity, *g.metric(measured.name))] for g in measured.groups}
    chart = curves(
        series, "weights removed, in per cent of all", measured.metric.label, percent=measured.metric.share,
        marks=True, colours=measured.colours,
    )  # fmt: skip
    return figure(chart, "Quality against sparsity; whiskers are 95 % intervals.")


def _learning(measured: Measured) -> list[str]:
    charts = [
        figure(
            curves(series, "step", f"loss of {network}", colours=measured.colours),
            f"Training loss of {network}, mean of each interval.",
        )
        for network, series in losses(measured.groups).items()
    ]
    if measured.name and len({round(group.sparsity, 4) for group in measured.groups}) > 1:
        charts.append(_against_sparsity(measured))
    pruned = [group for group in measured.groups if group.first.mask]
    charts += [
        figure(
            bars(keeps(group.first), "%", most=100.0, colour=group.colour),
            f"{group.name}: share of the weights kept, prunable layer by layer.",
        )
        for group in pruned
    ]
    note = "A short bar is a layer of which the criterion kept little, a long bar one of which it kept much."
    return [words(note) if pruned else "", abreast(*charts)]


def _voted(measured: Measured, limit: int) -> list[str]:
    """Members that were made for the same data, alone and together; on a part of the test split, all on the same."""
    task, groups, name = measured.task, measured.groups, measured.name
    members = [run for group in groups for run in group.runs if run.job.settings == groups[0].job.settings]
    if len(members) < 2:
        return []
    short = shortened(task, members[0].task, limit)
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
    return [words(note), table(["who", label], rows)]


def _attacked(measured: Measured) -> list[str]:
    if not measured.attacked:
        return []
    described, metric, parts = system_of(measured.task).description, measured.metric, []
    for attack, found in measured.attacked.items():
        lines = {name: [one.point for one in line] for name, line in found.items()}
        chart = curves(
            lines, described.unit, f"{metric.label} under attack", percent=metric.share, marks=True,
            colours=measured.colours,
        )  # fmt: skip
        budgets = [f"{one.budget:g}" for one in next(iter(found.values()))]
        rows = [[name, *[measured.spelled(one.found) for one in line]] for name, line in found.items()]
        parts.append(figure(chart, f"The attack is {attack}; bands are 95 % intervals."))
        told = table(["budget", *budgets], rows, colours=[group.colour for group in measured.groups])
        note = words("With 95 % intervals. The budget is the axis of the chart; the first column is not attacked.")
        parts.append(details("The same in numbers", told + note))
    return [heading("Under attack"), words(described.adversary), *parts]


def _sized(measured: Measured) -> list[str]:
    groups, sizes, rows = measured.groups, measured.sizes, []
    for group in groups:
        size = sizes[group.name]
        packed = [f"{size.packed[kind]:,}" if kind in size.packed else "-" for kind in VALUES]
        ratio = f"{size.smaller:.3g}x" if math.isfinite(size.smaller) else "-"
        speed = [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in (size.torch_us, size.pack_us)]
        rows.append([group.name, size.dense, *packed, ratio, *speed])
    least = measured.least
    small = {"dense float32": sizes[least.name].dense / 1024}
    small |= {f"pack, {kind}": size / 1024 for kind, size in sizes[least.name].packed.items()}
    notes = [f"{name} as {size.why}" for name, size in sizes.items() if size.why]
    notes += [
        f"The file that fewer pack writes of {name} also carries its map: {size.carried:,} bytes more."
        for name, size in sizes.items()
        if size.carried
    ]
    packs = [f"pack, {kind}, bytes" for kind in VALUES]
    columns = ["run", "dense, bytes", *packs, "smaller", "torch, µs", "pack, µs"]
    return [
        table(columns, rows, colours=[group.colour for group in groups]),
        *[words(note) for note in notes],
        figure(
            bars(small, "KiB", colour=least.colour),
            f"{least.name}: bytes of the weights in torch, and of the whole pack.",
        ),
    ]


def _pictures(measured: Measured) -> list[str]:
    """Of the densest and of the sparsest run, and of the hardened one: what these change lies between them."""
    task, groups = measured.task, measured.groups
    if not system_of(task).picture:
        return []
    draw = imported(system_of(task).picture)
    attack = next(iter(measured.attacked), "") or system_of(task).description.attack
    hardened = [group for group in groups if group.job.harden]
    chosen = {max(groups, key=lambda g: g.kept).name, measured.least.name, *[group.name for group in hardened[:1]]}
    parts = []
    for group in groups:
        if group.name in chosen:
            kind = " (hardened)" if group.job.harden else ""
            parts += [heading(f"Seen: {group.name}{kind}"), draw(group.first, attack)]
    return parts
