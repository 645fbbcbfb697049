"""What there is of this system."""

from fewer import Description, Metric, System

__all__ = ["SYSTEM"]

SYSTEM = System(
    line="cars in the next hour, from the last six",
    task="fewer_traffic.task:Traffic",
    description=Description(
        "Traffic: how many cars will pass in the next hour?",
        "A counter beside a road has seen the last six hours; the network says how many cars the next one brings.",
        attack="pgd:0.2,steps=5",
        unit="largest change of a count, in hundreds of cars",
        adversary="The adversary may change every count by up to the budget.",
        metrics=("r2", "mean_squared_error"),
    ),
    metrics={
        "r2": Metric("explained", "share of the counts' variance that the forecast explains", share=True),
        "mean_squared_error": Metric("mean squared error", "of counts in hundreds of cars"),
    },
    install="fewer-traffic",
    picture="fewer_traffic.report:week",
    page="fewer_traffic.page",
)
