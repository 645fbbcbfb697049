"""Choose access points for phones from three measurements, look at the ceiling, and draw one choice on a map.

python examples/cellfree_select.py map.png
"""

import sys

import numpy as np

from fewer.systems.cellfree import Ceiling, Kriging, Nearest, Settings, World, closeness, draw


def main(path: str, places: int = 100_000) -> None:
    """A small network: 40 access points, 2,000 surveyed phones, reports with an error of 2 dB."""
    world = World.make(Settings(access_points=40, side_m=630.0, train_phones=2000, error_db=2.0))
    phones = world.survey(500, part="test")
    kriging, nearest = Kriging().fit(world), Nearest(3).fit(world)

    selection = kriging.select(phones.master, phones.rsrp_db)
    print(f"phone 0, master {phones.master[0]}, is served by {selection.access_points(0).tolist()}")

    ceiling = Ceiling.of(world, places=places)
    for row in closeness({"nearest 3": nearest, "kriging": kriging}, phones, ceiling):
        print(f"{row['selector']:>10}: average precision {row['average_precision']:.3f}, "
              f"{row['share_of_ceiling']:.1%} of the ceiling")  # fmt: skip

    measured = world.clusters.measured.shape[1]
    reports = [*phones.rsrp_db[0], *[0.0] * (ceiling.particles.signal_db.shape[1] - measured)]
    known = [index < measured for index in range(len(reports))]
    ranked = ceiling.measure_next(int(phones.master[0]), np.array(reports), np.array(known), error_db=2.0)
    print(f"measure access point {ranked[0][0]} next: {ranked[0][1]:.2f} bits about who serves")
    draw(path, world, phones.phones[0], kriging.select(int(phones.master[0]), phones.rsrp_db[0]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cellfree-map.png")
