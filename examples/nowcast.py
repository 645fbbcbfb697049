"""Nowcasting: eight hours of rain from an hour of satellite images, on generated weather. python examples/nowcast.py"""

import torch

import fewer

run = fewer.train(
    "nowcast", "runs/rain", settings={"size": 48, "width": 16, "train_windows": 96, "test_windows": 16},
    prune="magnitude,when=gradual,scope=layer,sparsity=0.8,samples=8", steps=120,
)  # fmt: skip
print(run.metrics)
model = fewer.pack(run, "rain.pack")
seen = run.task.inputs(run.task.data("test").take(torch.arange(1)))
rain = model.predict(satellite=seen.satellite.numpy(), missing=seen.missing.numpy())
print("share of the area under rain, hour by hour:", (rain[0, 3::4] > 0.5).mean((1, 2)).round(2))
