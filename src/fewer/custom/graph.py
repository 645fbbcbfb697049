"""What the program of a kept network may say before torch reads it: names, sizes, and torch's own operations.

torch evaluates the sizes it reads, writes names into the source of a function and looks operations up from `torch`
downwards, so that any of these could be code. Whatever is not on a list here is refused.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch

__all__ = ["plain"]

_NAME = re.compile(r"[\w.]*")
_WORDS = re.compile(r"[\w.+:/ -]*")
_OPERATION = re.compile(r"torch\.ops(\.\w+){2,3}")
_SIZE_WORDS = re.compile(
    r"true|false|oo|int_oo|Symbol|Integer|Rational|Float|Add|Mul|Pow|Max|Min|Mod|Abs|Not|And|Or|Eq|Ne|Lt|Le|Gt|Ge"
    r"|floor|ceiling|Equality|Unequality|(Strict)?(Less|Greater)Than|(Floor|Clean|Ceil)Div|ModularIndexing|Where"
    r"|PythonMod|PowByNatural|FloatPow|(Ceil|Floor|Trunc|Round)To(Int|Float)|ToFloat|RoundDecimal|(Int|Float)TrueDiv"
    r"|[LR]Shift|Identity|IsNonOverlappingAndDenseIndicator"
)
_SIZE_PARTS = (ast.Expression, ast.Call, ast.keyword, ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.USub)
_PLAIN = re.compile(
    r"_operator\.(add|sub|mul|floordiv|truediv|mod|neg|pos|pow|abs|eq|ne|lt|le|gt|ge|and_|or_|not_|lshift|rshift|getitem)"
    r"|math\.(ceil|floor|trunc)|torch\.(_?sym_\w+)"
)
_NAMESPACES = ("aten", "torchvision")
_OF_GRAPHS = ("cond", "while_loop", "wrap_with_set_grad_enabled", "wrap_with_autocast")
_DROPPED = ("metadata", "guards_code")  # where it came from, which needs nobody, and conditions written in Python


def plain(graph: Any) -> Any:
    """The same without what is about its making; ValueError for anything that could be more than arithmetic."""
    return _checked(graph, "")


def _checked(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        for name in value:
            _match(_NAME, name)
        return {name: _emptied(part) if name in _DROPPED else _checked(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_checked(part, key) for part in value]
    if isinstance(value, str):
        _TEXTS.get(key, _name)(value)
    return value


def _emptied(value: Any) -> Any:
    return {} if isinstance(value, dict) else []


def _match(pattern: re.Pattern[str], text: str) -> None:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text[:80]!r} in a network's program")


def _name(text: str) -> None:
    _match(_NAME, text)


def _words(text: str) -> None:
    _match(_WORDS, text)


def _size(text: str) -> None:
    """An expression of whole numbers and names of sizes."""
    for node in ast.walk(ast.parse(text, mode="eval")):
        called = not isinstance(node, ast.Call) or isinstance(node.func, ast.Name)
        if not (isinstance(node, _SIZE_PARTS) and called):
            raise ValueError(f"{text[:80]!r} for a size")
        if isinstance(node, ast.Name):
            _match(_SIZE_WORDS, node.id)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            _match(_NAME, node.value)


def _operation(text: str) -> None:
    """One of torch's that computes: no file, no library, nothing that is reached on the way to it."""
    if _PLAIN.fullmatch(text):
        return
    _match(_OPERATION, text)
    found: Any = torch
    for part in text.removeprefix("torch.").split("."):
        found = getattr(found, part, None)
    if isinstance(found, torch._ops.OpOverload):
        files = any(argument.name == "filename" for argument in found._schema.arguments)
        if found.namespace in _NAMESPACES and not files:
            return
    if isinstance(found, torch._ops.HigherOrderOperator) and found.name() in _OF_GRAPHS:
        return
    raise ValueError(f"the operation {text[:80]!r}")


def _structure(text: str) -> None:
    """How inputs and outputs are put together: kinds of containers, and the names of what they hold."""
    waiting = [json.loads(text)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if part.get("type") == "collections.defaultdict" or "__enum__" in part:
                raise ValueError(f"{text[:80]!r} for inputs or outputs")
            waiting += [*part, *(v for k, v in part.items() if k != "context")]
            waiting += [json.loads(part["context"])] if isinstance(part.get("context"), str) else []
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str):
            _words(part)


_TEXTS: dict[str, Callable[[str], None]] = {
    "expr_str": _size,
    "target": _operation,
    "as_operator": _operation,
    "in_spec": _structure,
    "out_spec": _structure,
    "as_string": lambda text: None,  # given to an operation as it is, such as an equation
    "as_strings": lambda text: None,
    **dict.fromkeys(("torch_version", "fqn", "parameter_name", "buffer_name", "tensor_constant_name"), _words),
}
