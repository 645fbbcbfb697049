"""Tensors as the protocol names them: datatypes, shapes with samples in front, and a model's metadata."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewer.packs.program import Input
from fewer.serve.fields import RequestField, of_inputs
from fewer.serve.models import Model

__all__ = ["PLATFORM", "datatype", "metadata", "tensor"]

PLATFORM = "fewer_pack"
_DATATYPES = {
    "bool": "BOOL",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def datatype(dtype: str) -> str:
    """The protocol's word for a type of numpy."""
    return _DATATYPES[np.dtype(dtype).name]


def tensor(item: Input) -> dict[str, Any]:
    """An input or output as metadata describes it; -1 is the number of samples, or of steps of a sequence."""
    longest = item.longest if isinstance(item, RequestField) else 0
    shape = (-1, *item.shape[1:]) if longest else item.shape
    return {"name": item.name, "datatype": datatype(item.dtype), "shape": [-1, *shape]}


def metadata(model: Model) -> dict[str, Any]:
    """What a client asks before it sends anything."""
    return {
        "name": model.name,
        "versions": [model.version],
        "platform": PLATFORM,
        "inputs": [tensor(field) for field in of_inputs(model.inputs, model.time)],
        "outputs": [tensor(model.output)],
        "parameters": {"task": model.task, "digest": f"sha256:{model.digest}"},
    }
