"""What there is of the vision system."""

from fewer.core.system import Description, Metric, Study, System

__all__ = ["SYSTEM"]

_AT = "fewer.systems.vision"
_PIECES = f"{_AT}.studies.catalogue:catalogue"

SYSTEM = System(
    line="small classifiers that withstand adversarial images",
    task=f"{_AT}.task.task:Vision",
    paper="Towards lighter adversarially robust model (Huang, Jin, Xue)",
    description=Description(
        "Vision: which digit is it?",
        "A classifier looks at an image and names what it shows. It should still do so when somebody changes every "
        "pixel a little in the worst possible way.",
        "pgd:0.2,steps=10",
        "largest change of a pixel, which goes from 0 to 1",
        "The adversary knows the network and may change every pixel by up to the budget.",
        ("accuracy", "loss"),
    ),
    metrics={"accuracy": Metric("accuracy", "share of test images that are named rightly", share=True)},
    install="fewer[vision]",
    picture=f"{_AT}.report:digits",
    service=f"{_AT}.service:VisionService",
    page=f"{_AT}.page",
    data=(f"{_AT}.commands", "fetch the full MNIST set, or check your own images"),
    demo=f"{_AT}.demo:jobs",
    case=f"{_AT}.case:CASE",
    studies={
        "vision/table2": Study(
            f"{_AT}.studies.capacity:table2",
            "PGD-trained networks of six sizes under PGD-40",
            pieces=_PIECES,
            remarks=f"{_AT}.studies.remarks:trainings",
        ),
        "vision/table3": Study(
            f"{_AT}.studies.capacity:table3",
            "FGSM-trained networks under FGSM and PGD-40",
            pieces=_PIECES,
            remarks=f"{_AT}.studies.remarks:trainings",
        ),
        "vision/fig2-3": Study(
            f"{_AT}.studies.capacity:curves",
            "accuracy against capacity, FGSM and PGD",
            pieces=_PIECES,
        ),
        "vision/fig4": Study(f"{_AT}.studies.boundaries:boundaries", "decision boundaries around real images"),
        "vision/fig5-8": Study(
            f"{_AT}.studies.features:features",
            "usefulness of features, plain and under attack",
            remarks=f"{_AT}.studies.remarks:features",
        ),
        "vision/shrink": Study(
            f"{_AT}.studies.shrink:shrinking", "features removed by usefulness, magnitude or chance"
        ),
        "vision/lightest": Study(
            f"{_AT}.studies.lightest:lightest",
            "robust accuracy against kept weights, all recipes",
            pieces=_PIECES,
            remarks=f"{_AT}.studies.remarks:audits",
        ),
        "vision/fig9-12": Study(
            f"{_AT}.studies.lottery:tickets",
            "lottery tickets, normal, FGSM- and PGD-trained",
            pieces=_PIECES,
            remarks=f"{_AT}.studies.remarks:tickets",
        ),
    },
    benches={
        "cohort": (f"{_AT}.bench.cohort", "many replicas in lock-step against one by one"),
        "sweep": (f"{_AT}.bench.sweep", "a grid as cohorts against one by one"),
        "attack": (f"{_AT}.bench.attack", "robust accuracy against foolbox"),
    },
    prepare=f"{_AT}.prepare:as_pixels",
)
