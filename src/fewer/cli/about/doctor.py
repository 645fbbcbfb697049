"""`fewer doctor`: which kernels, threads, extras and GPU there are, and what is missing for what."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from typing import Any

from fewer.core.machine.requirements import extras
from fewer.core.machine.version import VERSION
from fewer.core.registry import systems

_FOR = {
    "train": "training, pruning, attacks, packing runs",
    "report": "pictures in reports",
    "export": "packs as ONNX",
    "sweep": "grids on a Ray cluster",
    "serve": "packs behind HTTP",
    "log": "TensorBoard",
}


def add(parser: argparse.ArgumentParser) -> None:
    """No arguments of its own."""


def run(arguments: argparse.Namespace) -> None:
    """Say it; whatever is missing, looking is no failure."""
    from fewer.cli.show import show

    found = examined()
    show(found if arguments.json else _told(found), arguments.json)


def examined() -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "fewer": VERSION,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "kernels": _kernels(),
        "threads": _threads(),
        "gpu": _gpu(),
        "extras": _extras(),
        "tools": {"C compiler": next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)},
    }


def _kernels() -> dict[str, Any]:
    """By what they are for: the instruction set in use, or None where Python does their work."""
    from fewer.packs.compiled import missing
    from fewer.packs.file import codec
    from fewer.packs.runtime import chain

    runtime = chain.kernels()
    return {
        "packs, predicting": runtime.chosen()[0] if runtime is not None else None,
        "packs, opening": "compiled" if codec.compiled() else None,
        "training on kept weights": _training_kernels(),
        "missing": missing() or None,
    }


def _training_kernels() -> str | None:
    try:
        from fewer.sparse import _train
    except ImportError:
        return None
    return str(_train.sets()[-1])


def _threads() -> dict[str, Any]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {"cores": usable, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}
    torch = _torch()
    return found | ({"training": torch.get_num_threads()} if torch is not None else {})


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _gpu() -> dict[str, Any]:
    """Its name, or why there is none."""
    torch = _torch()
    if torch is None:
        return {"name": None, "why": "torch is not installed; pip install 'fewer[train]'"}
    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory
        return {"name": torch.cuda.get_device_name(0), "count": torch.cuda.device_count(), "memory_bytes": memory}
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return {"name": None, "why": f"torch {torch.__version__} is built for processors alone"}
    return {"name": None, "why": "torch has CUDA, and no device or driver answers"}


def _extras() -> dict[str, dict[str, Any]]:
    """Those that somebody asks for; what is missing, and for what."""
    purposes = {
        **_FOR,
        **{system.install[len("fewer[") : -1]: system.line for system in systems().values() if system.install},
    }
    found = extras()
    return {
        name: {
            "for": purpose,
            "installed": {need.name: need.found for need in found[name].needs if need.found},
            "missing": found[name].trouble or None,
            "cure": f"pip install 'fewer[{name}]'" if found[name].trouble else None,
        }
        for name, purpose in purposes.items()
        if name in found
    }


def _told(found: dict[str, Any]) -> str:
    """For people: what there is, and at the end what to do."""
    kernels, threads, gpu = found["kernels"], found["threads"], found["gpu"]
    limit = f", OMP_NUM_THREADS={threads['OMP_NUM_THREADS']}" if threads["OMP_NUM_THREADS"] else ""
    training = f"{threads['training']} for training" if "training" in threads else "training is not installed"
    lines = [f"fewer {found['fewer']} on Python {found['python']}, {found['platform']}", "", "kernels"]
    lines += [f"  {name:<26} {value or 'none: slow'}" for name, value in kernels.items() if name != "missing"]
    lines += ["", f"{'threads':<28} {training}, {threads['cores']} cores{limit}"]
    lines += [f"{'GPU':<28} {gpu['name'] or 'none: ' + gpu['why']}"]
    lines += [
        f"{'C compiler':<28} {found['tools']['C compiler'] or 'none: kernels cannot be built here'}",
        "",
        "extras",
    ]
    lines += [
        f"  {name:<10} {'missing' if one['missing'] else 'ok':<8} {one['for']}" for name, one in found["extras"].items()
    ]
    if not found["extras"]:
        lines.append("  unknown: the package is not installed, only its source is there")
    cures = [kernels["missing"]] if kernels["missing"] else []
    cures += [f"{one['for']}: {one['missing']}; {one['cure']}" for one in found["extras"].values() if one["missing"]]
    return "\n".join([*lines, "", *(cures or ["Nothing is missing."])])
