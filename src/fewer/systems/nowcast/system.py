"""What there is of the nowcast system."""

from fewer.core.system import Description, Metric, Study, System
from fewer.systems.nowcast.presets import PRESETS

__all__ = ["SYSTEM"]

_AT = "fewer.systems.nowcast"
_MADE = {
    "settings": f"{_AT}.studies.described:settings",
    "plan": f"{_AT}.studies.described:plan",
    "pieces": f"{_AT}.studies.catalogue:catalogue",
}

SYSTEM = System(
    line="eight hours of rain from one hour of satellite images",
    task=f"{_AT}.task.task:Nowcast",
    paper="Solving the Weather4cast challenge via visual transformers for 3D images (Belousov and others)",
    description=Description(
        "Nowcasting: where will it rain in the next eight hours?",
        "From one hour of satellite images the network forecasts rain for every pixel, every quarter of an hour up to "
        "eight hours ahead.",
        "pgd:0.2,steps=5",
        "largest change of a pixel, in standard deviations of its band",
        "The adversary may change every pixel of every satellite image by up to the budget.",
        ("iou", "pod", "far", "brier"),
    ),
    metrics={
        "iou": Metric(
            "IoU", "rain forecast and fallen, over rain forecast or fallen, pooled over each region; 1 is perfect"
        ),
        "iou_hour_1": Metric("IoU, first hour", "the same of the first hour alone"),
        "pod": Metric("detected", "share of the rain that was forecast", share=True),
        "far": Metric("false alarms", "share of the forecast rain that did not fall", share=True),
        "brier": Metric("Brier score", "mean squared error of the probabilities; 0 is perfect"),
    },
    install="fewer[nowcast]",
    picture=f"{_AT}.report:rained",
    units=f"{_AT}.report:units",
    shorten=f"{_AT}.report:shortened",
    service=f"{_AT}.service:NowcastService",
    page=f"{_AT}.page",
    data=(f"{_AT}.commands.data", "check, generate or pack files in the competition's layout; look at radar events"),
    verbs={
        "forecast": (
            f"{_AT}.commands.forecast",
            "rain from your own radar or satellite files: NetCDF, a map, an animation",
        ),
        "submit": (
            f"{_AT}.commands.submit",
            "rain forecasts of runs as the competition's zip; verify such a zip",
        ),
    },
    demo=f"{_AT}.demo:jobs",
    case=f"{_AT}.case:CASE",
    presets=PRESETS,
    studies={
        "nowcast/table1": Study(
            f"{_AT}.studies.tables:table1",
            "every row of the paper's Table 1 and ours, test windows",
            remarks=f"{_AT}.studies.remarks:models",
            **_MADE,
        ),
        "nowcast/table2": Study(
            f"{_AT}.studies.tables:table2",
            "every row of the paper's Table 2 and ours, held-out windows",
            remarks=f"{_AT}.studies.remarks:models",
            **_MADE,
        ),
        "nowcast/fig1": Study(
            f"{_AT}.studies.figure:fig1",
            "a rain front hour by hour, and every model by lead time",
            remarks=f"{_AT}.studies.remarks:window",
            **_MADE,
        ),
        "nowcast/longer": Study(
            f"{_AT}.studies.tables:both",
            "seventeen models with seven times the training of Table 1",
            remarks=f"{_AT}.studies.remarks:models",
            **_MADE,
        ),
        "nowcast/scarce": Study(
            f"{_AT}.studies.tables:both",
            "votes of geometry-aware models where windows are scarce",
            remarks=f"{_AT}.studies.remarks:models",
            **_MADE,
        ),
        "nowcast/drift": Study(
            f"{_AT}.studies.tables:both",
            "geometry-aware models against extrapolation, every window seen once",
            remarks=f"{_AT}.studies.remarks:models",
            **_MADE,
        ),
        "nowcast/radar": Study(
            f"{_AT}.studies.radar:radar",
            "a learned nowcast from radar to radar, each event left out once, beside extrapolation and pysteps",
            settings=f"{_AT}.studies.radar:settings",
            pieces=f"{_AT}.studies.radar:catalogue",
            remarks=f"{_AT}.studies.radar:ahead_of_all",
        ),
        "nowcast/weather": Study(
            f"{_AT}.studies.weather:weather",
            "generated weather beside OPERA and the real bands",
            settings=f"{_AT}.studies.weather:settings",
        ),
    },
    claims=f"{_AT}.studies.claims:CLAIMS",
    benches={
        "nowcast": (f"{_AT}.bench.swin", "Swin-UNETR training against MONAI"),
        "nowcast_loader": (f"{_AT}.bench.loader", "windows a second from the packed cache"),
        "radar": (
            f"{_AT}.bench.radar",
            "rain carried along its motion, against pysteps (FEWER_RADAR: a folder of events)",
        ),
    },
)
