"""New access points join without the rest being learned again; the example runs."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from fewer.core.engines.base import Training
from fewer.core.engines.evaluate import predictor
from fewer.core.engines.loop import fit
from fewer.core.engines.plain import Plain
from fewer.systems.cellfree.task.settings import Settings
from fewer.systems.cellfree.task.statistics import metrics
from fewer.systems.cellfree.task.survey import World
from fewer.systems.cellfree.task.task import CellFree, phones_of
from fewer.systems.cellfree.task.world.deployment import Deployment
from fewer.systems.cellfree.task.world.growth import grown, learn_new_rows

SETTINGS = Settings(access_points=30, side_m=500.0, candidates=8, train_phones=2500, test_phones=1500, width=32)


def test_a_new_access_point_is_served_after_learning_its_row_alone():
    whole = Deployment.simulate(SETTINGS)
    before = replace(SETTINGS, access_points=26)
    old = CellFree(before, world=World.make(before, whole.only(np.arange(26))))
    engine = Plain(old, Training(steps=300, batch=64), 0)
    fit(engine)
    task = CellFree(SETTINGS, world=World.make(SETTINGS, whole))
    task.standard = old.standard
    modules = grown(task, engine.state.modules_of(0))
    kept = {name: value.clone() for name, value in modules["net"].state_dict().items()}
    survey = task.survey("test")
    new = survey.rows(np.flatnonzero(survey.master >= 26))

    def quality():
        return metrics(predictor(task, modules)(phones_of(new)).numpy(), new, 10.0)["other_average_precision"]

    at_once = quality()
    learn_new_rows(task, modules, before=26, steps=100)
    assert quality() > at_once + 0.02
    for name, value in modules["net"].state_dict().items():
        same = value[:26] if name == "own.weight" else value
        assert torch.equal(same, kept[name][: len(same)] if name == "own.weight" else kept[name]), name


def test_some_access_points_of_a_deployment_are_heard_as_before():
    whole = Deployment.simulate(SETTINGS)
    kept = np.array([3, 5, 8])
    phones = whole.phones(20, part="x")
    assert np.array_equal(whole.only(kept).gain_db(phones), whole.gain_db(phones)[:, kept])


def test_the_example_runs(tmp_path, capsys):
    example = Path(__file__).parents[3] / "examples" / "cellfree_select.py"
    runpy.run_path(str(example))["main"](str(tmp_path / "map.png"), places=20_000)
    said = capsys.readouterr().out
    assert "of the ceiling" in said and "bits about who serves" in said
    assert (tmp_path / "map.png").exists()
