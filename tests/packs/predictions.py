"""Small predictions that together use every operation of a program; each is a module and the shape of a sample."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fewer.packs.program import Program
from fewer.packs.trace.trace import trace


class Arithmetic(nn.Module):
    """Activations and arithmetic, with numbers on either side."""

    def forward(self, x: Tensor) -> Tensor:
        smooth = F.selu(x) + F.elu(x, 0.7) * F.gelu(x) - F.gelu(x, approximate="tanh") + F.silu(x) + F.softplus(x)
        sharp = F.leaky_relu(x, 0.2) + F.hardtanh(x) + F.relu6(3 * x) + x.clamp(min=-0.3) + x.clamp(max=0.4)
        curved = torch.sigmoid(x) + torch.tanh(x) + torch.exp(-x.abs()) + torch.log1p(x * x) + torch.rsqrt(1 + x * x)
        counted = (
            torch.floor(x) + torch.ceil(x) - torch.sign(x) + torch.remainder(x, 0.3) + (x * 10) // 3 - torch.trunc(x)
        )
        mixed = (
            2 - x + 1 / (2 + x * x) + (x * x + 0.1) ** 0.5 + torch.maximum(x, x.flip(1)) + torch.sin(x) * torch.cos(x)
        )
        return smooth + sharp + curved + counted + mixed + torch.expm1(0.1 * x) + torch.erf(x) + (1 + x.abs()).log()


class Logic(nn.Module):
    """Comparisons, choices, and reductions."""

    def forward(self, x: Tensor) -> Tensor:
        chosen = torch.where((x > 0) & (x < 1) | ~(x >= -1), x, -1.5 * x).masked_fill(x == 0, 3.0)
        best, place = chosen.max(1, keepdim=True)
        spread = chosen.var(1, keepdim=True) + chosen.std(1, keepdim=True, correction=0) + chosen.amin(1, keepdim=True)
        truth = ((x > 2).any(1, keepdim=True) | (x < 3).all(1, keepdim=True)).float()
        ordered = x.sort(1, descending=True).values + x.gather(1, x.argsort(1))
        top, index = x.topk(2, 1)
        first = best + place + spread + truth + chosen.mean(1, keepdim=True) + chosen.sum(1, keepdim=True)
        return first + ordered + top.sum(1, keepdim=True) + index[:, :1] + x.cumsum(1) + x.argmin(1, keepdim=True)


class Shapes(nn.Module):
    """Views, cuts, turns and indices."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("order", torch.tensor([2, 0, 1]))
        self.register_buffer("table", torch.randn(5, 4))

    def forward(self, x: Tensor) -> Tensor:  # (batch, 3, 4, 6)
        turned = x.permute(0, 2, 1, 3).reshape(x.shape[0] * 4, 18).view(x.shape[0], 4, 3, 6).transpose(1, 2)
        parts = (
            torch.cat([*turned.split([2, 4], 3)][::-1], 3)
            + torch.stack(x.unbind(1), 1)
            + torch.roll(x, (1, -2), (2, 3))
        )
        picked = parts[:, self.order] + parts.index_select(1, self.order) + x[:, :, :, ::2].repeat_interleave(2, 3)
        framed = (
            F.pad(picked, (1, 2, -1, 1), value=0.5)[:, :, :, 1:-2] + F.pad(x, (1, 1, 0, 0), mode="reflect")[..., 2:]
        )
        wide = framed.unsqueeze(1).expand(-1, 2, -1, -1, -1).flatten(1, 2).chunk(2, 1)[1].squeeze(1)
        looked = self.table[self.order][:, :, None] + torch.zeros_like(x) + torch.ones(3, 4, 6).flip(0)
        frame = torch.zeros_like(x)
        frame[:, :, 1:3] = 2.0
        frame[:, 1, :, 1:4] = x[:, 0, :, :3]
        return wide + looked + x[:, 0:1].select(3, 2).unsqueeze(3) + frame


class Nodes(nn.Module):
    """Messages over a fixed graph: gather at one end of each edge, add at the other."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("source", torch.tensor([0, 1, 2, 3, 3, 1]))
        self.register_buffer("target", torch.tensor([1, 2, 3, 0, 1, 1]))

    def forward(self, x: Tensor) -> Tensor:  # (batch, nodes, features)
        messages = self.layer(x).index_select(1, self.source)
        summed = torch.zeros_like(x).scatter_add(1, self.target[None, :, None].expand(x.shape[0], -1, 3), messages)
        return F.log_softmax(summed + torch.softmax(x, 1), -1)


class Attention(nn.Module):
    """A transformer's block, written out and by torch."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, norm_first=True, activation="gelu")
        self.many = nn.MultiheadAttention(12, 2, batch_first=True)
        self.register_buffer("mask", torch.tril(torch.ones(5, 5)).bool())

    def forward(self, x: Tensor) -> Tensor:  # (batch, tokens, features)
        q = x.unflatten(-1, (3, 4)).transpose(1, 2)
        attend = F.scaled_dot_product_attention
        seen = attend(q, q, q, attn_mask=self.mask) + attend(q, q, q, is_causal=True)
        plain = torch.baddbmm(x, x @ x.transpose(1, 2) / 12, x) + torch.einsum("btf,bsf->bts", x, x) @ x
        return self.block(x) + self.many(x, x, x)[0] + seen.transpose(1, 2).flatten(2) + plain


def convolutions(rank: int) -> nn.Sequential:
    """Every kind of convolution, norm, pool and resizing in so many dimensions."""
    conv, turned, batch, instance, largest, mean = (
        getattr(nn, f"{kind}{rank}d")
        for kind in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm", "MaxPool", "AvgPool")
    )
    mode = ("linear", "bilinear", "trilinear")[rank - 1]
    net = nn.Sequential(
        conv(3, 6, 3, padding=1, groups=3), batch(6), nn.RReLU(), conv(6, 6, 3, stride=2, padding=2, dilation=2),
        instance(6, affine=True), nn.ReLU(), turned(6, 4, 3, stride=2, padding=1, output_padding=1), nn.GroupNorm(2, 4),
        nn.Upsample(scale_factor=2, mode=mode), nn.PReLU(), largest(3, stride=2, padding=1, ceil_mode=True),
        nn.Dropout(),
        nn.Upsample(size=(7,) * rank, mode="nearest"), mean(2, stride=2, padding=1, ceil_mode=True),
        nn.Upsample(scale_factor=1.5, mode=mode, align_corners=True), conv(4, 2, 1, bias=False),
    )  # fmt: skip
    for part in net:
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            nn.init.normal_(part.running_mean)
            nn.init.uniform_(part.running_var, 0.5, 2)
    return net


def classifier() -> nn.Sequential:
    """A small convolutional classifier, as the exports to C know it."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.SELU(), nn.AvgPool2d(2, padding=1, ceil_mode=True),
        nn.Flatten(), nn.Linear(32, 20), nn.Tanh(), nn.Linear(20, 5), nn.Softmax(-1),
    )  # fmt: skip


class Curves(nn.Module):
    """The activations that torch takes apart, angles and logarithms."""

    def forward(self, x: Tensor) -> Tensor:
        named = (
            F.hardswish, F.hardsigmoid, F.softplus, F.mish, F.softsign, F.logsigmoid, F.tanhshrink, F.celu, F.relu6,
            F.hardshrink, F.softshrink, F.silu, F.glu,
        )  # fmt: skip
        summed = sum(function(x)[:, :4] for function in named) + F.threshold(x, 0.1, -2.0)[:, :4]
        small = torch.tanh(x)[:, :4] * 0.9
        angles = torch.tan(small) + torch.asin(small) + torch.acos(small) + torch.atan(x)[:, :4] + torch.atanh(small)
        angles = angles + torch.atan2(x[:, :4], x[:, 4:]) + torch.sinh(small) + torch.cosh(small) + torch.asinh(small)
        logs = torch.acosh(2 + small) + torch.log2(2 + small) + torch.log10(2 + small) + torch.exp2(small)
        norms = F.normalize(x, dim=1)[:, :4] + x.norm(p=1, dim=1, keepdim=True) + x.norm(p=float("inf"), dim=1)[:, None]
        return summed + angles + logs + norms + torch.logsumexp(x, 1, keepdim=True) + x.isinf()[:, :4]


class Recurrent(nn.Module):
    """Words, then every recurrent layer: both ways, several layers, first states, without biases, time first."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.gru = nn.GRU(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.lstm = nn.LSTM(10, 4, num_layers=2, batch_first=True)
        self.again = nn.LSTM(4, 4)
        self.rnn = nn.RNN(4, 3, nonlinearity="relu", bias=False, bidirectional=True)
        self.cells = nn.RNN(6, 3)

    def forward(self, x: Tensor) -> Tensor:  # (batch, time)
        tokens = (x.abs() * 3).long().clamp(max=8)
        both, last = self.gru(self.words(tokens))
        found, (h, c) = self.lstm(both)
        states, _ = self.again(found.transpose(0, 1).flip(0), (h[-1:], c[-1:]))
        answers, _ = self.rnn(states)
        plain, end = self.cells(self.words(tokens).transpose(0, 1))
        return torch.cat([answers, plain], 2).transpose(0, 1) + end[0][:, None, :1] + last.sum(0)[:, None, :1]


class Places(nn.Module):
    """Scattering, windows, indices along several axes, shuffled pixels, shared heads, norms by root mean square."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(6)
        self.register_buffer("order", torch.tensor([[2, 0, 1, 3, 1, 0]]))

    def forward(self, x: Tensor) -> Tensor:  # (batch, 4, 6)
        place = self.order.expand(x.shape[0], -1)[:, None, :].expand(-1, 4, -1)
        spread = torch.zeros_like(x).scatter(1, place[:, :1], 2.0) + x.scatter(2, place[:, :, :3], x[:, :, :3])
        spread = spread + torch.zeros_like(x).scatter_reduce(2, place, x, "amax", include_self=True)
        windows = x.unfold(2, 3, 1).sum(3, keepdim=True).flatten(2).repeat(1, 1, 2)[:, :, :6]
        rows = torch.arange(x.shape[0])
        best = x[:, :, 0].argmax(1)
        picked = x[rows, best][:, None] + x[rows, :, best][:, :, None]
        put = x.clone()
        put[rows, best] = 3.0
        pixels = F.pixel_unshuffle(F.pixel_shuffle(x[:, :, None], 2), 2)[:, :, 0]
        q = self.norm(x).unflatten(2, (3, 2)).permute(0, 2, 1, 3).repeat(1, 2, 1, 1)
        k = x.unflatten(2, (3, 2)).permute(0, 2, 1, 3)
        shared = F.scaled_dot_product_attention(q, k, k, enable_gqa=True)[:, :3].permute(0, 2, 1, 3).flatten(2)
        edges = F.pad(x, (1, 2), mode="replicate")[:, :, :6] + F.pad(x, (2, 2), mode="circular")[:, :, :6]
        return (
            spread
            + windows
            + picked
            + put
            + pixels
            + shared
            + edges
            + torch.einsum("bij,bkj->bik", x, x).sum(2, keepdim=True)
        )


PREDICTIONS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "arithmetic": (Arithmetic, (7,)),
    "logic": (Logic, (7,)),
    "shapes": (Shapes, (3, 4, 6)),
    "nodes": (Nodes, (4, 3)),
    "attention": (Attention, (5, 12)),
    "convolutions1": (lambda: convolutions(1), (3, 9)),
    "convolutions2": (lambda: convolutions(2), (3, 8, 9)),
    "convolutions3": (lambda: convolutions(3), (3, 6, 8, 7)),
    "adaptive": (
        lambda: nn.Sequential(nn.AdaptiveAvgPool2d((4, 5)), nn.AdaptiveMaxPool2d((2, 3)), nn.Flatten()),
        (2, 8, 8),
    ),
    "classifier": (classifier, (1, 12, 12)),
    "curves": (Curves, (8,)),
    "recurrent": (Recurrent, (7,)),
    "places": (Places, (4, 6)),
}


@cache
def traced(name: str) -> tuple[nn.Module, Program, dict[str, object]]:
    """A module in evaluation mode, its program and its tensors; traced once a process."""
    make, shape = PREDICTIONS[name]
    torch.manual_seed(0)
    module = make().eval()
    program, tensors = trace(module, [torch.randn(2, *shape)])
    return module, program, tensors
