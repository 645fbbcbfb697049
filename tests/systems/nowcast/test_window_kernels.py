"""The kernels of window attention against plain torch in double precision, on the GPU they are for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fewer.systems.nowcast.task.models.window_attention import fits, window_attention

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


def _plain(qkv: Tensor, bias: Tensor, codes: Tensor | None, heads: int) -> Tensor:
    query, key, value = qkv.unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4).unbind()
    scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5 + bias
    if codes is not None:
        apart = -100.0 * (codes[:, :, None] != codes[:, None]).to(scores.dtype)
        scores = scores + apart.repeat(len(qkv) // len(codes), 1, 1)[:, None]
    return (scores.softmax(3) @ value).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(("tokens", "heads", "head"), [(343, 3, 8), (196, 12, 8), (98, 2, 16)])
@pytest.mark.parametrize("coded", [False, True])
def test_kernels_give_outputs_and_gradients_to_the_precision_of_bfloat16(
    tokens: int, heads: int, head: int, coded: bool
) -> None:
    torch.manual_seed(0)
    qkv = torch.randn(10, tokens, 3 * heads * head, device="cuda").bfloat16().requires_grad_()
    bias = torch.randn(heads, tokens, tokens, device="cuda").bfloat16().float().requires_grad_()
    codes = torch.randint(3, (5, tokens), device="cuda", dtype=torch.uint8) if coded else None
    assert fits(qkv, head)
    ours = window_attention(qkv, bias, codes, heads)
    above = torch.randn_like(ours)
    found = torch.autograd.grad(ours, (qkv, bias), above, retain_graph=True)
    again = torch.autograd.grad(ours, (qkv, bias), above)
    exact, exact_bias = qkv.detach().double().requires_grad_(), bias.detach().double().requires_grad_()
    wanted = _plain(exact, exact_bias, codes, heads)
    gradients = torch.autograd.grad(wanted, (exact, exact_bias), above.double())
    for one, other in zip((ours, *found), (wanted, *gradients)):
        assert (one.double() - other).norm() / other.norm() < 0.01
    assert all(torch.equal(one, other) for one, other in zip(found, again))  # sums are taken in a fixed order
