"""One of torch's functions computed by another one, wherever it is called while a block of code runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

__all__ = ["Instead"]


class Instead(TorchFunctionMode):
    """While it is on, calls of `function` go to `other`, which takes the same arguments."""

    def __init__(self, function: Callable[..., Any], other: Callable[..., Any]) -> None:
        super().__init__()
        self.function, self.other = function, other

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        called = self.other if function is self.function else function
        return called(*arguments, **(named or {}))
