"""Tasks by name, imported only when asked for: torch, MONAI and MuJoCo are heavy, `fewer --help` is not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fewer.core.errors import UserError
from fewer.core.settings import from_text, nearest

if TYPE_CHECKING:
    from fewer.core.task import Task

__all__ = ["TASKS", "make", "task_class"]

TASKS: dict[str, tuple[str, str]] = {
    "vision": ("fewer.systems.vision.task.task:Vision", "small classifiers that withstand adversarial images"),
    "cellfree": (
        "fewer.systems.cellfree.task.task:CellFree",
        "the access points that should serve a phone, from a few measurements",
    ),
    "control": (
        "fewer.systems.control.task.task:Control",
        "policies from logged data, with most of their weights removed before training",
    ),
    "nowcast": ("fewer.systems.nowcast.task.task:Nowcast", "eight hours of rain from one hour of satellite images"),
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
    module_name, _, class_name = place.partition(":")
    if not module_name or not class_name:
        raise UserError(f"task {name!r}", "module:Class, such as mine:Mine")
    if module_name.endswith(".py"):
        raise UserError(f"task {name!r}", "a module without .py", f"write {Path(module_name).stem}:{class_name}")
    module = _imported(module_name, place, name)
    from fewer.core.task import Task

    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        kinds = {key: value for key, value in vars(module).items() if isinstance(value, type)}
        names = [key for key, value in kinds.items() if issubclass(value, Task) and value.__module__ == module_name]
        raise UserError(
            f"{place}", f"a class in {module_name}", nearest(class_name, names) if names else "it has no task"
        )
    if not issubclass(found, Task):
        raise UserError(f"{place}", "a class derived from fewer.core.task.Task")
    return found, getattr(found, "Settings", None) or getattr(module, "Settings", None)


def _imported(module_name: str, place: str, name: str) -> ModuleType:
    """The module; whatever goes wrong inside of it is the user's to mend, in one line."""
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        cure = "is it on the path? Commands run in the folder where the module lies"
        if name in TASKS:
            cure = f"pip install 'fewer[{name}]'"
        elif error.name is not None and not f"{module_name}.".startswith(f"{error.name}."):
            cure = f"{module_name} needs {error.name}: install it"
        raise UserError(f"{place} ({error})", "an importable module", cure) from None
    except (Exception, SystemExit) as error:
        from fewer.core.user_code import blame

        raise UserError(f"{place}, whose import raised {blame(error)}", "an importable module") from error


def make(name: str, pairs: Sequence[str] = ()) -> Task[Any]:
    """A task with its defaults, changed by `key=value` words."""
    kind, settings = task_class(name)
    if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
        raise UserError(f"{name} without {', '.join(lacking)}", "a task with all its methods", "see fewer/core/task.py")
    if settings is None and pairs:
        raise UserError(f"--set {pairs[0]}", f"no settings: {name} has none", "leave --set out")
    given: tuple[Any, ...] = () if settings is None else (from_text(settings, pairs),)
    if name in TASKS:
        return kind(*given)
    from fewer.core.user_code import called

    return called(lambda: kind(*given), name, "a class that can be made from its settings alone")
