"""What there is of the control system."""

from fewer.core.system import Description, Metric, Study, System
from fewer.systems.control.presets import PRESETS

__all__ = ["SYSTEM"]

_AT = "fewer.systems.control"
_AGENTS = {  # of a study that trains agents on each environment
    "settings": f"{_AT}.studies.training.scales:about",
    "plan": f"{_AT}.studies.training.plan:planned",
    "pieces": f"{_AT}.studies.training.catalogue:catalogue",
    "remarks": f"{_AT}.studies.score_remarks:sparsities",
}

SYSTEM = System(
    line="policies from logged data, with most of their weights removed before training",
    task=f"{_AT}.task.task:Control",
    paper="Single-shot pruning for offline reinforcement learning (Arnob and others)",
    description=Description(
        "Control: a policy from logged data",
        "A policy turns what a robot senses into what its joints do. It was learnt from an expert's recorded steps "
        "alone, without trying anything out, and is judged by letting it act in the simulator.",
        "fgsm:0.2",
        "largest change of a sensor, in its standard deviations",
        "The adversary may change every sensor at every step by up to the budget, away from what the policy would do. "
        "Counted on 4 episodes that are cut after 400 steps: not to be compared with scores of whole episodes.",
        ("score", "return", "length", "value"),
    ),
    metrics={
        "score": Metric(
            "score", "0 is a policy that acts at random, 100 the expert of the benchmark; mean over episodes"
        ),
        "score_median": Metric("median score", "the same of the episode in the middle"),
        "return": Metric("return", "sum of rewards of an episode, mean over episodes"),
        "length": Metric("length", "steps until the robot falls or the episode ends"),
        "value": Metric("value", "what fitted Q evaluation expects of the policy, from the logs alone"),
    },
    install="fewer[control]",
    picture=f"{_AT}.report:acting",
    units=f"{_AT}.report:units",
    shorten=f"{_AT}.report:shortened",
    service=f"{_AT}.service:ControlService",
    page=f"{_AT}.page",
    data=(f"{_AT}.commands", "collect an expert's experience, or check your own logs"),
    demo=f"{_AT}.demo:jobs",
    case=f"{_AT}.case:CASE",
    presets=PRESETS,
    studies={
        "control/fig1": Study(
            f"{_AT}.studies.figures:fig1",
            "learning curves, and score against sparsity: BCQ and BC under SNIP",
            **_AGENTS,
        ),
        "control/fig2": Study(
            f"{_AT}.studies.figures:fig2",
            "learning curves, and score against sparsity: BCQ and BC under GraSP",
            **_AGENTS,
        ),
        "control/rivals": Study(
            f"{_AT}.studies.rivals:rivals",
            "the paper's trials of batch size and iterations, and other criteria, at one sparsity",
            **{**_AGENTS, "remarks": f"{_AT}.studies.score_remarks:rivals"},
        ),
        "control/data": Study(
            f"{_AT}.studies.data:data",
            "pruned policies from logs that are not an expert's: noisy, medium, mixed",
            settings=f"{_AT}.studies.data:about",
            plan=f"{_AT}.studies.data:planned",
            pieces=f"{_AT}.studies.data:catalogue",
            remarks=f"{_AT}.studies.score_remarks:data",
        ),
        "control/defaults": Study(
            f"{_AT}.studies.defaults:defaults",
            "the same job by default: --prune auto beside dense training, on logs that no recipe was chosen on",
            settings=f"{_AT}.studies.defaults:about",
            pieces=f"{_AT}.studies.defaults:catalogue",
        ),
        "control/fig3": Study(
            f"{_AT}.studies.layers:fig3",
            "weights left in each layer, SNIP and GraSP",
            settings=f"{_AT}.studies.layers:about",
            remarks=f"{_AT}.studies.remarks:layers",
        ),
        "control/table1": Study(
            f"{_AT}.studies.memory:table1",
            "bytes of pruned networks by format",
            settings=f"{_AT}.studies.memory:about",
            remarks=f"{_AT}.studies.remarks:files",
        ),
        "control/fig4": Study(
            f"{_AT}.studies.memory:fig4",
            "bytes against sparsity",
            settings=f"{_AT}.studies.memory:about",
            remarks=f"{_AT}.studies.remarks:sizes",
        ),
    },
    claims=f"{_AT}.studies.claims:CLAIMS",
    benches={
        "control": (f"{_AT}.bench.agents", "80 BCQ agents in lock-step against one by one"),
        "offline": (f"{_AT}.bench.offline", "policies from the same logs and updates as d3rlpy's"),
        "sparse_training": (f"{_AT}.bench.sparse_training", "training on kept weights alone"),
    },
)
