"""Nowcasting: eight hours of rain from one hour of satellite images, on generated weather. python examples/nowcast.py"""

import torch

import fewer

run = fewer.train(
    "nowcast", "runs/rain", settings={"size": 48, "width": 16}, prune="magnitude,when=gradual,sparsity=0.8", steps=200
)
print(run.figures)
model = fewer.pack(run, "rain.pack")
seen = run.task.inputs(run.task.data("test").take(torch.arange(1)))
rain = model.predict(satellite=seen.satellite.numpy(), missing=seen.missing.numpy())
print("share of the area under rain, hour by hour:", (rain[0, 3::4] > 0.5).mean((1, 2)).round(2))
