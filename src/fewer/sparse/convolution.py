"""Convolutions that hold only their kept weights."""

from __future__ import annotations

from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.sparse.planes import Filters, Window
from fewer.sparse.products import apply_chain

__all__ = ["Dense", "SparseConvolution", "fits"]

Dense = nn.Conv1d | nn.Conv2d | nn.Conv3d


def fits(module: nn.Module) -> bool:
    """Whether a layer is a convolution that can be held by its kept weights: as torch's, padded by as many zeros on
    each side."""
    if type(module) not in (nn.Conv1d, nn.Conv2d, nn.Conv3d) or not isinstance(module, Dense):
        return False
    return module.padding_mode == "zeros" and _padding(module) is not None


def _padding(dense: Dense) -> tuple[int, ...] | None:
    """Zeros on each side; None where the sides differ."""
    if dense.padding == "valid":
        return (0,) * len(dense.kernel_size)
    if dense.padding != "same":
        return tuple(map(int, dense.padding))
    reach = [d * (k - 1) for d, k in zip(dense.dilation, dense.kernel_size)]
    return None if any(n % 2 for n in reach) else tuple(n // 2 for n in reach)


class SparseConvolution(nn.Module):
    """`nn.Conv1d`, `nn.Conv2d` or `nn.Conv3d` with only the kept weights, one parameter `values` in row-major order."""

    bias: nn.Parameter | None

    def __init__(self, filters: Filters, values: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        if values.shape != (filters.kept,):
            raise UserError(f"values of shape {tuple(values.shape)}", f"({filters.kept},), one for each kept weight")
        self.pattern = filters
        self.in_channels, self.out_channels = filters.in_channels, filters.out_channels
        self.values = nn.Parameter(values.detach().clone())
        self.register_parameter("bias", None if bias is None else nn.Parameter(bias.detach().clone()))

    @classmethod
    def from_dense(cls, dense: Dense, mask: Tensor) -> SparseConvolution:
        """The kept weights of a dense layer; `mask` is True where a weight is kept."""
        padding = _padding(dense)
        if mask.shape != dense.weight.shape or padding is None:
            given = f"mask {tuple(mask.shape)}, padding {dense.padding}"
            raise UserError(given, f"the layer's {tuple(dense.weight.shape)}, and as many zeros on each side")
        window = Window(tuple(dense.stride), padding, tuple(dense.dilation), dense.groups)
        return cls(Filters.of(mask, window), dense.weight.detach()[mask.to(dense.weight.device)], dense.bias)

    @property
    def weight(self) -> Tensor:
        """(out, in / groups, *kernel), zero where pruned: for networks that read a layer's weight themselves."""
        mask = self.pattern.mask().to(self.values.device)
        return self.values.new_zeros(mask.shape).masked_scatter(mask, self.values)

    def forward(self, x: Tensor) -> Tensor:
        """(samples, in, *size) to (samples, out, *size), or the same without samples."""
        axes = len(self.pattern.shape) - 2
        if x.dim() == axes + 1:
            return self(x[None])[0]  # type: ignore[no-any-return]
        values = self._parameters["values"]
        assert values is not None
        if x.dim() != axes + 2 or x.shape[1] != self.in_channels or x.dtype is not values.dtype:
            given = f"an input of shape {tuple(x.shape)} and {x.dtype}"
            raise UserError(
                given, f"(samples, {self.in_channels}, {axes} axes) and the layer's type", "check the layer before"
            )
        return apply_chain(self.pattern.at(tuple(x.shape[2:])), x, (values, self._parameters["bias"]))

    def extra_repr(self) -> str:
        window = self.pattern.window
        sizes = f"{self.in_channels}, {self.out_channels}, kernel_size={self.pattern.shape[2:]}, stride={window.stride}"
        return f"{sizes}, groups={window.groups}, kept={self.pattern.kept}, bias={self.bias is not None}"
