"""Neural networks that do the same job with fewer weights, fewer measurements and fewer surprises.

import fewer
run = fewer.train("vision", "runs/small", prune="snip,sparsity=0.95", steps=300)
fewer.pack(run, "small.pack").predict(images)

Everything that a user, a task's author or a system's author needs is imported from here, when it is first asked for:
`import fewer` alone loads neither torch nor numpy.
"""

from typing import TYPE_CHECKING

from fewer.core.lazy import lazily
from fewer.core.machine.version import VERSION

if TYPE_CHECKING:
    from fewer.attack.audit import attacked as attacked
    from fewer.core.abilities import Attackable as Attackable
    from fewer.core.abilities import Classifier as Classifier
    from fewer.core.abilities import Featured as Featured
    from fewer.core.abilities import Grouped as Grouped
    from fewer.core.abilities import Voting as Voting
    from fewer.core.data import TensorData as TensorData
    from fewer.core.data import batches as batches
    from fewer.core.engines.base import Training as Training
    from fewer.core.engines.evaluate import evaluate as evaluate
    from fewer.core.engines.evaluate import predictor as predictor
    from fewer.core.engines.nets import NetworkSet as NetworkSet
    from fewer.core.engines.optimizer import Optimizer as Optimizer
    from fewer.core.errors import UserError as UserError
    from fewer.core.system import Description as Description
    from fewer.core.system import Metric as Metric
    from fewer.core.system import System as System
    from fewer.core.task import Copy as Copy
    from fewer.core.task import Data as Data
    from fewer.core.task import Nets as Nets
    from fewer.core.task import Noise as Noise
    from fewer.core.task import Objective as Objective
    from fewer.core.task import Predict as Predict
    from fewer.core.task import Task as Task
    from fewer.custom import lightning as lightning
    from fewer.custom import sklearn as sklearn
    from fewer.custom import transformers as transformers
    from fewer.custom.contract import check as check
    from fewer.custom.pruner import Pruner as Pruner
    from fewer.custom.supervised import Classification as Classification
    from fewer.custom.supervised import Regression as Regression
    from fewer.ensemble.combine import combine as combine
    from fewer.packs.pack import Pack as Pack
    from fewer.pruning.pruning import Pruning as Pruning
    from fewer.report.chart import curves as curves
    from fewer.report.page import figure as figure
    from fewer.run.api import audit as audit
    from fewer.run.api import export as export
    from fewer.run.api import load as load
    from fewer.run.api import open_pack as open_pack
    from fewer.run.api import pack as pack
    from fewer.run.api import prune as prune
    from fewer.run.api import to_torch as to_torch
    from fewer.run.api import train as train
    from fewer.run.job import Job as Job
    from fewer.run.load import Trained as Trained
    from fewer.serve.service import Service as Service
    from fewer.systems import cellfree

__version__ = VERSION

__all__ = [
    "Attackable", "Classification", "Classifier", "Copy", "Data", "Description", "Featured", "Grouped", "Job",
    "Metric", "Nets", "NetworkSet", "Noise", "Objective", "Optimizer", "Pack", "Predict", "Pruner", "Pruning",
    "Regression", "Service", "System", "Task", "TensorData", "Trained", "Training", "UserError", "Voting",
    "attacked", "audit", "batches", "cellfree", "check", "combine", "curves", "evaluate", "export", "figure",
    "lightning", "load", "open_pack", "pack", "predictor", "prune", "sklearn", "to_torch", "train", "transformers",
]  # fmt: skip

__getattr__, __dir__ = lazily(
    "fewer",
    {
        "fewer.attack.audit": ("attacked",),
        "fewer.core.abilities": ("Attackable", "Classifier", "Featured", "Grouped", "Voting"),
        "fewer.core.data": ("TensorData", "batches"),
        "fewer.core.engines.base": ("Training",),
        "fewer.core.engines.evaluate": ("evaluate", "predictor"),
        "fewer.core.engines.nets": ("NetworkSet",),
        "fewer.core.engines.optimizer": ("Optimizer",),
        "fewer.core.errors": ("UserError",),
        "fewer.core.system": ("Description", "Metric", "System"),
        "fewer.core.task": ("Copy", "Data", "Nets", "Noise", "Objective", "Predict", "Task"),
        "fewer.custom": ("lightning", "sklearn", "transformers"),
        "fewer.custom.contract": ("check",),
        "fewer.custom.pruner": ("Pruner",),
        "fewer.custom.supervised": ("Classification", "Regression"),
        "fewer.ensemble.combine": ("combine",),
        "fewer.packs.pack": ("Pack",),
        "fewer.pruning.pruning": ("Pruning",),
        "fewer.report.chart": ("curves",),
        "fewer.report.page": ("figure",),
        "fewer.run.api": ("audit", "export", "load", "open_pack", "pack", "prune", "to_torch", "train"),
        "fewer.run.job": ("Job",),
        "fewer.run.load": ("Trained",),
        "fewer.serve.service": ("Service",),
        "fewer.systems": ("cellfree",),
    },
)
