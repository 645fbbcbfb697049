"""The networks of one replica, called by name, and how weights are lent to them.

A module is only the shape of a network. Its own parameters serve when `state` is None (the plain engine); otherwise
the tensors in `state` stand in for them, which is how one module serves a whole cohort under vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

__all__ = ["NetworkSet", "Weights", "frozen", "recorded"]

Weights = Mapping[str, Tensor]  # parameters and buffers of one network, by their names in the module


@dataclass(frozen=True)
class NetworkSet:
    """`nets.critic(state, action)` runs the network called critic."""

    modules: Mapping[str, nn.Module]
    state: Mapping[str, Weights] | None = None
    training: bool = True
    on_call: Callable[[str, tuple[Any, ...]], None] | None = field(default=None, repr=False)
    divisor: float = 1.0  # every answer is divided by it: a temperature, where the answers are logits

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        modules: Mapping[str, nn.Module] = object.__getattribute__(self, "modules")
        if name not in modules:
            raise AttributeError(f"no network called {name!r}; there are {', '.join(modules)}")
        module = modules[name]

        def call(*arguments: Any, **options: Any) -> Tensor:
            if self.on_call is not None:
                self.on_call(name, arguments)
            if module.training is not self.training:
                module.train(self.training)
            if self.state is None:
                answer: Tensor = module(*arguments, **options)
            else:
                answer = functional_call(module, dict(self.state[name]), arguments, options)
            return answer if self.divisor == 1.0 else answer / self.divisor

        return call


def frozen(nets: NetworkSet, training: bool = False) -> NetworkSet:
    """The same networks with buffers that nobody sees change: for attacks, scores and predictions.

    In train mode a batch norm would otherwise move its running mean once per attack step.
    """
    if not training:
        return replace(nets, training=False)
    state = {
        name: {
            **dict(module.named_parameters()),
            **{key: buffer.clone() for key, buffer in module.named_buffers()},
            **{
                key: value.clone() if key in dict(module.named_buffers()) else value
                for key, value in (nets.state[name].items() if nets.state is not None else ())
            },
        }
        for name, module in nets.modules.items()
    }
    return replace(nets, state=state, training=True)


def recorded(nets: NetworkSet) -> tuple[NetworkSet, dict[str, tuple[Any, ...]]]:
    """The same networks, and a dict that fills with the arguments of each network's first call."""
    calls: dict[str, tuple[Any, ...]] = {}

    def note(name: str, arguments: tuple[Any, ...]) -> None:
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        if any(torch._C._functorch.is_functorch_wrapped_tensor(a) for a in tensors):
            return  # inside an attack's gradient: such a tensor dies with it; the network will be called again
        calls.setdefault(name, tuple(a.detach() if isinstance(a, torch.Tensor) else a for a in arguments))

    return replace(nets, on_call=note), calls
