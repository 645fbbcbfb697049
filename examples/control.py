"""Control: a policy cloned from logged steps, 95 % of the weights removed. python examples/control.py"""

import fewer

run = fewer.train(
    "control", "runs/hopper", settings={"environment": "hopper", "transitions": 20_000, "algorithm": "plain-bc"},
    prune="auto,sparsity=0.95",
)  # fmt: skip
print(run.metrics)
policy = fewer.pack(run, "hopper.pack")
observation = run.task.logs.observation[0]
print("action:", policy.predict(observation), "logged:", run.task.logs.action[0])
