"""Networks as people bring them, end to end: pruned to a tenth, trained, hardened, counted by hand, given back.

What stands between a network and its run is `fewer.train(network, out, data=...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fewer

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:.*_flat_weights")


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


class Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.down = nn.Sequential()
        if stride != 1 or before != after:
            self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.down(x))


class ResNet(nn.Module):
    """ResNet-18, an eighth as wide."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.layers = nn.Sequential(
            *(
                nn.Sequential(Block(before, after, 1 if number == 0 else 2), Block(after, after, 1))
                for number, (before, after) in enumerate(pairwise(sizes))
            )
        )
        self.fc = nn.Linear(8 * width, 3)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.fc(self.layers(self.stem(x)).mean((2, 3)))
        return answer


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 24, 2, batch_first=True, dropout=0.1), nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.head(self.rnn(x)[0][:, -1])
        return answer


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(20, 16), nn.Linear(16, 3)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)

    def forward(self, tokens: Tensor) -> Tensor:
        answer: Tensor = self.head(self.encoder(self.words(tokens)).mean(1))
        return answer


def bert() -> nn.Module:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=8, num_labels=3,
    )  # fmt: skip
    found: nn.Module = transformers.BertForSequenceClassification(config)
    return found


ROWS, TOKENS, LABELS = drawn(60, 8), (drawn(60, 6).abs() * 7).long().clamp(max=19), torch.arange(60) % 3
NETWORKS: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "ResNet-18": (ResNet, (drawn(60, 3, 8, 8), LABELS)),
    "GRU": (Gru, (drawn(60, 7, 3), LABELS)),
    "TransformerEncoder": (Transformer, (TOKENS, LABELS)),
    "Bert": (bert, {"input_ids": TOKENS, "attention_mask": torch.ones_like(TOKENS), "labels": LABELS}),
    "classes of a table": (lambda: nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3)), (ROWS, LABELS)),
    "quantities of a table": (
        lambda: nn.Sequential(nn.Linear(8, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 1)), (ROWS, ROWS[:, 0] * 2)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_pruned_trained_hardened_and_given_back(name: str, tmp_path: Path) -> None:
    make, data = NETWORKS[name]
    torch.manual_seed(0)
    model = make()
    for words in ({"prune": "lamp,sparsity=0.9"}, {"prune": "magnitude,sparsity=0.9,when=gradual,scope=layer"}):
        run = fewer.train(model, tmp_path / words["prune"], data=data, steps=12, batch=16, harden="fgsm:0.05", **words)
        matrices = [p for p in model.parameters() if p.ndim > 1]
        back = dict(fewer.to_torch(run).named_parameters())
        kept = sum(int((back[key] != 0).sum()) for key, p in model.named_parameters() if p.ndim > 1)
        assert kept == round(0.1 * sum(p.numel() for p in matrices))
    again = make()
    again.load_state_dict(fewer.to_torch(run, "state_dict"))
    inputs = run.task.data("test").take(torch.arange(3))
    expected = fewer.predictor(run.task, run.modules)(inputs)
    read = fewer.load(run.path)
    assert torch.equal(fewer.predictor(read.task, read.modules)(inputs), expected)
    answer = again.eval()(**inputs.x) if isinstance(inputs.x, dict) else again.eval()(inputs.x)
    logits: Any = getattr(answer, "logits", answer)
    scores = logits if name == "quantities of a table" else logits.log_softmax(-1)
    assert torch.allclose(scores, expected, atol=1e-5)
    if name != "quantities of a table":
        assert 0 <= fewer.audit(run, "pgd:0.05,steps=3", limit=10).robust <= 1
    assert sum(int((p != 0).sum()) for p in fewer.prune(model, data, 0.9).parameters() if p.ndim > 1) == kept
