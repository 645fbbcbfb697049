"""Cell-free radio: which access points should serve a phone, from three measurements. python examples/cellfree.py"""

import fewer

run = fewer.train(
    "cellfree", "runs/cellfree", settings={"access_points": 40, "side_m": 630, "error_db": 2},
    prune="magnitude,when=gradual,sparsity=0.9", steps=1500,
)  # fmt: skip
print(run.metrics)
selector = fewer.pack(run, "cellfree.pack")
chance = selector.predict(master=[7], rsrp_db=[[-81.0, -84.5, -90.0]], reported=[[1.0, 1.0, 1.0]])[0]
candidates = run.task.world.clusters.candidates[7].tolist()  # the master first
print("served by", [point for point, c in zip(candidates, chance) if c >= 0.5])
