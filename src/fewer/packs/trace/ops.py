"""The table from operations of torch's core set to those of a program."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fewer.core.errors import UserError
from fewer.packs.trace.layers import LAYERS
from fewer.packs.trace.record import Recorder
from fewer.packs.trace.recurrent import RECURRENT
from fewer.packs.trace.shapes import SHAPES

__all__ = ["convert"]

_TABLE = {**LAYERS, **SHAPES, **RECURRENT}
_WAYS_ROUND = {  # by a part of the operation's name
    "fft": "write it as a product with a matrix of cosines and sines",
    "view_as": "write complex numbers as two real ones",
    "grouped_mm": "compute every expert, and weigh what it says with 0 where it is not chosen",
    "embedding_bag": "write nn.Embedding and a mean or a sum over the words",
    "grid_sample": "resize with interpolate, or gather at places that are known beforehand",
    **dict.fromkeys(("histc", "bincount", "nonzero", "masked_select", "unique"),
                    "its size or content is known only when it runs: compare and sum, or choose with torch.where"),
    **dict.fromkeys(("rand", "bernoulli", "multinomial"), "give what is drawn as an input"),
}  # fmt: skip


def convert(recorder: Recorder, target: Any, arguments: Any, options: Any, shown: Any) -> Any:
    """Record one operation of torch and answer its value or values."""
    schema = getattr(target, "_schema", None)
    name = schema.name.removeprefix("aten::").removeprefix("fewer::") if schema is not None else str(target)
    converter = _TABLE.get(name)
    if schema is None or converter is None:
        way = next((way for part, way in _WAYS_ROUND.items() if part in name), "write it with layers and arithmetic")
        raise UserError(f"operation {name}", "one that a pack can hold", way)
    given = {}
    for place, argument in enumerate(schema.arguments):
        default = argument.default_value if argument.has_default_value() else None
        given[argument.name] = arguments[place] if place < len(arguments) else options.get(argument.name, default)
    return converter(recorder, SimpleNamespace(name=name, **{"self": None, **given}), shown)
