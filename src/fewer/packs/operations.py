"""The closed list of operations that a program may use, each with its inputs and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["BINARY", "OPERATIONS", "REDUCE", "UNARY", "Signature"]

UNARY = (
    "relu tanh sigmoid exp expm1 log log1p sqrt rsqrt neg abs reciprocal sin cos tan asin acos atan sinh cosh asinh "
    "acosh atanh erf floor ceil round trunc sign logical_not"
)
BINARY = (
    "add sub mul div pow maximum minimum atan2 fmod remainder floor_divide eq ne lt le gt ge logical_and logical_or "
    "logical_xor"
)
REDUCE = "sum mean amax amin prod any all"


@dataclass(frozen=True)
class Signature:
    """How many inputs an operation takes, and its attributes with their kinds; a kind ending in ? may be left out."""

    fewest: int
    most: int
    attributes: Mapping[str, str] = field(default_factory=dict)


OPERATIONS: dict[str, Signature] = {
    **{name: Signature(1, 1) for name in UNARY.split()},
    # a binary operation may have a number on one side
    **{name: Signature(1, 2, {"left": "number?", "right": "number?"}) for name in BINARY.split()},
    **{name: Signature(1, 1, {"axes": "ints", "keep": "bool"}) for name in REDUCE.split()},
    **{name: Signature(1, 1, {"axis": "int?", "keep": "bool"}) for name in ("argmax", "argmin")},
    **{name: Signature(1, 1, {"axis": "int"}) for name in ("softmax", "log_softmax", "cumsum")},
    **{name: Signature(1, 1, {"axis": "int", "descending": "bool"}) for name in ("sort", "argsort")},
    "var": Signature(1, 1, {"axes": "ints", "keep": "bool", "correction": "number"}),
    "gelu": Signature(1, 1, {"approximate": "text"}),
    "leaky_relu": Signature(1, 1, {"slope": "number"}),
    "elu": Signature(1, 1, {"alpha": "number", "scale": "number", "input_scale": "number"}),
    "clamp": Signature(1, 1, {"minimum": "number?", "maximum": "number?"}),
    "cast": Signature(1, 1, {"dtype": "text"}),
    "where": Signature(1, 3, {"left": "number?", "right": "number?"}),
    "linear": Signature(2, 3),
    "matmul": Signature(2, 2),
    "embedding": Signature(2, 2),
    # inputs over time (time, samples, features), two weights, two biases, perhaps a first state; see runtime/recurrent
    "rnn": Signature(5, 6, {"reverse": "bool", "activation": "text"}),
    "gru": Signature(5, 6, {"reverse": "bool"}),
    "lstm": Signature(5, 8, {"reverse": "bool", "answer": "text"}),
    "attention": Signature(3, 4, {"scale": "number?", "causal": "bool"}),
    "conv": Signature(
        2,
        3,
        {
            "stride": "ints",
            "padding": "ints",
            "dilation": "ints",
            "groups": "int",
            "transposed": "bool",
            "output_padding": "ints",
        },
    ),
    "batch_norm": Signature(3, 5, {"epsilon": "number"}),
    "layer_norm": Signature(1, 3, {"axes": "int", "epsilon": "number"}),
    "group_norm": Signature(1, 3, {"groups": "int", "epsilon": "number"}),
    "max_pool": Signature(
        1, 1, {"kernel": "ints", "stride": "ints", "padding": "ints", "dilation": "ints", "ceil": "bool"}
    ),
    "avg_pool": Signature(
        1, 1, {"kernel": "ints", "stride": "ints", "padding": "ints", "ceil": "bool", "count_padding": "bool"}
    ),
    "adaptive_avg_pool": Signature(1, 1, {"size": "ints"}),
    "adaptive_max_pool": Signature(1, 1, {"size": "ints"}),
    "interpolate": Signature(1, 1, {"size": "ints", "mode": "text", "align_corners": "bool", "scales": "numbers?"}),
    "reshape": Signature(1, 1, {"shape": "shape"}),
    "expand": Signature(1, 1, {"shape": "shape"}),
    "full": Signature(0, 0, {"shape": "shape", "value": "number", "dtype": "text"}),
    "arange": Signature(0, 0, {"shape": "shape", "start": "number", "step": "number", "dtype": "text"}),
    "permute": Signature(1, 1, {"axes": "ints"}),
    "concat": Signature(1, 4096, {"axis": "int"}),
    "slice": Signature(1, 1, {"axis": "int", "start": "int", "stop": "dimension?", "step": "int"}),
    "select": Signature(1, 1, {"axis": "int", "index": "int"}),
    "put_slice": Signature(2, 2, {"axis": "int", "start": "int", "stop": "int?", "step": "int"}),
    "pad": Signature(1, 1, {"widths": "ints", "mode": "text", "value": "number"}),
    "roll": Signature(1, 1, {"shifts": "ints", "axes": "ints"}),
    "flip": Signature(1, 1, {"axes": "ints"}),
    "gather": Signature(2, 2, {"axis": "int"}),
    "index_select": Signature(2, 2, {"axis": "int"}),
    "index": Signature(2, 9, {"axes": "ints"}),
    "index_put": Signature(3, 10, {"axes": "ints", "add": "bool"}),
    "scatter": Signature(3, 3, {"axis": "int", "mode": "text"}),
    "scatter_add": Signature(3, 3, {"axis": "int"}),
    "index_add": Signature(3, 3, {"axis": "int"}),
}
