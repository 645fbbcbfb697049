"""Which element type each tensor of a pack gets, and how int8 rounds.

Weights and biases of layers may be rounded; everything else (normalisers, norms, tables) stays exact. Rounding to
int8 can use a calibration batch. The float network and the rounded one then run side by side, layer by layer: a
row's step and integers are chosen so that its output on the batch moves least, an error of one weight being made
good by its neighbours, and its bias takes up the mean of what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fewer.core.errors import UserError
from fewer.packs.file.tensors import scale_code, scale_of
from fewer.packs.program import Node, Program
from fewer.packs.runtime.layers import unfolded
from fewer.packs.runtime.ops import Array
from fewer.packs.runtime.recurrent import GATES
from fewer.packs.runtime.steps import step_of

__all__ = ["Calibration", "Stored", "quantized"]

Stored = tuple[str, Array, Array | None]  # kind, what is stored, the scale code of each row
# which inputs of an operation are its weights and biases
_LAYERS = {"linear": slice(1, 3), "conv": slice(1, 3), "embedding": slice(1), **dict.fromkeys(GATES, slice(1, 5))}
_MOST_KEPT = 256  # rows with more kept weights are rounded to nearest
_MOST_SAMPLES = 4096
_LARGEST = 90  # steps in the largest weight of a row: half a bit less a weight than 127, for 1.4 times the error
_SHRINK = 5  # steps tried below the one that fits the largest weight, an eighth of an octave each


@dataclass(frozen=True)
class Calibration:
    """A batch of each input, by network."""

    networks: Mapping[str, Program]
    given: Sequence[Array] | Mapping[str, Sequence[Array]]

    def batches(self) -> dict[str, Sequence[Array]]:
        """The inputs of each network that has any."""
        named = self.given if isinstance(self.given, Mapping) else {next(iter(self.networks)): self.given}
        if unknown := named.keys() - self.networks.keys():
            raise UserError(f"calibration of {', '.join(unknown)}", f"of {', '.join(self.networks)}")
        for name, batch in named.items():
            wanted = self.networks[name].inputs
            right = len(batch) == len(wanted) and all(
                np.shape(value)[1:] == item.shape for value, item in zip(batch, wanted)
            )
            if not right:
                raise UserError(
                    f"calibration of {name} with shapes {[np.shape(v) for v in batch]}", "a batch per input"
                )
        return dict(named)


def quantized(
    networks: Mapping[str, Program],
    tensors: Mapping[str, Array],
    masks: Mapping[str, Array],
    *,
    values: str,
    calibration: Calibration | None,
) -> dict[str, Stored]:
    """Kind and content of every tensor."""
    stored: dict[str, Stored] = {
        name: ("float32" if value.dtype == np.float32 else "raw", value, None) for name, value in tensors.items()
    }
    if values == "float32":
        return stored
    nodes = [node for program in networks.values() for node in program.nodes]
    layers = {name for node in nodes for name in node.inputs[_LAYERS.get(node.op, slice(0))]} & tensors.keys()
    rounded = dict(tensors)
    if values == "int8":
        rounding = _Rounding(rounded, masks)
        for name, batch in (calibration.batches() if calibration else {}).items():
            rounding.run(networks[name], batch)
        for name in layers - rounding.done.keys():
            rounding.nearest(name)
        return stored | {name: ("int8", *done) for name, done in rounding.done.items()}
    for name in layers:
        stored[name] = ("float16", _fits_float16(name, rounded[name]), None)
    return stored


def _fits_float16(name: str, value: Array) -> Array:
    with np.errstate(over="ignore"):
        lost = np.isinf(value.astype(np.float16)) & np.isfinite(value)
    if lost.any():
        raise UserError(f"{name} with {np.abs(value[lost]).max():g}", "at most 65504", "pack it as float32")
    return value


class _Rounding:
    """Rounds the weights of layers in `tensors`, and corrects their biases, one layer at a time."""

    def __init__(self, tensors: dict[str, Array], masks: Mapping[str, Array]) -> None:
        self.tensors, self.masks = tensors, masks
        self.done: dict[str, tuple[Array, Array]] = {}

    def run(self, program: Program, batch: Sequence[Array]) -> None:
        """Follow a calibration batch through the float and the rounded network."""
        exact = {item.name: np.asarray(v, dtype=item.dtype) for item, v in zip(program.inputs, batch)}
        count = len(next(iter(exact.values())))
        moved, original = dict(exact), dict(self.tensors)
        for node in program.nodes:
            layer = node.op in ("linear", "conv") and node.inputs[1] in self.tensors
            if layer and node.inputs[1] not in self.done:
                rows = _rows_of(node, moved[node.inputs[0]], self.tensors[node.inputs[1]])
                if rows is None:
                    self.nearest(node.inputs[1])
                else:
                    self.fitted(node.inputs[1], rows)
            step = step_of(node)
            exact[node.output] = step.run({**original, **exact}, count)
            moved[node.output] = step.run({**self.tensors, **moved}, count)
            if layer and len(node.inputs) > 2 and node.inputs[2] in self.tensors:
                error = exact[node.output] - moved[node.output]
                axes = tuple(range(error.ndim - 1)) if node.op == "linear" else (0, *range(2, error.ndim))
                shift = error.mean(axis=axes, dtype=np.float64).astype(np.float32)
                self.tensors[node.inputs[2]] = self.tensors[node.inputs[2]] + shift
                self.nearest(node.inputs[2])
                moved[node.output] = step.run({**self.tensors, **moved}, count)

    def nearest(self, name: str) -> None:
        """Steps that fit the largest number of each row, and the nearest multiples; a bias is one row."""
        weight = _finite(name, self.tensors[name])
        plane = weight.reshape(len(weight) if weight.ndim > 1 else 1, -1)
        codes = _largest_codes(name, plane)
        self._keep(name, np.clip(np.round(plane / scale_of(codes)[:, None]), -_LARGEST, _LARGEST), codes)

    def fitted(self, name: str, rows: Array) -> None:
        """Steps and multiples that change the layer's output least; `rows` are inputs of the layer."""
        weight = _finite(name, self.tensors[name])
        plane = weight.reshape(len(weight), -1).astype(np.float64)
        gram = rows.T @ rows / max(1, len(rows))
        gram += np.eye(len(gram)) * (1e-4 * np.trace(gram) / max(1, len(gram)) + 1e-12)
        mask = self.masks.get(name)
        kept = plane != 0 if mask is None else np.asarray(mask, dtype=np.bool_).reshape(plane.shape)
        codes = _largest_codes(name, plane)
        whole = np.zeros_like(plane)
        for i, row in enumerate(plane):
            places = np.flatnonzero(kept[i])
            if len(places):
                whole[i, places], codes[i] = _fitted_row(row[places], gram[np.ix_(places, places)], int(codes[i]))
        self._keep(name, whole, codes)

    def _keep(self, name: str, whole: Array, codes: Array) -> None:
        shape = self.tensors[name].shape
        self.done[name] = (whole.astype(np.int8).reshape(shape), codes)
        self.tensors[name] = (
            (whole.reshape(len(codes), -1) * scale_of(codes)[:, None]).astype(np.float32).reshape(shape)
        )


def _fitted_row(row: Array, gram: Array, code: int) -> tuple[Array, int]:
    best: tuple[float, Array, int] | None = None
    for candidate in range(max(0, code - _SHRINK), code + 1):
        step = float(scale_of(np.array(candidate)))
        whole = np.clip(np.round(row / step), -_LARGEST, _LARGEST)
        error = row - step * whole
        pull = gram @ error
        for place in list(range(len(row))) * 2 if len(row) <= _MOST_KEPT else ():
            shift = np.round(pull[place] / (gram[place, place] * step))
            shift = np.clip(whole[place] + shift, -_LARGEST, _LARGEST) - whole[place]
            if shift:
                whole[place] += shift
                error[place] -= step * shift
                pull -= gram[:, place] * (step * shift)
        loss = float(error @ pull)
        if best is None or loss < best[0]:
            best = (loss, whole, candidate)
    assert best is not None
    return best[1], best[2]


def _largest_codes(name: str, plane: Array) -> Array:
    codes = scale_code(np.abs(plane).max(axis=1, initial=0.0) / _LARGEST)
    if codes.max(initial=0) > 255:
        raise UserError(f"{name} with weights of {np.abs(plane).max():g}", "at most 15000", "pack it as float32")
    return codes


def _finite(name: str, weight: Array) -> Array:
    if not np.isfinite(weight).all():
        raise UserError(f"{name} with weights that are not finite", "finite weights", "pack it as float32")
    return weight


def _rows_of(node: Node, x: Array, weight: Array) -> Array | None:
    """The inputs of a layer as rows that its weight's rows multiply; None where a layer mixes them otherwise."""
    if node.op == "linear":
        rows = x.reshape(-1, x.shape[-1])
    else:
        options = node.attributes
        if options["transposed"] or options["groups"] != 1:
            return None
        pairs = [(0, 0), (0, 0), *((p, p) for p in options["padding"])]
        windows = unfolded(np.pad(x[:64], pairs), weight.shape[2:], options["stride"], options["dilation"])
        rows = np.moveaxis(windows, 1, weight.ndim - 1).reshape(-1, weight[0].size)
    every = max(1, len(rows) // _MOST_SAMPLES)
    return np.asarray(rows[::every], dtype=np.float64)
