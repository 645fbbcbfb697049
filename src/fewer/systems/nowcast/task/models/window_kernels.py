"""Attention within windows on CUDA, in Triton: scores stay on the chip, forward and backward.

`qkv` is (windows, tokens, 3 heads HEAD) as a linear layer leaves it; the answer and the gradient have the same form, so
that nothing is transposed or filled up in memory. `bias` is (heads, side, side), a whole number of tiles, in units of
log 2, and very low beyond the tokens. Windows at the rim of a shifted volume hold tokens of up to eight regions:
a one-hot code of the region behind each query and key, APART long, lets tokens of one region score APART ** 2 more.

The gradient of the bias is a sum over all windows. A program owns one tile of it and walks through the windows with
the sum in registers; a few such walks are added up at the end, always in the same order.
"""

# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["backward", "forward"]

_TILE = 128  # the bias is filled up to a multiple of this: every tile below divides it
_NEVER = -1e30
_LOG2E = 1.4426950408889634
# queries and keys a tile, warps, stages of the pipeline; chosen on an H200 at 2,166 windows of 343 tokens, three heads
FORWARD = (128, 32, 4, 2)
QUERIES = (64, 64, 4, 2)
KEYS = (32, 128, 4, 2)
BIAS = (64, 64, 4, 3)
_WALKS = 16  # parts of the windows whose sums of the bias's gradient are kept apart


@triton.jit
def _rows(base, place, row, tokens, stride, HEAD: tl.constexpr, D: tl.constexpr):
    """(rows, D): one head's numbers of some tokens, zeros behind them and beyond the last token."""
    d = tl.arange(0, D)
    inside = (row[:, None] < tokens) & (d[None, :] < HEAD)
    return tl.load(base + (place + row[:, None]) * stride + d[None, :], mask=inside, other=0.0)


@triton.jit
def _coded(x, codes, window, kinds, row, tokens, APART: tl.constexpr, HEAD: tl.constexpr, D: tl.constexpr):
    """The same with the region of each token behind its numbers."""
    code = tl.load(codes + (window % kinds) * tokens + row, mask=row < tokens, other=0).to(tl.int32)
    d = tl.arange(0, D)
    return tl.where(code[:, None] == d[None, :] - HEAD, APART, x).to(x.dtype)


@triton.jit
def _forward(
    qkv, bias, codes, out, lse, tokens, heads, kinds, side, scale, CODED: tl.constexpr, APART: tl.constexpr,
    HEAD: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(tokens, M)
    pair = tl.program_id(0) // tiles
    window, head = pair // heads, pair % heads
    stride = 3 * heads * HEAD
    first = window.to(tl.int64) * tokens
    own, keys, values = qkv + head * HEAD, qkv + (heads + head) * HEAD, qkv + (2 * heads + head) * HEAD
    row = (tl.program_id(0) % tiles) * M + tl.arange(0, M)
    q = _rows(own, first, row, tokens, stride, HEAD, D)
    if CODED:
        q = _coded(q, codes, window, kinds, row, tokens, APART, HEAD, D)
    most, total = tl.full([M], -3e38, tl.float32), tl.zeros([M], tl.float32)
    seen = tl.zeros([M, D], tl.float32)
    line = bias + (head * side + row[:, None]) * side
    for begin in range(0, tokens, N):
        column = begin + tl.arange(0, N)
        k = _rows(keys, first, column, tokens, stride, HEAD, D)
        v = _rows(values, first, column, tokens, stride, HEAD, D)
        if CODED:
            k = _coded(k, codes, window, kinds, column, tokens, APART, HEAD, D)
        score = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale + tl.load(line + column[None, :])
        now = tl.maximum(most, tl.max(score, 1))
        p = tl.exp2(score - now[:, None])
        before = tl.exp2(most - now)
        total = total * before + tl.sum(p, 1)
        seen = seen * before[:, None] + tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
        most = now
    d = tl.arange(0, D)
    answer = (seen / total[:, None]).to(out.dtype.element_ty)
    inside = (row[:, None] < tokens) & (d[None, :] < HEAD)
    tl.store(out + (first + row[:, None]) * (heads * HEAD) + head * HEAD + d[None, :], answer, mask=inside)
    tl.store(lse + pair.to(tl.int64) * side + row, tl.where(row < tokens, most + tl.log2(total), 0.0))


@triton.jit
def _queries(
    qkv, bias, codes, out, lse, grad, delta, dqkv, tokens, heads, kinds, side, scale, plain, CODED: tl.constexpr,
    APART: tl.constexpr, HEAD: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(tokens, M)
    pair = tl.program_id(0) // tiles
    window, head = pair // heads, pair % heads
    stride = 3 * heads * HEAD
    first = window.to(tl.int64) * tokens
    own, keys, values = qkv + head * HEAD, qkv + (heads + head) * HEAD, qkv + (2 * heads + head) * HEAD
    row = (tl.program_id(0) % tiles) * M + tl.arange(0, M)
    q = _rows(own, first, row, tokens, stride, HEAD, D)
    if CODED:
        q = _coded(q, codes, window, kinds, row, tokens, APART, HEAD, D)
    above = _rows(grad + head * HEAD, first, row, tokens, heads * HEAD, HEAD, D)
    answer = _rows(out + head * HEAD, first, row, tokens, heads * HEAD, HEAD, D)
    offset = tl.sum(above.to(tl.float32) * answer.to(tl.float32), 1)
    place = pair.to(tl.int64) * side + row
    tl.store(delta + place, offset)
    level = tl.load(lse + place)
    found = tl.zeros([M, D], tl.float32)
    line = bias + (head * side + row[:, None]) * side
    for begin in range(0, tokens, N):
        column = begin + tl.arange(0, N)
        k = _rows(keys, first, column, tokens, stride, HEAD, D)
        v = _rows(values, first, column, tokens, stride, HEAD, D)
        coded = k
        if CODED:
            coded = _coded(k, codes, window, kinds, column, tokens, APART, HEAD, D)
        score = tl.dot(q, tl.trans(coded), input_precision=PRECISION) * scale + tl.load(line + column[None, :])
        p = tl.exp2(score - level[:, None])
        ds = p * (tl.dot(above, tl.trans(v), input_precision=PRECISION) - offset[:, None])
        found += tl.dot(ds.to(k.dtype), k, input_precision=PRECISION)
    d = tl.arange(0, D)
    inside = (row[:, None] < tokens) & (d[None, :] < HEAD)
    tl.store(
        dqkv + (first + row[:, None]) * stride + head * HEAD + d[None, :], (found * plain).to(dqkv.dtype.element_ty),
        mask=inside,
    )  # fmt: skip


@triton.jit
def _keys(
    qkv, turned, codes, lse, grad, delta, dqkv, tokens, heads, kinds, side, scale, plain, CODED: tl.constexpr,
    APART: tl.constexpr, HEAD: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Keys and values; scores lie with the keys first, and `turned` is the bias transposed."""
    tiles = tl.cdiv(tokens, N)
    pair = tl.program_id(0) // tiles
    window, head = pair // heads, pair % heads
    stride = 3 * heads * HEAD
    first = window.to(tl.int64) * tokens
    own, keys, values = qkv + head * HEAD, qkv + (heads + head) * HEAD, qkv + (2 * heads + head) * HEAD
    column = (tl.program_id(0) % tiles) * N + tl.arange(0, N)
    k = _rows(keys, first, column, tokens, stride, HEAD, D)
    v = _rows(values, first, column, tokens, stride, HEAD, D)
    if CODED:
        k = _coded(k, codes, window, kinds, column, tokens, APART, HEAD, D)
    dk, dv = tl.zeros([N, D], tl.float32), tl.zeros([N, D], tl.float32)
    line = turned + (head * side + column[:, None]) * side
    place = pair.to(tl.int64) * side
    for begin in range(0, tokens, M):
        row = begin + tl.arange(0, M)
        q = _rows(own, first, row, tokens, stride, HEAD, D)
        above = _rows(grad + head * HEAD, first, row, tokens, heads * HEAD, HEAD, D)
        coded = q
        if CODED:
            coded = _coded(q, codes, window, kinds, row, tokens, APART, HEAD, D)
        level, offset = tl.load(lse + place + row), tl.load(delta + place + row)
        score = tl.dot(k, tl.trans(coded), input_precision=PRECISION) * scale + tl.load(line + row[None, :])
        p = tl.exp2(score - level[None, :])
        dv += tl.dot(p.to(above.dtype), above, input_precision=PRECISION)
        ds = p * (tl.dot(v, tl.trans(above), input_precision=PRECISION) - offset[None, :])
        dk += tl.dot(ds.to(q.dtype), q, input_precision=PRECISION)
    d = tl.arange(0, D)
    inside = (column[:, None] < tokens) & (d[None, :] < HEAD)
    at = dqkv + (first + column[:, None]) * stride + (heads + head) * HEAD + d[None, :]
    tl.store(at, (dk * plain).to(dqkv.dtype.element_ty), mask=inside)
    tl.store(at + heads * HEAD, dv.to(dqkv.dtype.element_ty), mask=inside)


@triton.jit
def _bias(
    qkv, bias, codes, lse, grad, delta, dbias, windows, each, tokens, heads, kinds, side, scale, CODED: tl.constexpr,
    APART: tl.constexpr, HEAD: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(tokens, N)
    tile, head, walk = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row, column = (tile // across) * M + tl.arange(0, M), (tile % across) * N + tl.arange(0, N)
    stride = 3 * heads * HEAD
    own, keys, values = qkv + head * HEAD, qkv + (heads + head) * HEAD, qkv + (2 * heads + head) * HEAD
    fixed = tl.load(bias + (head * side + row[:, None]) * side + column[None, :]).to(tl.float32)
    total = tl.zeros([M, N], tl.float32)
    for step in range(tl.minimum(windows - walk * each, each)):
        window = walk * each + step
        first = window.to(tl.int64) * tokens
        q = _rows(own, first, row, tokens, stride, HEAD, D)
        k = _rows(keys, first, column, tokens, stride, HEAD, D)
        v = _rows(values, first, column, tokens, stride, HEAD, D)
        above = _rows(grad + head * HEAD, first, row, tokens, heads * HEAD, HEAD, D)
        if CODED:
            q = _coded(q, codes, window, kinds, row, tokens, APART, HEAD, D)
            k = _coded(k, codes, window, kinds, column, tokens, APART, HEAD, D)
        place = (window.to(tl.int64) * heads + head) * side + row
        level, offset = tl.load(lse + place), tl.load(delta + place)
        p = tl.exp2(tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale + fixed - level[:, None])
        total += p * (tl.dot(above, tl.trans(v), input_precision=PRECISION) - offset[:, None])
    at = dbias + ((walk * heads + head).to(tl.int64) * side + row[:, None]) * side + column[None, :]
    tl.store(at, total)


def _shape(qkv: Tensor, heads: int) -> tuple[int, int, int, int, int]:
    """Windows, tokens, numbers a head, its width with a region's code, the bias's side."""
    windows, tokens, channels = qkv.shape
    head = channels // (3 * heads)
    return windows, tokens, head, triton.next_power_of_2(max(head + 8, 16)), -(-tokens // _TILE) * _TILE


def _filled(bias: Tensor, side: int, dtype: torch.dtype) -> Tensor:
    more = side - bias.shape[-1]
    lowest = max(_NEVER, torch.finfo(dtype).min)
    return torch.nn.functional.pad((bias.float() * _LOG2E).to(dtype), (0, more, 0, more), value=lowest).contiguous()


def _common(qkv: Tensor, codes: Tensor | None, head: int, wide: int) -> dict[str, object]:
    # APART ** 2 / sqrt(HEAD) is at least 100, which MONAI takes from the score of tokens that do not belong together
    precise = "ieee" if qkv.dtype == torch.float32 else "tf32"
    return {"CODED": codes is not None, "APART": 10.0 * head**0.25 + 1, "HEAD": head, "D": wide, "PRECISION": precise}


def forward(qkv: Tensor, bias: Tensor, codes: Tensor | None, heads: int) -> tuple[Tensor, Tensor]:
    """(windows, tokens, heads HEAD), and the logarithm of each query's sum, in units of log 2, for the backward."""
    windows, tokens, head, wide, side = _shape(qkv, heads)
    out = qkv.new_empty(windows, tokens, heads * head)
    lse = torch.empty(windows, heads, side, device=qkv.device)
    m, n, warps, stages = FORWARD
    _forward[(windows * heads * -(-tokens // m),)](
        qkv, _filled(bias, side, qkv.dtype), codes, out, lse, tokens, heads, 1 if codes is None else len(codes), side,
        _LOG2E * head**-0.5, M=m, N=n, num_warps=warps, num_stages=stages, **_common(qkv, codes, head, wide),
    )  # fmt: skip
    return out, lse


def backward(
    grad: Tensor, qkv: Tensor, bias: Tensor, codes: Tensor | None, out: Tensor, lse: Tensor, heads: int
) -> tuple[Tensor, Tensor]:
    """The gradients at `qkv` and at `bias`."""
    windows, tokens, head, wide, side = _shape(qkv, heads)
    kinds = 1 if codes is None else len(codes)
    filled = _filled(bias, side, qkv.dtype)
    dqkv, delta = torch.empty_like(qkv), torch.empty_like(lse)
    common = _common(qkv, codes, head, wide)
    scale, plain = _LOG2E * head**-0.5, head**-0.5
    m, n, warps, stages = QUERIES
    _queries[(windows * heads * -(-tokens // m),)](
        qkv, filled, codes, out, lse, grad, delta, dqkv, tokens, heads, kinds, side, scale, plain, M=m, N=n,
        num_warps=warps, num_stages=stages, **common,
    )  # fmt: skip
    m, n, warps, stages = KEYS
    _keys[(windows * heads * -(-tokens // n),)](
        qkv, filled.transpose(1, 2).contiguous(), codes, lse, grad, delta, dqkv, tokens, heads, kinds, side, scale,
        plain, M=m, N=n, num_warps=warps, num_stages=stages, **common,
    )  # fmt: skip
    m, n, warps, stages = BIAS
    each = -(-windows // _WALKS)
    walks = -(-windows // each)
    dbias = lse.new_empty(walks, heads, side, side)
    _bias[(-(-tokens // m) * -(-tokens // n), heads, walks)](
        qkv, filled, codes, lse, grad, delta, dbias, windows, each, tokens, heads, kinds, side, scale, M=m, N=n,
        num_warps=warps, num_stages=stages, **common,
    )  # fmt: skip
    return dqkv, dbias[:, :, :tokens, :tokens].sum(0).to(bias.dtype)
