"""What there is of the cell-free system."""

from fewer.core.system import Description, Metric, Study, System
from fewer.systems.cellfree.presets import PRESETS

__all__ = ["SYSTEM"]

_AT = "fewer.systems.cellfree"

SYSTEM = System(
    line="the access points that should serve a phone, from a few measurements",
    task=f"{_AT}.task.task:CellFree",
    paper="Graph neural network based access point selection for cell-free massive MIMO systems "
    "(Ranasinghe, Rajatheva, Latva-aho)",
    description=Description(
        "Cell-free radio: who should serve this phone?",
        "A phone reports the signal of a few access points near its strongest one, the master. The network says which "
        "of the other candidates are nearly as strong and should serve it too, without measuring them.",
        "pgd:4,steps=10",
        "largest change of a report, in dB",
        "The adversary may change every reported signal by up to the budget.",
        ("other_average_precision", "other_precision", "other_recall", "calibration_error"),
    ),
    metrics={
        "other_average_precision": Metric(
            "average precision",
            "how well serving access points are ranked before the others, beside the strongest; 1 is perfect",
        ),
        "other_precision": Metric(
            "precision", "share of the chosen that truly serve, beside the strongest", share=True
        ),
        "other_recall": Metric(
            "recall", "share of the truly serving that were chosen, beside the strongest", share=True
        ),
        "calibration_error": Metric(
            "calibration error", "how far probabilities are from what comes true; 0 is perfect"
        ),
    },
    install="fewer[cellfree]",
    picture=f"{_AT}.report:served",
    units=f"{_AT}.report:units",
    shorten=f"{_AT}.report:shortened",
    carry=f"{_AT}.carried:carry",
    service=f"{_AT}.service:CellFreeService",
    page=f"{_AT}.page",
    demo=f"{_AT}.demo:jobs",
    case=f"{_AT}.case:CASE",
    presets=PRESETS,
    studies={
        "cellfree/statistics": Study(
            f"{_AT}.studies.statistics:statistics",
            "ignored links, power share, closest access points",
            settings=f"{_AT}.studies.statistics:statistics_settings",
            remarks=f"{_AT}.studies.remarks:statistics",
        ),
        "cellfree/fig2": Study(
            f"{_AT}.studies.paper:fig2",
            "precision and recall of the paper's network, both readings",
            settings=f"{_AT}.studies.paper:figure_settings",
            plan=f"{_AT}.studies.paper:figure_plan",
            remarks=f"{_AT}.studies.remarks:figure",
        ),
        "cellfree/fig3": Study(
            f"{_AT}.studies.paper:fig3",
            "AUC and average precision of the paper's network, both readings",
            settings=f"{_AT}.studies.paper:figure_settings",
            plan=f"{_AT}.studies.paper:figure_plan",
            remarks=f"{_AT}.studies.remarks:figure",
        ),
        "cellfree/readings": Study(
            f"{_AT}.studies.paper:readings",
            "what the paper leaves open, one change at a time",
            settings=f"{_AT}.studies.paper:readings_settings",
            plan=f"{_AT}.studies.paper:readings_plan",
            remarks=f"{_AT}.studies.remarks:readings",
        ),
        "cellfree/phones": Study(
            f"{_AT}.studies.demand:phones",
            "the number of phones at validation, varied",
            settings=f"{_AT}.studies.demand:phones_settings",
            plan=f"{_AT}.studies.demand:phones_plan",
            remarks=f"{_AT}.studies.remarks:phones",
        ),
        "cellfree/cached": Study(
            f"{_AT}.studies.demand:cached",
            "what cached access-point embeddings save, and what access points cost",
            settings=f"{_AT}.studies.demand:cached_settings",
            remarks=f"{_AT}.studies.remarks:cached",
        ),
        "cellfree/selectors": Study(
            f"{_AT}.studies.selectors:selectors",
            "every selector against what is possible, and what it may know",
            settings=f"{_AT}.studies.selectors:selectors_settings",
            plan=f"{_AT}.studies.selectors:selectors_plan",
            pieces=f"{_AT}.studies.selectors:selectors_pieces",
            remarks=f"{_AT}.studies.remarks:selectors",
        ),
        "cellfree/ceiling": Study(
            f"{_AT}.studies.limits:ceiling",
            "what n measurements of error s can give at most",
            settings=f"{_AT}.studies.limits:ceiling_settings",
        ),
        "cellfree/scaling": Study(
            f"{_AT}.studies.limits:scaling",
            "the local model as the network grows",
            settings=f"{_AT}.studies.limits:scaling_settings",
            plan=f"{_AT}.studies.limits:scaling_plan",
            remarks=f"{_AT}.studies.remarks:scaling",
        ),
        "cellfree/se": Study(
            f"{_AT}.studies.efficiency:efficiency",
            "spectral efficiency of predicted clusters",
            settings=f"{_AT}.studies.efficiency:efficiency_settings",
        ),
    },
    claims=f"{_AT}.studies.claims:CLAIMS",
    benches={
        "cellfree": (f"{_AT}.bench.selections", "selections a second"),
        "serve": (f"{_AT}.bench.serve", "selections a second through HTTP"),
        "rivals": (
            f"{_AT}.bench.rivals",
            "training against torch.nn.utils.prune, the graph network against PyTorch Geometric",
        ),
    },
)
