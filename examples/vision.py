"""Digits: a classifier without nine tenths of its weights that withstands attacks. python examples/vision.py"""

import fewer

run = fewer.train(
    "vision", "runs/digits", settings={"network": "mlp"}, prune="magnitude,when=gradual,sparsity=0.9",
    harden="pgd:0.1", steps=600,
)  # fmt: skip
print(run.metrics)
print(fewer.audit(run, "pgd:0.1", limit=200).text())
images = run.task.data("test").samples.pixels[:5].numpy()  # (5, 1, 28, 28), from 0 to 1
print("five digits:", fewer.pack(run, "digits.pack").predict(images).argmax(1))
