"""Systems and tasks by name, imported only when asked for: torch, MONAI and MuJoCo are heavy, `fewer --help` is not."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fewer.core.errors import MissingExtra, UserError
from fewer.core.settings import from_text, nearest
from fewer.core.system import Description, System, imported

if TYPE_CHECKING:
    from fewer.core.task import Task

__all__ = ["SYSTEMS", "checked_settings", "make", "system_of", "systems", "task_class"]

# a folder and a line here make a first-class system; installed packages join by entry points of group `fewer.systems`
SYSTEMS = {
    "vision": "fewer.systems.vision.system:SYSTEM",
    "cellfree": "fewer.systems.cellfree.system:SYSTEM",
    "control": "fewer.systems.control.system:SYSTEM",
    "nowcast": "fewer.systems.nowcast.system:SYSTEM",
}


@functools.cache
def systems() -> dict[str, System]:
    """All there are, ours first, then those of installed packages by name."""
    found = {name: imported(place) for name, place in SYSTEMS.items()}
    for point in sorted(entry_points(group="fewer.systems"), key=lambda point: point.name):
        if point.name in found:
            continue
        try:
            found[point.name] = imported(point.value)
        except Exception as error:  # somebody else's package: what is broken there is no reason to stop here
            print(
                f"fewer: system {point.name!r} is left out: {point.value} cannot be imported ({error})", file=sys.stderr
            )
    return found


def system_of(task: str) -> System:
    """The system of that name, or what can be said of anybody's task."""
    if task in systems():
        return systems()[task]
    return System("a task of your own", task, Description(task, "A task of your own."))


def task_class(name: str) -> tuple[type[Task[Any]], type[Any] | None]:
    """The class behind a name or a `module:Class`, and its settings' class if it has one."""
    if name in systems():
        place = systems()[name].task
    elif ":" in name:
        place = name
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
    else:
        raise UserError(f"task {name!r}", "a task's name or module:Class", nearest(name, list(systems())))
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
        if name in systems():
            cure = f"pip install '{systems()[name].install}'"
            raise MissingExtra(f"{place} ({error})", "an importable module", cure) from None
        if error.name is not None and not f"{module_name}.".startswith(f"{error.name}."):
            cure = f"{module_name} needs {error.name}: install it"
        raise UserError(f"{place} ({error})", "an importable module", cure) from None
    except (Exception, SystemExit) as error:
        from fewer.core.user_code import blame

        raise UserError(f"{place}, whose import raised {blame(error)}", "an importable module") from error


def checked_settings(name: str, pairs: Sequence[str]) -> Any:
    """A task's settings from `key=value` words; None where it has none."""
    _, settings = task_class(name)
    if settings is not None:
        return from_text(settings, pairs)
    if pairs:
        raise UserError(f"setting {pairs[0]}", f"no settings: {name} has none", "leave it out")
    return None


def make(name: str, pairs: Sequence[str] = ()) -> Task[Any]:
    """A task with its defaults, changed by `key=value` words."""
    kind, _ = task_class(name)
    if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
        raise UserError(f"{name} without {', '.join(lacking)}", "a task with all its methods", "see fewer/core/task.py")
    checked = checked_settings(name, pairs)
    given: tuple[Any, ...] = () if checked is None else (checked,)
    if name in systems():
        return kind(*given)
    from fewer.core.user_code import called

    return called(lambda: kind(*given), name, "a class that can be made from its settings alone")
