"""Robust accuracy: the same answer with and without dropping, and never above what another library leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import foolbox
import pytest
import torch

from fewer.attack.attacks.pgd import pgd
from fewer.attack.audit import Audit, Line, Report, attacked, robust
from fewer.attack.iteration import Rows
from fewer.attack.layout import LAYOUTS, best_layout, layout
from fewer.attack.threat import Threat, parse, suite
from fewer.core.data import TensorData
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.systems.vision.task.task import Vision

from .examples import Regression, stream

# one of each kind, short enough for a test
SHORT = (
    Threat("fgsm", 0.1, every=True),
    Threat("pgd", 0.1, options={"steps": 6, "restarts": 2}),
    Threat("apgd", 0.1, options={"steps": 6}),
    Threat("apgd-t", 0.1, options={"steps": 5, "targets": 2}),
    Threat("fab-t", 0.1, options={"steps": 5, "targets": 2}),
    Threat("square", 0.1, options={"queries": 10}),
)


def doubled(nets: NetworkSet) -> NetworkSet:
    return replace(nets, modules={name: copy.deepcopy(module).double() for name, module in nets.modules.items()})


@pytest.mark.parametrize("threat", SHORT, ids=lambda threat: threat.kind)
def test_dropping_fooled_images_changes_no_answer(threat: Threat, mlp: Vision, robust_mlp: NetworkSet) -> None:
    # float64: in float32 a product of fewer rows may round differently
    nets = doubled(robust_mlp)
    with_drop = robust(mlp, nets, [threat], Audit(limit=80, per_batch=32))
    without = robust(mlp, nets, [threat], Audit(limit=80, drop=False))
    assert torch.equal(with_drop.survived, without.survived)
    assert with_drop.clean == without.clean
    assert with_drop.lines[0].alone == without.lines[0].alone


def test_dropping_between_attacks_changes_no_answer(mlp: Vision, robust_mlp: NetworkSet) -> None:
    nets = doubled(robust_mlp)
    together = robust(mlp, nets, SHORT, Audit(limit=80))
    each = [robust(mlp, nets, [threat], Audit(limit=80, drop=False)).survived for threat in SHORT]
    assert torch.equal(together.survived, torch.stack(each).all(0))
    assert 0 < together.robust < together.clean


def test_an_image_survives_pgd_exactly_if_no_visited_point_fools(mlp: Vision, robust_mlp: NetworkSet) -> None:
    nets, count = doubled(robust_mlp), 60
    report = robust(mlp, nets, "pgd:0.1,steps=8", Audit(limit=count))
    batch = mlp.data("test").take(torch.arange(count))
    batch = batch._replace(pixels=batch.pixels.double())
    noise = Rows(torch.arange(count), torch.tensor(0), torch.float64)
    points = [batch.pixels]
    last = pgd(mlp, 0.1, steps=8).last(nets, batch, noise, visit=lambda state: points.append(state.memory["x"]))
    start = last.ball.random(noise, "attack/start/0")
    with torch.no_grad():
        right = [nets.modules["net"](x).argmax(1) == batch.label for x in (*points, start)]
    assert torch.equal(report.survived, torch.stack(right).all(0))


def test_judging_the_last_point_only_answers_what_foolbox_answers(
    mlp: Vision, robust_mlp: NetworkSet, images: Callable[[int], Any]
) -> None:
    report = robust(mlp, robust_mlp, "pgd:0.12,steps=10,start=centre", Audit(limit=100, judge="last"))
    model = foolbox.PyTorchModel(robust_mlp.modules["net"].eval(), bounds=(0, 1), device="cpu")
    other = foolbox.attacks.LinfProjectedGradientDescentAttack(abs_stepsize=0.016, steps=10, random_start=False)
    _, _, fooled = other(model, images(100).pixels, foolbox.Misclassification(images(100).label), epsilons=0.12)
    assert torch.equal(report.survived, ~fooled)
    assert 0 < report.robust < report.clean


def strongest(nets: NetworkSet, batch: Any, budget: float) -> float:
    """Accuracy that the strongest of foolbox's gradient attacks leaves."""
    model = foolbox.PyTorchModel(copy.deepcopy(nets.modules["net"]).eval(), bounds=(0, 1), device="cpu")
    attacks = [
        foolbox.attacks.LinfProjectedGradientDescentAttack(steps=60),
        foolbox.attacks.LinfAdamProjectedGradientDescentAttack(steps=60),
    ]
    left = []
    for attack in attacks:
        _, _, success = attack(model, batch.pixels, foolbox.Misclassification(batch.label), epsilons=budget)
        left.append(1 - float(success.float().mean()))
    return min(left)


@pytest.mark.parametrize(("kind", "count"), [("mlp", 24), ("cnn", 12)])
@pytest.mark.parametrize("strength", ["fragile", "robust"])
def test_the_suites_worst_case_is_not_above_foolboxs_strongest_gradient_attack(
    kind: str, count: int, strength: str, request: pytest.FixtureRequest, images: Callable[[int], Any]
) -> None:
    task, nets = request.getfixturevalue(kind), request.getfixturevalue(f"{strength}_{kind}")
    # the suite with fewer restarts, targets and queries: weaker than the real one, so that the bound is harder to keep
    fewer: dict[str, dict[str, int]] = {
        "pgd": {"steps": 40, "restarts": 2},
        "apgd-t": {"steps": 50, "targets": 3},
        "fab-t": {"steps": 20, "targets": 2},
        "square": {"queries": 20},
    }
    threats = [replace(threat, options=fewer.get(threat.kind, threat.options)) for threat in suite(0.1)]
    torch.manual_seed(0)
    assert robust(task, nets, threats, Audit(limit=count)).robust <= strongest(nets, images(count), 0.1) + 1e-9


def test_an_audit_that_was_cut_off_goes_on_and_ends_the_same(mlp: Vision, robust_mlp: NetworkSet) -> None:
    parts: list[Report] = []
    whole = robust(mlp, robust_mlp, SHORT, Audit(limit=60), after_each=parts.append)
    assert [len(part.lines) for part in parts] == list(range(1, len(SHORT) + 1))
    for part in parts:
        after: list[Report] = []
        again = robust(mlp, robust_mlp, SHORT, Audit(limit=60), done=part, after_each=after.append)
        assert len(after) == len(SHORT) - len(part.lines)
        assert torch.equal(again.survived, whole.survived)
        assert [line.standing for line in again.lines] == [line.standing for line in whole.lines]
    with pytest.raises(UserError, match="begin anew"):
        robust(mlp, robust_mlp, SHORT, Audit(limit=61), done=parts[0])
    with pytest.raises(UserError, match="begin anew"):
        robust(mlp, robust_mlp, SHORT[1:], Audit(limit=60), done=parts[0])


def test_each_number_names_its_attack_and_survivors_only_numbers_are_not_called_alone(
    mlp: Vision, fragile_mlp: NetworkSet
) -> None:
    report = robust(mlp, fragile_mlp, [SHORT[0], SHORT[1]], Audit(limit=50))
    assert [line.attack for line in report.lines] == [SHORT[0].title, SHORT[1].title]
    assert report.lines[0].alone == report.lines[0].standing and report.lines[1].alone is None
    metrics = report.metrics()
    assert next(iter(metrics)) == "robust (worst of FGSM, PGD-6 x 2 at L-inf 0.1)"
    assert metrics["FGSM, L-inf 0.1"] == report.lines[0].alone
    assert metrics[f"{SHORT[1].title}, after all before"] == report.lines[1].standing == report.robust
    assert "FGSM, L-inf 0.1" in report.text() and "of 50 images" in report.text()


def test_the_name_of_a_worst_case_is_whole_and_names_the_budget() -> None:
    lines = tuple(Line(threat.title, None, 0.5, 0.0) for threat in parse("suite:0.05,queries=50"))
    name = next(iter(Report(2, 1.0, lines, torch.tensor([True, False])).metrics()))
    assert name.count("(") == name.count(")") and name.endswith("at L-inf 0.05)")
    assert "APGD-T-100 (9 targets, DLR), FAB-T" in name


def test_a_limit_counts_images_and_an_image_draws_the_same_noise_in_any_batch(
    mlp: Vision, fragile_mlp: NetworkSet
) -> None:
    nets = doubled(fragile_mlp)
    small = robust(mlp, nets, "pgd:0.05,steps=4", Audit(limit=30, per_batch=7))
    large = robust(mlp, nets, "pgd:0.05,steps=4", Audit(limit=60))
    assert small.images == 30 and torch.equal(small.survived, large.survived[:30])
    assert 0 < small.robust < small.clean


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_changes_the_speed_and_not_the_answer(
    name: str, cnn: Vision, robust_cnn: NetworkSet, images: Callable[[int], Any]
) -> None:
    laid, batch = layout(robust_cnn, name), images(20)
    with laid.active() as nets, torch.no_grad():
        scores = nets.net(batch.pixels)
        assert torch.backends.mkldnn.enabled is (name != "native")
    assert torch.backends.mkldnn.enabled
    with torch.no_grad():
        assert torch.allclose(scores, robust_cnn.net(batch.pixels), atol=1e-5)
    convolution = next(p for p in nets.modules["net"].parameters() if p.ndim == 4)
    assert convolution.is_contiguous(memory_format=torch.channels_last) or name != "channels_last"


def test_the_fastest_layout_is_chosen_once_per_architecture(cnn: Vision, robust_cnn: NetworkSet) -> None:
    calls: list[int] = []
    grown = NetworkSet({"net": torch.nn.Sequential(torch.nn.Conv2d(1, 37, 3))}, training=False)
    for _ in range(2):
        assert best_layout(grown, torch.device("cpu"), lambda nets: calls.append(1)).name in LAYOUTS
    assert len(calls) == 4 * len(LAYOUTS)


def test_any_tasks_own_figures_come_out_under_attack() -> None:
    task = Regression()
    torch.manual_seed(0)
    nets = NetworkSet({name: module.double() for name, module in task.networks().items()}, training=False)

    def score(predict: Callable[[Any], torch.Tensor]) -> float:
        asking = task.evaluate("test")
        answer = predict(next(asking))
        with pytest.raises(StopIteration) as done:
            asking.send(answer)
        return float(done.value.value["score"])

    def clean(batch: Any) -> torch.Tensor:
        with torch.no_grad():
            return task.predict(nets, batch.known, stream())

    assert score(attacked(task, nets, "pgd:0.3")) < score(attacked(task, nets, "pgd:0.1")) < score(clean)
    # carried over to a model that cannot be differentiated
    carried = score(attacked(task, nets, "pgd:0.3", predict=lambda batch: clean(batch).round(decimals=6)))
    assert carried == pytest.approx(score(attacked(task, nets, "pgd:0.3")), abs=1e-4)


def test_a_network_given_as_tensors_is_audited_like_its_module(cnn: Vision, robust_cnn: NetworkSet) -> None:
    lent = replace(robust_cnn, state={"net": dict(robust_cnn.modules["net"].state_dict())})
    for name in LAYOUTS:
        audit = Audit(limit=30, layout=name)
        both = [robust(cnn, nets, "pgd:0.1,steps=3", audit).survived for nets in (robust_cnn, lent)]
        assert torch.equal(*both)


def test_images_outside_the_bounds_labels_outside_the_classes_and_a_lack_of_classes_are_refused(
    mlp: Vision, fragile_mlp: NetworkSet
) -> None:
    def with_samples(**changes: torch.Tensor) -> Vision:
        changed = copy.copy(mlp)
        changed._splits = {"test": TensorData(mlp.data("test").samples._replace(**changes))}
        return changed

    samples = mlp.data("test").samples
    with pytest.raises(UserError, match="bounds"):
        robust(with_samples(pixels=samples.pixels * 2 - 0.5), fragile_mlp, "fgsm:0.1")
    with pytest.raises(UserError, match="labels from 1 to 10"):
        robust(with_samples(label=samples.label + 1), fragile_mlp, "fgsm:0.1")
    with pytest.raises(UserError, match="labels, logits"):
        robust(Regression(), fragile_mlp, "fgsm:0.1")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="single attack"):
        attacked(Regression(), fragile_mlp, "suite:0.3")
    with pytest.raises(UserError, match="at least 1 image"):
        Audit(limit=0)
    with pytest.raises(UserError, match="layout"):
        Audit(layout="sideways")
    with pytest.raises(UserError, match="every or last"):
        Audit(judge="first")
