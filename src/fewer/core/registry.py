"""Tasks by name, imported only when asked for: torch, MONAI and MuJoCo are heavy, `fewer --help` is not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewer.core.errors import UserError
from fewer.core.settings import from_text, nearest

if TYPE_CHECKING:
    from fewer.core.task import Task

__all__ = ["TASKS", "make", "task_class"]

TASKS: dict[str, tuple[str, str]] = {
    "vision": ("fewer.tasks.vision.task:Vision", "small classifiers that withstand adversarial images"),
    "cellfree": (
        "fewer.tasks.cellfree.task:CellFree",
        "the access points that should serve a phone, from a few measurements",
    ),
    "control": (
        "fewer.tasks.control.task:Control",
        "policies from logged data, with most of their weights removed before training",
    ),
    "nowcast": ("fewer.tasks.nowcast.task:Nowcast", "eight hours of rain from one hour of satellite images"),
}


def task_class(name: str) -> tuple[type[Task[Any]], type[Any] | None]:
    """The class behind a name or a `module:Class`, and its settings' class if it has one."""
    if name in TASKS:
        place = TASKS[name][0]
    elif ":" in name:
        place = name
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
    else:
        raise UserError(f"task {name!r}", "a task's name or module:Class", nearest(name, list(TASKS)))
    module_name, class_name = place.split(":", 1)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        extra = f"; pip install 'fewer[{name}]'" if name in TASKS else ""
        raise UserError(f"{place} ({error})", "an importable module", f"is it on the path?{extra}") from None
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        names = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise UserError(f"{place}", f"a class in {module_name}", nearest(class_name, names))
    from fewer.core.task import Task

    if not issubclass(found, Task):
        raise UserError(f"{place}", "a class derived from fewer.core.task.Task")
    return found, getattr(found, "Settings", None) or getattr(module, "Settings", None)


def make(name: str, pairs: Sequence[str] = ()) -> Task[Any]:
    """A task with its defaults, changed by `key=value` words."""
    kind, settings = task_class(name)
    if settings is None:
        if pairs:
            raise UserError(f"--set {pairs[0]}", f"no settings: {name} has none", "leave --set out")
        return kind()
    return kind(from_text(settings, pairs))  # type: ignore[call-arg]
