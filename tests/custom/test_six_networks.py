"""Networks as people bring them, end to end: pruned to a tenth, trained, hardened, counted by hand, given back, packed,
run without torch, in ONNX, in C and behind the service; once from a notebook, whose classes no other process knows.

What stands between a network and all of it is `everything`, which is as short as it looks.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from fastapi.testclient import TestClient
from torch import Tensor, nn

import fewer
from fewer.serve.app import Application
from fewer.serve.models import open_models

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


def everything(name: str, model: nn.Module, data: Any) -> None:
    """All that is to be written for a network of one's own."""
    words = {"prune": "lamp,sparsity=0.9", "harden": "fgsm:0.05", "steps": 8, "batch": 16}
    run = fewer.train(model, f"{name}/run", data=data, **words)  # type: ignore[arg-type]
    pack = fewer.pack(run, f"{name}/net.pack")
    fewer.export(pack, f"{name}/net.onnx")
    fewer.export(pack, f"{name}/net.c", name="net")


NOTEBOOK = """
import sys
from itertools import pairwise
import torch
from torch import Tensor, nn
import fewer
torch.set_num_threads(1)
{sources}
{data}
for name, (make, data) in NETWORKS.items():
    torch.manual_seed(0)
    everything(name, make(), data)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all six, made by a process in whose `__main__` their classes are."""
    folder = tmp_path_factory.mktemp("six")
    text = Path(__file__).read_text()
    data = text[text.index("ROWS, TOKENS") : text.index("\n\n\ndef everything")]
    sources = "\n".join(inspect.getsource(part) for part in (drawn, Block, ResNet, Gru, Transformer, bert, everything))
    script = NOTEBOOK.format(sources=sources, data=data).replace("Callable[[], nn.Module]", "object")
    script = script.replace(
        'pytest.importorskip("transformers", reason="transformers is not installed")', '__import__("transformers")'
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "from typing import Any\n" + script],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_what_is_to_be_written_for_a_network_is_short() -> None:
    assert len(inspect.getsource(everything).splitlines()) <= 15


ALONE = """
import json, sys
sys.modules["torch"] = None
import numpy as np
import fewer
folder = sys.argv[1]
given = dict(np.load(folder + "/given.npz"))
np.save(folder + "/alone.npy", fewer.open_pack(folder + "/net.pack").predict(**given))
"""


def by_hand(folder: Path) -> tuple[int, int]:
    """Matrices' weights that are not zero, and all of them, of a run that another process made."""
    state = fewer.to_torch(folder / "run", "state_dict")
    matrices = [value for key, value in state.items() if value.ndim > 1 and not key.endswith("position_ids")]
    return sum(int((value != 0).sum()) for value in matrices), sum(value.numel() for value in matrices)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_a_notebook_goes_all_the_way(made: Path, name: str) -> None:
    if name == "Bert":
        pytest.importorskip("transformers", reason="transformers is not installed")
    folder = made / name
    run = fewer.load(folder / "run")
    batch = run.task.data("test").take(torch.arange(3))
    expected = fewer.predictor(run.task, run.modules)(batch).numpy()
    kept, total = by_hand(folder)
    assert kept == round(0.1 * total)
    pack = fewer.open_pack(folder / "net.pack")
    names = [item.name for item in pack.networks["net"].inputs]
    given = {key: (batch.x[key] if isinstance(batch.x, dict) else batch.x).numpy() for key in names}
    np.savez(folder / "given.npz", **given)
    subprocess.run([sys.executable, "-c", ALONE, str(folder)], check=True)
    session = onnxruntime.InferenceSession(folder / "net.onnx")
    answers = {
        "pack": pack.predict(**given), "without torch": np.load(folder / "alone.npy"),
        "ONNX": session.run(None, given)[0], "C": in_c(folder, given, expected.shape),
        "service": served(folder, given),
    }  # fmt: skip
    for form, answer in answers.items():
        assert np.abs(np.asarray(answer) - expected).max() < 1e-5 * max(1, np.abs(expected).max()), form


def in_c(folder: Path, given: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    words = ["gcc", "-std=c99", "-O1", "-shared", "-fPIC", "-o", str(folder / "net.so"), str(folder / "net.c"), "-lm"]
    subprocess.run(words, check=True)
    numbers = np.concatenate([x.astype(np.float32).reshape(len(x), -1) for x in given.values()], axis=1)
    answer, pack = np.zeros(shape, np.float32), fewer.open_pack(folder / "net.pack")
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (numbers, answer)]
    time = pack.networks["net"].program.usual
    ctypes.CDLL(str(folder / "net.so")).net_batch(*pointers, len(numbers), *([time] if time else []))
    return answer


def served(folder: Path, given: dict[str, np.ndarray]) -> Any:
    application = Application(open_models([str(folder / "net.pack")]))
    with TestClient(application) as client:
        task = client.get("/v1/models").json()[0]["task"]
        body = {key: value.tolist() for key, value in given.items()}
        answer = client.post(f"/v1/{task}/predict", json=body)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text)["output"]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_pruned_trained_hardened_and_given_back(name: str, tmp_path: Path) -> None:
    make, data = NETWORKS[name]
    torch.manual_seed(0)
    model = make()
    prune = "magnitude,sparsity=0.9,when=gradual,scope=layer"
    run = fewer.train(model, tmp_path / "run", data=data, steps=12, batch=16, harden="fgsm:0.05", prune=prune)
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
