"""What there is of the cell-free system."""

from fewer.core.system import Description, Metric, Study, System

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
            "how well serving access points are ranked before the others, the master left out; 1 is perfect",
        ),
        "other_precision": Metric("precision", "share of the chosen that truly serve, the master left out", share=True),
        "other_recall": Metric(
            "recall", "share of the truly serving that were chosen, the master left out", share=True
        ),
        "calibration_error": Metric(
            "calibration error", "how far probabilities are from what comes true; 0 is perfect"
        ),
    },
    install="fewer[cellfree]",
    picture=f"{_AT}.report:served",
    shorten=f"{_AT}.report:shortened",
    service=f"{_AT}.service:CellFreeService",
    page=f"{_AT}.page",
    demo=f"{_AT}.demo:jobs",
    case=f"{_AT}.case:CASE",
    studies={
        "cellfree/statistics": Study(
            f"{_AT}.studies.paper:statistics",
            "ignored links, power share, closest access points",
            remarks=f"{_AT}.studies.remarks:statistics",
        ),
        "cellfree/fig2": Study(f"{_AT}.studies.paper:fig2", "precision and recall of the paper's network"),
        "cellfree/fig3": Study(f"{_AT}.studies.paper:fig3", "AUC and average precision of the paper's network"),
        "cellfree/selectors": Study(f"{_AT}.studies.selectors:selectors", "every selector against what is possible"),
        "cellfree/ceiling": Study(
            f"{_AT}.studies.selectors:ceiling", "what n measurements of error s can give at most"
        ),
        "cellfree/scaling": Study(
            f"{_AT}.studies.selectors:scaling",
            "the local model as the network grows",
            remarks=f"{_AT}.studies.remarks:scaling",
        ),
        "cellfree/se": Study(f"{_AT}.studies.efficiency:efficiency", "spectral efficiency of predicted clusters"),
    },
    benches={
        "cellfree": (f"{_AT}.bench.selections", "selections a second"),
        "serve": (f"{_AT}.bench.serve", "selections a second through HTTP"),
        "rivals": (
            f"{_AT}.bench.rivals",
            "training against torch.nn.utils.prune, the graph network against PyTorch Geometric",
        ),
    },
)
