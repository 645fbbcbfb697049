"""A program from torch: `torch.export` with any number of samples, then one node per operation.

Parameters keep their names, so that masks find them. What depends on constants alone is computed here, once; what
cannot be said in a program (an operation outside its list, a shape that depends on values) is refused by name.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.fx import Node as Step

from fewer.core.errors import UserError
from fewer.packs.program import Input, Node, Program, Time
from fewer.packs.runtime.ops import Array
from fewer.packs.trace.length import agrees, candidates, sequential
from fewer.packs.trace.ops import convert
from fewer.packs.trace.record import Constant, Recorder
from fewer.packs.trace.whole import kept_whole

__all__ = ["trace"]

# what torch would take apart although a program has it whole
_WHOLE = (
    "linear", "scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu", "roll", "instance_norm",
    "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "pixel_shuffle",
    "pixel_unshuffle", *(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)),
)  # fmt: skip
_FREE_TO_FOLD = 1 << 16  # numbers; a larger constant is folded only where it is no larger than what it is made from


class _Networks(nn.Module):
    """The named networks as one module, so that a function can call them by name."""

    def __init__(self, networks: Mapping[str, nn.Module], function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function
        for name, network in networks.items():
            self.add_module(name, network)

    def forward(self, *inputs: Tensor) -> Any:
        return self._function(self, *inputs)


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self._function(*inputs)


def trace(
    function: Callable[..., Any],
    inputs: Mapping[str, Tensor] | Sequence[Tensor],
    *,
    networks: Mapping[str, nn.Module] | None = None,
    any_length: bool = False,
) -> tuple[Program, dict[str, Array]]:
    """The program of a prediction, and its tensors by name.

    `function` is a module, or a callable; with `networks` it is called as `function(nets, *inputs)`, and the
    tensors are named "network.parameter". Inputs are examples with samples on axis 0, by name where names matter.
    With `any_length` networks with recurrent layers, attention or embeddings take sequences of other lengths than the
    example's wherever they can: axis 1 then is time.
    """
    named = dict(inputs) if isinstance(inputs, Mapping) else _default_names(list(inputs))
    if not named or not all(isinstance(value, Tensor) and value.ndim > 0 for value in named.values()):
        raise UserError("example inputs that are no tensors", "tensors with samples on axis 0")
    if networks is not None:
        module: nn.Module = _Networks(networks, function)
    else:
        module = function if isinstance(function, nn.Module) else _Function(function)
    if any_length and sequential(module):
        for names in candidates(named):
            if (found := _any_length(module, named, names)) is not None:
                return found
    return _converted(_exported(module, named), named)


def _any_length(
    module: nn.Module, inputs: Mapping[str, Tensor], names: tuple[str, ...]
) -> tuple[Program, dict[str, Array]] | None:
    """A program that takes other lengths too and is right about them; None where there is none."""
    try:
        found = _converted(_exported(module, inputs, names), inputs, names)
    except UserError:
        return None
    with _as_predicting(module):
        held = {name: value.detach().cpu() for name, value in inputs.items()}
        return found if agrees(module, held, *found) else None


def _default_names(inputs: list[Tensor]) -> dict[str, Tensor]:
    return {"x": inputs[0]} if len(inputs) == 1 else {f"x{i}": value for i, value in enumerate(inputs)}


@contextmanager
def _as_predicting(module: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, and none of the fused attention that export cannot open; put back afterwards."""
    modes = {part: part.training for part in module.modules()}
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    module.eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for part, training in modes.items():
            part.training = training


def _exported(module: nn.Module, inputs: Mapping[str, Tensor], timed: tuple[str, ...] = ()) -> Any:
    # export takes sizes 0 and 1 for fixed, so an example has at least two samples
    samples = tuple(
        (value if len(value) > 1 else torch.cat([value, value])).detach().cpu() for value in inputs.values()
    )
    varying = iter(_varying(inputs, timed))
    table = torch.export.default_decompositions()
    for name in _WHOLE:
        for overload in getattr(torch.ops.aten, name).overloads():
            table.pop(getattr(getattr(torch.ops.aten, name), overload), None)
    try:
        given = inspect.signature(module.forward).bind(*samples).arguments
    except TypeError as error:
        raise UserError(f"{len(samples)} inputs ({error})", "those that the prediction takes") from error
    shapes = {
        name: tuple(next(varying) for _ in value) if isinstance(value, tuple) else next(varying)
        for name, value in given.items()
    }
    with _as_predicting(module), kept_whole(module):
        try:
            exported = torch.export.export(module, samples, dynamic_shapes=shapes, strict=False)
            return exported.run_decompositions(table)
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            raise UserError(
                f"a prediction that torch.export cannot follow ({reason:.200})",
                "operations on any number of samples, without branches on values",
                "write x.shape[0] for len(x)",
            ) from error


def _varying(inputs: Mapping[str, Tensor], timed: tuple[str, ...]) -> list[dict[int, Any]]:
    """Axes whose sizes are not those of the example."""
    batch, time = torch.export.Dim("batch"), torch.export.Dim.DYNAMIC
    return [{0: batch, 1: time} if name in timed else {0: batch} for name in inputs]


def _known(exported: Any) -> dict[str, Constant]:
    """Parameters, buffers and constants by the name that the graph gives them."""
    found = {}
    for spec in exported.graph_signature.input_specs:
        if spec.kind.name in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            store = exported.constants if spec.target in exported.constants else exported.state_dict
            found[spec.arg.name] = Constant(store[spec.target].detach().cpu(), spec.target)
    return found


def _converted(
    exported: Any, inputs: Mapping[str, Tensor], timed: tuple[str, ...] = ()
) -> tuple[Program, dict[str, Array]]:
    recorder, values = Recorder(), dict[str, Any](_known(exported))
    names = iter(inputs)
    for step in exported.graph.nodes:
        if step.op == "placeholder" and step.name not in values:
            name = values[step.name] = next(names)
            recorder.shown[name] = step.meta["val"]
            if name in timed:
                recorder.name_time(step.meta["val"].shape[1])
        elif step.op == "call_function":
            values[step.name] = _value(step, values, recorder)
        elif step.op == "output":
            answers = [values[item.name] for item in step.args[0]]
    outputs = tuple(
        recorder.emit("reshape", answer, shape=list(answer.value.shape)) if isinstance(answer, Constant) else answer
        for answer in answers
    )
    entries = tuple(
        Input(name, tuple(value.shape[1:]), str(value.dtype).removeprefix("torch.")) for name, value in inputs.items()
    )
    time = Time(timed, recorder.longest(exported.range_constraints)) if timed else None
    program = Program(entries, tuple(_alive(recorder.nodes, outputs)), outputs, time)
    tensors = {name: _array(value) for name, value in recorder.tensors.items() if name in program.used()}
    program.check(set(tensors))
    return program, tensors


def _value(step: Step, values: Mapping[str, Any], recorder: Recorder) -> Any:
    shown: Any = step.meta.get("val")
    if any(word in str(step.target) for word in ("_assert_", "sym_constrain")):
        return None  # a check that export adds, without a value
    if isinstance(shown, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return shown
    arguments: Any = torch.fx.node.map_arg(step.args, lambda item: values[item.name])
    options: Any = torch.fx.node.map_arg(step.kwargs, lambda item: values[item.name])
    if getattr(step.target, "__name__", "") == "getitem":
        return arguments[0][arguments[1]]
    folded = _folded(step, arguments, options)
    if folded is not None:
        return folded
    made = convert(recorder, step.target, arguments, options, shown)
    for name, part in zip(made, shown) if isinstance(made, tuple) else [(made, shown)]:
        if isinstance(name, str):
            recorder.shown[name] = part
    return made


def _folded(step: Step, arguments: Any, options: Any) -> Any | None:
    """The value of a step on constants, unless computing it later is what keeps the file small."""
    leaves = torch.utils._pytree.tree_leaves((arguments, options))
    if any(isinstance(leaf, (str, torch.SymInt, torch.SymFloat)) and not _word(leaf) for leaf in leaves):
        return None
    constants = [leaf for leaf in leaves if isinstance(leaf, Constant)]
    plain = torch.utils._pytree.tree_map(
        # torch.export writes `view` where the slice of a constant would need `reshape`
        lambda leaf: leaf.value.contiguous() if isinstance(leaf, Constant) else leaf,
        (arguments, options),
    )
    try:
        with torch.no_grad():
            value = step.target(*plain[0], **plain[1])  # type: ignore[operator]
    except RuntimeError as error:
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"{step.target} on constants ({reason:.160})", "one that a pack can hold") from error
    parts = value if isinstance(value, (tuple, list)) else (value,)
    size = sum(part.numel() for part in parts if isinstance(part, Tensor))
    if size > max(_FREE_TO_FOLD, sum(item.value.numel() for item in constants)):
        return None
    turned = str(step.target) in ("aten.permute.default", "aten.t.default", "aten.transpose.int")
    if turned and constants[0].value.ndim == 2 and not torch.equal(value, constants[0].value):
        return Constant(value, transpose_of=constants[0].name)
    if isinstance(value, (tuple, list)):
        return tuple(Constant(part) for part in value)
    # views of one parameter stay that parameter
    same = len(constants) == 1 and value.shape == constants[0].value.shape and torch.equal(value, constants[0].value)
    return constants[0] if same and value.dtype == constants[0].value.dtype else Constant(value)


def _word(leaf: Any) -> bool:
    """Whether a string is an option of torch's rather than the name of a value."""
    return isinstance(leaf, str) and leaf in ("none", "tanh", "floor", "trunc", "mean", "sum")


def _alive(nodes: list[Node], outputs: tuple[str, ...]) -> list[Node]:
    """The nodes that the answer needs."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if node.output in needed:
            kept.append(node)
            needed.update(node.inputs)
    return kept[::-1]


def _array(value: Tensor) -> Array:
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.float()
    return np.ascontiguousarray(value.numpy()).reshape(tuple(value.shape))
