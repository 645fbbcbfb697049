"""What there is of the vision system."""

from fewer.core.system import Description, Metric, Study, System
from fewer.systems.vision.presets import PRESETS

__all__ = ["SYSTEM"]

_AT = "fewer.systems.vision"
_CATALOGUE = f"{_AT}.studies.catalogue"


def _study(place: str, line: str, remarks: str = "") -> Study:
    """A study whose pieces, settings and plan the catalogue knows."""
    return Study(
        f"{_AT}.studies.{place}",
        line,
        settings=f"{_CATALOGUE}:settings",
        plan=f"{_CATALOGUE}:plan",
        pieces=f"{_CATALOGUE}:catalogue",
        remarks=f"{_AT}.studies.remarks:{remarks}" if remarks else "",
    )


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
        ("accuracy", "PGD-40 at 0.3", "whole suite at 0.3", "loss"),
    ),
    metrics={
        "accuracy": Metric("accuracy", "share of test images that are named rightly", share=True),
        "PGD-40 at 0.3": Metric(
            "under attack (PGD-40)", "the same when 40 gradient steps may change every pixel by 0.3", share=True
        ),
        "whole suite at 0.3": Metric(
            "worst of seven attacks",
            "share named rightly whichever of FGSM, PGD-40, PGD-100 with 10 restarts and AutoAttack's four is used, "
            "every pixel changed by at most 0.3",
            share=True,
        ),
        "PGD-40 at 8/255, 500 images": Metric("right under PGD-40 at 8/255, 500 images", share=True, cases=500),
        "FGSM + PGD-40 + PGD-50 on the margin at 8/255": Metric(
            "right under the worst of FGSM, PGD-40 and PGD-50 on the margin at 8/255", share=True
        ),
        "FGSM + PGD-40 + PGD-50 on the margin + APGD-CE-100 + APGD-T-100 at 8/255": Metric(
            "right under the worst of five attacks at 8/255",
            "share named rightly whichever of FGSM, PGD-40, PGD-50 on the margin, APGD-CE and APGD-T (100 steps each) "
            "is used, every pixel changed by at most 8/255",
            share=True,
        ),
        "loss": Metric("loss", "mean cross-entropy on test images, in nats"),
    },
    install="fewer[vision]",
    picture=f"{_AT}.report:digits",
    service=f"{_AT}.service:VisionService",
    page=f"{_AT}.page",
    data=(f"{_AT}.commands", "fetch MNIST, Fashion-MNIST or CIFAR-10, or check your own images"),
    demo=f"{_AT}.demo:jobs",
    case=f"{_AT}.case:CASE",
    presets=PRESETS,
    claims=f"{_AT}.studies.claims:CLAIMS",
    studies={
        "vision/table1": Study(
            f"{_AT}.studies.variants:table1",
            "sizes of the six capacity scales, counted",
            settings=f"{_CATALOGUE}:settings",
        ),
        "vision/table2": _study("capacity:table2", "PGD-trained networks of six sizes under PGD-40", "trainings"),
        "vision/table3": _study("capacity:table3", "FGSM-trained networks under FGSM and PGD-40", "trainings"),
        "vision/fig2-3": _study("capacity:curves", "accuracy against capacity, FGSM and PGD"),
        "vision/mismatch": _study(
            "mismatch:mismatch", "what could make the paper's Tables II and III at scales 0 to 2", "explanations"
        ),
        "vision/deeper": _study("variants:deeper", "deeper and wider networks, hardened", "variants"),
        "vision/fig4": _study("boundaries:boundaries", "decision boundaries around real images"),
        "vision/fig5-8": _study("features:features", "usefulness of features, plain and under attack", "features"),
        "vision/shrink": _study("light.shrink:shrinking", "features removed by usefulness, magnitude or chance"),
        "vision/lightest": _study(
            "light.lightest:lightest", "robust accuracy against kept weights, all recipes", "audits"
        ),
        "vision/fig9-12": _study("lottery:tickets", "lottery tickets, normal, FGSM- and PGD-trained", "tickets"),
        "vision/cifar-robust": Study(
            f"{_AT}.studies.light.photographs:photographs",
            "photographs: standard, hardened and pruned networks at 8/255",
            settings=f"{_AT}.studies.light.photographs:settings",
            pieces=f"{_AT}.studies.light.photographs:catalogue",
            remarks=f"{_AT}.studies.light.photographs:drops",
        ),
        "vision/honest-light": Study(
            f"{_AT}.studies.light.honest:honest_light",
            "light hardened networks on grey images, without the contrast front end that helps digits alone",
            settings=f"{_AT}.studies.light.honest:settings",
            pieces=f"{_AT}.studies.light.honest:catalogue",
        ),
        "vision/pretrained": Study(
            f"{_AT}.studies.light.pretrained:pretrained",
            "a trained residual network pruned to a tenth, as anybody's own network is",
            settings=f"{_AT}.studies.light.pretrained:settings",
            pieces=f"{_AT}.studies.light.pretrained:catalogue",
            remarks=f"{_AT}.studies.light.pretrained:within",
        ),
    },
    benches={
        "cohort": (f"{_AT}.bench.cohort", "many replicas in lock-step against one by one"),
        "sweep": (f"{_AT}.bench.sweep", "a grid as cohorts against one by one"),
        "attack": (f"{_AT}.bench.attack", "robust accuracy against foolbox"),
        "image_training": (f"{_AT}.bench.sparse_training", "convolutions on kept weights alone"),
    },
    speed=f"{_AT}.bench.networks:networks",
    prepare=f"{_AT}.prepare:as_pixels",
)
