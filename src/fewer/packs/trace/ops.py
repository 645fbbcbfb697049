"""The table from operations of torch's core set to those of a program."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fewer.core.errors import UserError
from fewer.packs.trace.layers import LAYERS
from fewer.packs.trace.record import Recorder
from fewer.packs.trace.shapes import SHAPES

__all__ = ["convert"]

_TABLE = {**LAYERS, **SHAPES}


def convert(recorder: Recorder, target: Any, arguments: Any, options: Any, shown: Any) -> Any:
    """Record one operation of torch and answer its value or values."""
    schema = getattr(target, "_schema", None)
    name = schema.name.removeprefix("aten::") if schema is not None else str(target)
    converter = _TABLE.get(name)
    if schema is None or converter is None:
        raise UserError(f"operation {name}", "one that a pack can hold", "write it with ordinary layers and arithmetic")
    given = {}
    for place, argument in enumerate(schema.arguments):
        default = argument.default_value if argument.has_default_value() else None
        given[argument.name] = arguments[place] if place < len(arguments) else options.get(argument.name, default)
    return converter(recorder, SimpleNamespace(name=name, **{"self": None, **given}), shown)
