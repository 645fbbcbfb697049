"""The control paper's Table 1 and Figure 4: bytes of pruned networks by format.

The paper saves `torch.to_sparse()` tensors, whose positions are two 64-bit integers a weight; beside them stand our
packs of the same networks.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.engines.state import fresh_modules
from fewer.packs.pack import write
from fewer.packs.trace.trace import trace
from fewer.pruning.pruning import Pruning, mask_for
from fewer.report.figure import png
from fewer.studies.order import Order
from fewer.studies.plot import pyplot
from fewer.studies.study import Result
from fewer.systems.control.studies.training.scales import file_of
from fewer.systems.control.task.settings import Settings
from fewer.systems.control.task.task import Control

__all__ = ["about", "fig4", "masks_of", "setting", "table1", "task_of"]

Modules = Mapping[str, nn.Module]
Masks = Mapping[str, Mapping[str, Tensor]]

PARTS = {"actor": ("actor",), "critic": ("critic", "critic2"), "VAE": ("encoder", "decoder")}
PAPER = {  # decimal megabytes
    ("actor", "dense"): 0.5287, ("critic", "dense"): 1.04492, ("VAE", "dense"): 4.7621,
    ("actor", "dense as COO"): 2.6318, ("critic", "dense as COO"): 5.2035, ("VAE", "dense as COO"): 23.7739,
    ("actor", "GraSP 95 % as COO"): 0.14099, ("critic", "GraSP 95 % as COO"): 0.2768,
    ("VAE", "GraSP 95 % as COO"): 1.2122,
    ("actor", "SNIP 95 % as COO"): 0.14297, ("critic", "SNIP 95 % as COO"): 0.2824, ("VAE", "SNIP 95 % as COO"): 1.2303,
}  # fmt: skip
ENVIRONMENT, SAMPLES = "halfcheetah", 2000
SPARSITIES = {"control/table1": (0.95,), "control/fig4": (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)}


def about(order: Order) -> dict[str, Any]:
    """Every setting that the order stands for."""
    return {
        "environment": ENVIRONMENT, "data": "expert file" if order.data else f"own expert, {SAMPLES} steps",
        "normalised observations": order.scale != "paper", "sparsities": list(SPARSITIES.get(order.study, ())),
        "seeds": [0], "unchecked masks": order.scale == "paper",
    }  # fmt: skip


def setting(order: Order) -> str:
    """The middle of a title: dimensions, data, observations."""
    logs = "the user's expert logs" if order.data else "own expert"
    return f"HalfCheetah-v5 (the paper: v2), {logs}, {'raw' if order.scale == 'paper' else 'normalised'} observations"


def task_of(order: Order) -> Control:
    """HalfCheetah's dimensions, which are Walker2d's too; few transitions of ours, as scoring takes a hundred."""
    data = str(file_of(order.data, ENVIRONMENT, "expert")) if order.data else ""
    raw: dict[str, Any] = {"normalise": False, "twin": "copy"} if order.scale == "paper" else {}
    return Control(Settings(environment=ENVIRONMENT, transitions=SAMPLES, data=data, **raw))


def _saved(tensors: Mapping[str, Tensor]) -> int:
    buffer = io.BytesIO()
    torch.save(dict(tensors), buffer)
    return buffer.getbuffer().nbytes


def _tensors(modules: Modules, names: Sequence[str], masks: Masks) -> dict[str, Tensor]:
    """Weights and biases of some networks, pruned ones zero."""
    found = {}
    for name in names:
        for key, value in modules[name].state_dict().items():
            mask = masks.get(name, {}).get(key)
            found[f"{name}.{key}"] = value if mask is None else value * mask
    return found


def _coordinates(tensors: Mapping[str, Tensor]) -> int:
    """As the paper saves them: every tensor, biases too, as coordinates and values."""
    return _saved({key: tensor.to_sparse() for key, tensor in tensors.items()})


def _packed(modules: Modules, part: str, masks: Masks, values: str, folder: Path) -> int:
    """Our file of the same networks, with what is needed to run them."""
    names, task = PARTS[part], _task_widths(modules)
    observation, action = torch.zeros(2, task[0]), torch.zeros(2, task[1])

    def run(nets: Any, observation: Tensor, action: Tensor) -> Tensor:
        if part == "VAE":
            latent = nets.encoder(observation, action)
            answer: Tensor = nets.decoder(observation, latent[:, : latent.shape[1] // 2])
        elif part == "critic":
            answer = torch.stack([nets.critic(observation, action), nets.critic2(observation, action)], 1)
        else:
            answer = nets.actor(observation, action)
        return answer

    inputs = {"observation": observation, "action": action}
    program, tensors = trace(run, inputs, networks={name: modules[name] for name in names})
    chosen = {
        f"{name}.{key}": mask.numpy()
        for name in names
        for key, mask in masks.get(name, {}).items()
        if f"{name}.{key}" in tensors
    }
    random = torch.Generator().manual_seed(0)
    calibration = [torch.randn(256, width, generator=random).numpy() for width in task] if values == "int8" else None
    return write(folder / "net.pack", program, tensors, masks=chosen, values=values, calibration=calibration)


def _task_widths(modules: Modules) -> tuple[int, int]:
    both = modules["actor"].get_parameter("body.0.weight").shape[1]
    actions = len(modules["actor"].get_parameter("body.4.bias"))
    return both - actions, actions


def masks_of(task: Control, modules: Modules, method: str, sparsity: float, seed: int = 0) -> Masks:
    """What a criterion keeps; raw observations, the literal reading, are taken as they come."""
    pruning = Pruning(method, sparsity, unchecked=not task.settings.normalise)
    return mask_for(task, modules, pruning, seed=seed)


def table1(order: Order) -> Result:
    """Bytes of every network in the paper's formats and in ours."""
    log = order.log
    task = task_of(order)
    modules = fresh_modules(task, 0)
    masks = {method: masks_of(task, modules, method.lower(), 0.95) for method in ("SNIP", "GraSP")}
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for part, names in PARTS.items():
            dense = _saved(_tensors(modules, names, {}))
            ours = {"dense": dense, "dense as COO": _coordinates(_tensors(modules, names, {}))}
            for method, found in masks.items():
                ours[f"{method} 95 % as COO"] = _coordinates(_tensors(modules, names, found))
                for values in ("float32", "float16", "int8"):
                    ours[f"{method} 95 %, our pack, {values}"] = _packed(modules, part, found, values, Path(folder))
            for what, size in ours.items():
                paper = PAPER.get((part, what))
                away = "" if paper is None else f"{100 * (size / 1e6 / paper - 1):+.1f}"
                rows.append(
                    [part, what, "" if paper is None else paper, f"{size / 1e6:.4f}", away, f"{dense / size:.1f}"]
                )
                log(" | ".join(map(str, rows[-1])))
    return Result(
        title=f"Table 1: files of the networks, decimal megabytes; {setting(order)}, one seed",
        columns=["network", "format", "paper", "ours", "% apart", "times smaller than dense"],
        rows=rows,
        notes=[
            "First weights, before training. Biases are not pruned. A pack also holds the program that runs it.",
            "The critic is both critics. The paper speaks of files 4 times smaller.",
        ],
    )  # fmt: skip


def fig4(order: Order) -> Result:
    """Megabytes of all networks together against sparsity: dense, coordinates, our pack."""
    log = order.log
    task = task_of(order)
    modules = fresh_modules(task, 0)
    names = [name for part in PARTS.values() for name in part]
    dense = _saved(_tensors(modules, names, {}))
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for sparsity in SPARSITIES[order.study]:
            masks = masks_of(task, modules, "snip", sparsity)
            coordinates = _coordinates(_tensors(modules, names, masks))
            pack = sum(_packed(modules, part, masks, "float32", Path(folder)) for part in PARTS)
            rows.append([f"{100 * sparsity:g}", *(f"{size / 1e6:.3f}" for size in (dense, coordinates, pack))])
            log(" | ".join(map(str, rows[-1])))
    return Result(
        title=f"Figure 4: megabytes of all networks against sparsity, SNIP; {setting(order)}, one seed",
        columns=["removed %", "dense", "coordinates (paper)", "our pack, lossless"],
        rows=rows,
        notes=[
            "First weights, before training. The paper draws these lines without numbers; Table 1 has those at 95 %."
        ],
        figures={"control-fig4.png": _draw_sizes(rows)},
    )


def _draw_sizes(rows: Sequence[Sequence[Any]]) -> bytes:
    figure, axis = pyplot().subplots(figsize=(7, 4.5), layout="constrained")
    for column, label in ((1, "dense"), (2, "coordinates"), (3, "our pack")):
        axis.plot([float(row[0]) for row in rows], [float(row[column]) for row in rows], "o-", label=label)
    axis.set(xlabel="weights removed, %", ylabel="megabytes", yscale="log")
    axis.legend()
    return png(figure)
