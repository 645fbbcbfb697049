"""The paper's network against PyTorch Geometric, the scalable one against itself, both through the contract."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import evaluate, predictor
from fewer.core.engines.loop import fit
from fewer.core.engines.nets import NetworkSet
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.plain import Plain
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.core.seed import Stream
from fewer.custom.contract import CHECKS, check
from fewer.pruning.pruning import Pruning, mask_for
from fewer.run.job import Job
from fewer.systems.cellfree.task.hetero import hetero_data
from fewer.systems.cellfree.task.models.site import site_network, site_reports
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.task import CellFree, Phones

SMALL = {"access_points": 20, "side_m": 450.0, "candidates": 6, "train_phones": 400, "test_phones": 300}
NOISE = Stream(torch.tensor(0), torch.tensor(0))


def small(model: str, **changes) -> CellFree:
    return CellFree(Settings(**{**SMALL, "model": model, "validation_phones": 50, **changes}))


@pytest.mark.parametrize("model", ["local", "sage", "sage-literal"])
def test_the_task_honours_the_contract(model):
    task = small(model, train_phones=64, test_phones=40, width=24)
    outcomes = check(task)
    assert len(outcomes) == len(CHECKS)
    # a sum over neighbours stands for their maximum when SynFlow counts paths: the paper's own links look worthless
    known = set() if model == "local" else {"every criterion prunes what can be pruned"}
    assert [f"{one.name}: {one.fault}" for one in outcomes if one.fault and one.name not in known] == []


def test_synflow_prunes_the_papers_network_once_every_layer_has_a_quota():
    task = small("sage", train_phones=64)
    modules = fresh_modules(task, 0)
    pruning = Pruning("synflow", 0.5, samples=8, iterations=5)
    with pytest.raises(UserError, match="layer_quota"):
        mask_for(task, modules, pruning, seed=0)
    mask = mask_for(task, modules, replace(pruning, layer_quota=0.1), seed=0)["net"]
    assert sum(int(kept.sum()) for kept in mask.values()) == round(0.5 * sum(kept.numel() for kept in mask.values()))


def test_the_papers_network_equals_message_passing_in_pytorch_geometric():
    geometric = pytest.importorskip("torch_geometric.nn")

    class Pool(geometric.MessagePassing):
        def __init__(self, convolution):
            super().__init__(aggr="max")
            self.convolution = convolution

        def forward(self, x, edges, size):
            return self.propagate(edges, x=x, size=size)

        def message(self, x_j):
            return self.convolution.message(x_j)

    task = small("sage")
    survey = task.survey("test").rows(slice(0, 50))
    graph = hetero_data(task.world, survey)
    net = fresh_modules(task, 0)["net"]
    near = graph["access_point", "near", "access_point"].edge_index
    serves = graph["access_point", "serves", "phone"].edge_index
    h = task.constants["features"]
    with torch.no_grad():
        for convolution in (net.first, net.second):
            h = convolution.update(h, Pool(convolution)(h, near, (20, 20)))
        values = _dense_reports(task, survey)
        phones = torch.selu(net.phone(values))
        for convolution in (net.third, net.fourth):
            pooled = Pool(convolution)((h, phones), serves, (20, 50))
            h, phones = convolution.update(h, None), convolution.update(phones, pooled)
        theirs = (h[serves[0]] * phones[serves[1]]).sum(1).view(50, -1)
        nets = NetworkSet({"net": net}, training=False)
        ours = task.logits(nets, _reports(task, survey), NOISE)
    assert torch.allclose(theirs[:, 1:], ours, rtol=1e-4, atol=1e-4)
    assert ours.std() > 0.1


def _reports(task, survey):
    return task.inputs(Phones(*_tensors(survey)))


def _tensors(survey):
    return (
        torch.from_numpy(survey.master),
        torch.as_tensor(survey.rsrp_db, dtype=torch.float32),
        torch.as_tensor(survey.reported, dtype=torch.float32),
        torch.as_tensor(survey.gap_db, dtype=torch.float32),
    )


def _dense_reports(task, survey):
    from fewer.systems.cellfree.task.task import _SAGE_SCALE

    dense = np.zeros((len(survey), 2, len(task.world.deployment)))
    links = task.world.clusters.measured[survey.master]
    center, spread = task.standard
    np.put_along_axis(dense[:, 0], links, _SAGE_SCALE * (survey.rsrp_db - center) / spread, axis=1)
    np.put_along_axis(dense[:, 1], links, 1.0, axis=1)
    return torch.as_tensor(dense.reshape(len(survey), -1), dtype=torch.float32)


def test_graphs_export_with_labels_and_undirected_edges():
    task = small("sage")
    graph = hetero_data(task.world, task.survey("test"))
    edges = {tuple(pair) for pair in graph["access_point", "near", "access_point"].edge_index.T.tolist()}
    assert all((b, a) in edges for a, b in edges)
    labels = graph["access_point", "serves", "phone"].edge_label.view(300, 7)
    assert np.array_equal(labels.numpy(), task.survey("test").serves(10.0))


@pytest.mark.parametrize("model", ["local", "sage"])
def test_training_beats_how_often_each_candidate_serves(model):
    from fewer.systems.cellfree.task.selectors.selector import Frequency

    task = small(model, train_phones=2000, width=64)
    engine = Plain(task, Training(steps=250, batch=64), 0)
    fit(engine)
    found = evaluate(task, predictor(task, engine.modules))
    floor = Frequency().fit(task.world, survey=task.survey("train")).metrics(task.survey("test"))
    assert found["other_average_precision"] > floor["other_average_precision"] + 0.1
    assert next(iter(found)) == "other_average_precision"


def test_reports_that_did_not_arrive_change_nothing_whatever_they_hold():
    for model in ("local", "sage", "sage-literal"):
        task = small(model, missing=0.5)
        predict = predictor(task, fresh_modules(task, 0))
        batch = task.data("test").samples
        garbage = batch._replace(rsrp_db=torch.where(batch.reported > 0, batch.rsrp_db, torch.tensor(77.0)))
        assert torch.equal(predict(batch), predict(garbage))


def test_a_site_network_answers_as_the_whole_model_does():
    task = small("local", missing=0.3)
    modules = fresh_modules(task, 0)
    batch = task.data("test").samples
    master = int(batch.master[0])
    own = batch.master == master
    site = site_network(task, modules, master)
    with torch.no_grad():
        found = site(site_reports(batch.rsrp_db[own], batch.reported[own]))
    assert torch.allclose(found, predictor(task, modules)(batch)[own, 1:], atol=1e-5)
    assert sum(isinstance(layer, nn.Linear) for layer in site) == 3


def test_a_gap_gives_the_same_probability_at_the_tasks_threshold_and_more_at_a_wider_one():
    task = small("local")
    nets = NetworkSet(fresh_modules(task, 0), training=False)
    batch = task.data("test").samples
    with torch.no_grad():
        mean, deviation = task.gap(nets, task.inputs(batch))
        probability = task.predict(nets, task.inputs(batch), NOISE)[:, 1:]
    assert torch.allclose(torch.sigmoid(1.702 * (10.0 - mean) / deviation), probability, atol=1e-5)
    assert (torch.sigmoid(1.702 * (15.0 - mean) / deviation) > probability).all()


def test_the_local_models_weights_grow_in_proportion_to_the_network():
    sizes = [
        sum(p.numel() for p in fresh_modules(small("local", access_points=n, train_phones=20), 0)["net"].parameters())
        for n in (20, 40, 80)
    ]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_the_surface_is_what_phones_report_and_harm_rises_when_it_is_wrong():
    task = small("local")
    engine = Plain(task, Training(steps=150, batch=100), 0)
    fit(engine)
    batch = task.data("test").samples
    low, high = task.bounds
    assert ((task.perturbable(batch) >= low) & (task.perturbable(batch) <= high)).all()
    lossy = small("local", missing=0.5)
    low, high = lossy.bounds
    reports = lossy.perturbable(lossy.data("test").samples)
    assert (reports == 0).any() and ((reports >= low) & (reports <= high)).all()
    wrong = task.replace(batch, task.perturbable(batch) + 15.0)
    nets = NetworkSet(engine.modules, training=False)
    with torch.no_grad():
        assert task.attack_loss(nets, wrong, NOISE).mean() > task.attack_loss(nets, batch, NOISE).mean()
        assert task.logits(nets, task.inputs(batch), NOISE).shape == (300, 6)
    assert torch.equal(task.labels(batch), batch.gap_db[:, 1:].argmin(1))


def test_an_optimizer_that_the_task_would_not_use_is_refused(tmp_path):
    words = ("access_points=20", "candidates=6", "train_phones=64", "validation_phones=16", "test_phones=16")
    training = Training(steps=2, batch=16)
    asked = replace(training, optimizer=Optimizer("sgd", lr=5.0))
    with pytest.raises(UserError, match="descends with its own"):
        Job("cellfree", words, asked).run(tmp_path / "run")
    Job("cellfree", words, training).run(tmp_path / "run")
