"""Layers that hold only their kept weights."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.sparse.pattern import Chain, Pattern
from fewer.sparse.products import apply_chain

__all__ = ["SparseLinear", "SparseSequential"]


class SparseLinear(nn.Module):
    """`nn.Linear` with only the kept weights, one parameter `values` in row-major order.

    Gradients and optimiser state exist for kept weights alone. Results are feature-major: the transpose of a
    contiguous (features, samples) tensor, which elementwise operations keep and the next sparse layer reads
    fastest; any other layout is right as well.
    """

    bias: nn.Parameter | None

    def __init__(self, pattern: Pattern, values: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        if values.shape != (pattern.kept,):
            raise UserError(f"values of shape {tuple(values.shape)}", f"({pattern.kept},), one for each kept weight")
        self.pattern = pattern
        self.in_features, self.out_features = pattern.in_features, pattern.out_features
        self.values = nn.Parameter(values.detach().clone())
        # registered where it is missing too, as torch does: a chain asks every layer for its bias by name
        self.register_parameter("bias", None if bias is None else nn.Parameter(bias.detach().clone()))

    @classmethod
    def from_dense(cls, linear: nn.Linear, mask: Tensor) -> SparseLinear:
        """The kept weights of a dense layer; `mask` is True where a weight is kept."""
        if mask.shape != linear.weight.shape:
            shapes = f"mask {tuple(mask.shape)}", f"the layer's {tuple(linear.weight.shape)}"
            raise UserError(*shapes, "score and prune the same network")
        return cls(Pattern.of(mask), linear.weight.detach()[mask.to(linear.weight.device)], linear.bias)

    def dense(self) -> tuple[Tensor, Tensor]:
        """Weight and mask, both (out, in)."""
        mask = self.pattern.mask().to(self.values.device)
        weight = self.values.detach().new_zeros(mask.shape)
        weight[mask] = self.values.detach()
        return weight, mask

    @property
    def weight(self) -> Tensor:
        """(out, in), zero where pruned: for networks that read a layer's weight themselves; gradients go through."""
        mask = self.pattern.mask().to(self.values.device)
        return self.values.new_zeros(mask.shape).masked_scatter(mask, self.values)

    def forward(self, x: Tensor) -> Tensor:
        weights = (self._parameters["values"], self._parameters["bias"])
        return _through(self.pattern.alone, x, weights)

    def extra_repr(self) -> str:
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, kept={self.pattern.kept}, bias={self.bias is not None}"


class SparseSequential(nn.Sequential):
    """`nn.Sequential` that passes through neighbouring sparse layers, and relus between them, in one go.

    Blocks of samples stay in the cache from the first layer to the last, and autograd sees one node. The
    children and their names are those of the sequence it replaces.
    """

    def __init__(self, *children: Any) -> None:
        super().__init__(*children)
        self.steps = _steps(list(self))

    def forward(self, input: Tensor) -> Tensor:
        x = input
        for step in self.steps:
            if isinstance(step, nn.Module):
                x = step(x)
            else:
                chain, layers = step
                weights = tuple(layer._parameters[name] for layer in layers for name in ("values", "bias"))
                x = _through(chain, x, weights)
        return x


Step = nn.Module | tuple[Chain, tuple[SparseLinear, ...]]


def _steps(modules: list[nn.Module]) -> list[Step]:
    """Runs of sparse layers as chains, with the relu that follows a layer; other modules as they are."""
    steps: list[Step] = []
    run: list[SparseLinear] = []
    relu: list[bool] = []
    for module in [*modules, None]:
        if isinstance(module, SparseLinear):
            run.append(module)
            relu.append(False)
        elif type(module) is nn.ReLU and run and not relu[-1]:
            relu[-1] = True
        else:
            if run:
                steps.append((Chain(tuple(layer.pattern for layer in run), tuple(relu)), tuple(run)))
            run, relu = [], []
            if module is not None:
                steps.append(module)
    return steps


def _through(chain: Chain, x: Tensor, weights: tuple[Tensor | None, ...]) -> Tensor:
    values = weights[0]
    if x.shape[-1] != chain.in_features or (values is not None and x.dtype is not values.dtype):
        given = f"an input of shape {tuple(x.shape)} and {x.dtype}"
        raise UserError(given, f"(..., {chain.in_features}) and the layer's type", "check the layer before")
    if x.dim() == 2:
        return apply_chain(chain, x, weights)
    return apply_chain(chain, x.reshape(-1, chain.in_features), weights).reshape(*x.shape[:-1], chain.out_features)
