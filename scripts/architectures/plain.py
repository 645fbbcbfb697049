"""Architectures of torch.nn and of the systems here: recurrent, tabular, sequences, graphs, policies."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["MODELS"]

Example = tuple[nn.Module, list[Tensor]]


class Tagger(nn.Module):
    """Words to a class for each: an embedding, a recurrent layer both ways, a head."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.words = nn.Embedding(200, 24)
        self.cells = getattr(nn, kind)(24, 20, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(40, 7)

    def forward(self, tokens: Tensor) -> Tensor:
        """(samples, words) to (samples, words, classes)."""
        found: Tensor = self.head(self.cells(self.words(tokens))[0])
        return found


class Translator(nn.Module):
    """GRU encoder, GRU decoder with attention over the encoder's states."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(60, 16)
        self.encoder = nn.GRU(16, 24, batch_first=True)
        self.decoder = nn.GRU(16, 24, batch_first=True)
        self.head = nn.Linear(48, 60)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """A score of every word, for every place of the target."""
        states, last = self.encoder(self.words(source))
        asked, _ = self.decoder(self.words(target), last)
        seen = torch.softmax(asked @ states.transpose(1, 2) / 5, -1) @ states
        found: Tensor = self.head(torch.cat([asked, seen], -1))
        return found


class Forecaster(nn.Module):
    """An LSTM over a series with time first, and the last state."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(5, 32, num_layers=2, proj_size=12)
        self.head = nn.Linear(12, 3)

    def forward(self, series: Tensor) -> Tensor:
        """(samples, time, features) to (samples, 3)."""
        _, (last, _) = self.cells(series.transpose(0, 1))
        found: Tensor = self.head(last[-1])
        return found


class Causal(nn.Module):
    """A temporal convolutional network: dilated, causal, with skips."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(6 if i == 0 else 16, 16, 3, dilation=2**i) for i in range(4))
        self.norm = nn.GroupNorm(4, 16)

    def forward(self, x: Tensor) -> Tensor:
        """(samples, features, time) to the same with 16 features."""
        for place, layer in enumerate(self.layers):
            y = F.mish(layer(F.pad(x, (2 * 2**place, 0))))
            x = y if place == 0 else x + y
        found: Tensor = self.norm(x)
        return found


class Tabular(nn.Module):
    """Numbers and categories as tokens of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(6, 16)), nn.Parameter(torch.randn(6, 16))
        self.kinds, self.first = nn.Embedding(30, 16), nn.Parameter(torch.randn(1, 1, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 2)

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        """(samples, 6) numbers and (samples, 3) categories to two scores."""
        tokens = torch.cat(
            [
                self.first.expand(numbers.shape[0], -1, -1),
                numbers[..., None] * self.weight + self.bias,
                self.kinds(kinds),
            ],
            1,
        )
        found: Tensor = self.head(self.body(tokens)[:, 0])
        return found


class Unet(nn.Module):
    """Down, up with transposed convolutions, and skips."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = self._block(2, 8), self._block(8, 16)
        self.up, self.last = nn.ConvTranspose2d(16, 8, 2, stride=2), self._block(16, 8)
        self.head = nn.Conv2d(8, 3, 1)

    @staticmethod
    def _block(inputs: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, padding_mode="reflect"), nn.InstanceNorm2d(outputs), nn.SiLU()
        )

    def forward(self, x: Tensor) -> Tensor:
        """(samples, 2, height, width) to the same with three channels."""
        fine = self.first(x)
        found: Tensor = self.head(self.last(torch.cat([fine, self.up(self.second(F.max_pool2d(fine, 2)))], 1)))
        return found


class Messages(nn.Module):
    """Attention over the edges of a fixed graph, as a graph attention network does it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.score = nn.Linear(5, 8), nn.Linear(16, 1)
        self.register_buffer("edges", torch.randint(0, 10, (2, 40)))

    def forward(self, x: Tensor) -> Tensor:
        """(samples, 10 nodes, 5 features) to (samples, 10, 8)."""
        z, (source, target) = self.layer(x), self.edges
        pairs = torch.cat([z[:, source], z[:, target]], -1)
        share = F.leaky_relu(self.score(pairs), 0.2).exp()
        place = target[None, :, None].expand(x.shape[0], -1, 8)
        total = torch.zeros_like(z).scatter_add(1, place, share.expand(-1, -1, 8))
        summed = torch.zeros_like(z).scatter_add(1, place, share * z[:, source])
        return summed / (total + 1e-6)


def _translate() -> Example:
    layers = nn.Transformer(16, 4, 2, 2, 32, batch_first=True)
    return layers, [torch.randn(2, 9, 16), torch.randn(2, 6, 16)]


def _monai() -> Example:
    from monai.networks.nets import UNet

    net = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
    return net, [torch.randn(2, 1, 16, 16, 16)]


MODELS: dict[str, Callable[[], Example]] = {
    "RNN, both ways": lambda: (Tagger("RNN"), [torch.randint(0, 200, (2, 15))]),
    "GRU, both ways": lambda: (Tagger("GRU"), [torch.randint(0, 200, (2, 15))]),
    "LSTM, both ways": lambda: (Tagger("LSTM"), [torch.randint(0, 200, (2, 15))]),
    "LSTM with projections": lambda: (Forecaster(), [torch.randn(2, 40, 5)]),
    "GRU translator": lambda: (
        Translator(), [torch.randint(0, 60, (2, 11)), torch.randint(0, 60, (2, 8))]
    ),
    "Transformer": _translate,
    "TCN": lambda: (Causal(), [torch.randn(2, 6, 40)]),
    "FT-Transformer": lambda: (Tabular(), [torch.randn(2, 6), torch.randint(0, 30, (2, 3))]),
    "U-Net": lambda: (Unet(), [torch.randn(2, 2, 16, 16)]),
    "3D U-Net (MONAI)": _monai,
    "Graph attention": lambda: (Messages(), [torch.randn(2, 10, 5)]),
}  # fmt: skip
