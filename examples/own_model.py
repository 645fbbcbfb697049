"""Your torch module and data loaders in, a small and robust packed network out: `cd examples; python own_model.py`."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import fewer


class Mine(fewer.Classification):
    low, high = -4.0, 4.0  # what an input may be at all: no attack leaves it

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(20, 200), nn.ReLU(), nn.Linear(200, 100), nn.ReLU(), nn.Linear(100, 4))

    def loaders(self) -> dict[str, DataLoader]:
        random = torch.Generator().manual_seed(0)  # in your place: your own data
        y = torch.randint(4, (3000,), generator=random)
        x = (2.0 * nn.functional.one_hot(y, 20) + 0.5 * torch.randn(3000, 20, generator=random)).clamp(-4, 4)
        train, test = random_split(TensorDataset(x, y), [2500, 500], generator=random)
        return {"train": DataLoader(train, 64), "test": DataLoader(test, 64)}


if __name__ == "__main__":
    run = fewer.train("own_model:Mine", "runs/mine", prune="snip,sparsity=0.9", harden="pgd:0.3", steps=500)
    print(run.metrics, fewer.audit(run, "apgd:0.3", limit=200).text(), sep="\n")
    print(fewer.pack(run, "mine.pack").predict([[0.0] * 20]))  # the file holds the kept weights; torch is not needed
