"""How a user's network is called: with a tensor, several, or a dict of them; what it answers is one tensor.

Whole numbers cannot be moved a little. An adversary moves what a table makes of them instead: `Shifted` inputs carry
what is added to the answer of the network's first embedding.

Everything above calls networks with tensors in a row and gets a tensor back. Hooks do the rest, so that the network
and the names of its parameters stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fewer.core.errors import UserError

__all__ = ["Inputs", "Shifted", "Table", "adapted_", "in_a_row", "leaves", "table_of"]

Inputs = Tensor | dict[str, Tensor]  # samples on axis 0; several in a row are called x0, x1, ...
_SHIFT = "_shift"  # where a table finds what is added to its answer, during a call
_IN_A_ROW = re.compile(r"x\d+")


class Shifted(NamedTuple):
    """Inputs of whole numbers, and what is added where they have become vectors."""

    x: Any
    shift: Tensor  # (batch, ..., features)


class Table(NamedTuple):
    """The embedding that reads a network's first whole numbers."""

    path: str
    shape: tuple[int, ...]  # of its answer to one sample


def in_a_row(inputs: tuple[Tensor, ...] | list[Tensor]) -> dict[str, Tensor]:
    """Several inputs without names."""
    return {f"x{number}": tensor for number, tensor in enumerate(inputs)}


def leaves(inputs: Any) -> tuple[Tensor, ...]:
    """The tensors that a network is called with."""
    if isinstance(inputs, Shifted):
        return (*leaves(inputs.x), inputs.shift)
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs.values())


def _answer_of(answer: Any) -> Tensor:
    """The tensor of an answer: itself, its `logits`, or the first of several."""
    if isinstance(answer, Mapping):
        answer = answer.get("logits", next(iter(answer.values()), None))
    elif hasattr(answer, "logits"):
        answer = answer.logits
    elif isinstance(answer, tuple | list) and answer:
        answer = answer[0]
    if not isinstance(answer, Tensor):
        raise UserError(f"a network that answers {type(answer).__name__}", "a tensor, or something with .logits")
    return answer


def adapted_(module: nn.Module, inputs: Inputs, table: Table | None = None) -> nn.Module:
    """The network, to be called with these inputs in a row, and maybe a shift of its table, and to answer a tensor."""
    by_name = isinstance(inputs, dict) and not all(map(_IN_A_ROW.fullmatch, inputs))
    names = tuple(inputs) if by_name else ()
    if table is not None:
        module.get_submodule(table.path).register_forward_hook(_shifted)
    if by_name or table is not None:
        before = partial(_before, names, len(leaves(inputs)), table.path if table else "")
        module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(partial(_after, table.path if table else ""))
    return module


def _before(names: tuple[str, ...], count: int, table: str, module: nn.Module, arguments: Any, options: Any) -> Any:
    if table:
        vars(module.get_submodule(table))[_SHIFT] = arguments[count] if len(arguments) > count else None
    if names:
        return (), {**options, **dict(zip(names, arguments[:count]))}
    return arguments[:count], options


def _after(table: str, module: nn.Module, _arguments: Any, answer: Any) -> Tensor:
    if table:
        vars(module.get_submodule(table))[_SHIFT] = None
    return _answer_of(answer)


def _shifted(module: nn.Module, _arguments: Any, answer: Tensor) -> Tensor:
    shift = vars(module).get(_SHIFT)
    return answer if shift is None else answer + shift


def table_of(module: nn.Module, given: tuple[Tensor, ...]) -> Table | None:
    """The first embedding that a network asks with these inputs; None where it asks none with a row a sample."""
    found: list[Table] = []

    def note(path: str, _module: nn.Module, _arguments: Any, answer: Tensor) -> None:
        if len(answer) == len(given[0]):
            found.append(Table(path, tuple(answer.shape[1:])))

    tables = [(path, part) for path, part in module.named_modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)]
    hooks = [part.register_forward_hook(partial(note, path)) for path, part in tables]
    with torch.no_grad():
        module(*given)
    for hook in hooks:
        hook.remove()
    return found[0] if found else None
