"""Three pages from the source itself: every public name, every verb with its options, every setting."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any, Protocol

import fewer
from fewer.cli import offered, parser
from fewer.cli.verbs.tasks import SHARED, describe_any
from fewer.core.registry import systems
from fewer.core.settings import describe

from .records import markdown

__all__ = ["api", "settings", "verbs"]

_WORDS = {
    "Start here": ("train", "load", "audit", "pack", "open_pack", "prune", "to_torch", "Trained", "Pack"),
    "What a training is": ("Job", "Training", "Optimizer", "Pruning", "UserError"),
    "Predictors": ("predictor", "evaluate", "attacked", "combine", "Predict", "batches"),
    "Your own model": ("Classification", "Regression", "Pruner", "sklearn", "lightning", "transformers", "check"),
    "Your own task": ("Task", "Objective", "Copy", "Data", "TensorData", "Nets", "NetworkSet", "Noise",
                      "Attackable", "Classifier", "Featured", "Grouped", "Voting"),
    "Your own system": ("System", "Description", "Metric", "Service", "curves", "figure"),
    "A field's library": ("cellfree",),
}  # fmt: skip


def api() -> str:
    """Every name of the front door, by what one wants."""
    named = [name for names in _WORDS.values() for name in names]
    left = [name for name in fewer.__all__ if name not in named]
    parts = [
        "# Names in Python\n\nWhat `import fewer` offers, from its own docstrings; nothing else is promised to stay."
    ]
    for title, names in {**_WORDS, **({"More": left} if left else {})}.items():
        parts += [f"## {title}", *(_entry(name) for name in names)]
    return "\n\n".join(parts) + "\n"


def verbs() -> str:
    """Which verb one needs, then each with its options."""
    found = parser().verbs
    rows = [[f"[`fewer {name}`](#fewer-{name})", line] for name, (_, line) in offered().items()]
    parts = ["# Which verb do I need", markdown(["verb", "what for"], rows)]
    parts.append("Every verb takes `--help`, and `--json` for programs.")
    for name, (_, line) in offered().items():
        options = [_option(action) for action in found[name]._actions if action.dest not in ("help", "json")]
        examples = (found[name].epilog or "").removeprefix("examples:").strip("\n")
        shown = inspect.cleandoc(examples)
        parts += [f"## fewer {name}", f"{line[0].upper()}{line[1:]}."]
        parts += [markdown(["option", "meaning"], options)] if options else []
        parts += [f"```text\n{shown}\n```"] if shown else []
    return "\n\n".join(parts) + "\n"


def settings() -> str:
    """Every setting of every task and of what tasks share, with defaults and units."""
    columns = ["setting", "default", "unit", "meaning"]
    parts = [
        "# Every setting\n\nOf a task: `fewer train TASK --set NAME=VALUE`. A preset is words of `fewer train` under "
        "one name. `fewer tasks TASK` prints the same."
    ]
    for name, system in systems().items():
        parts += [
            f"## {name}",
            f"{system.line[0].upper()}{system.line[1:]}.",
            markdown(columns, _coded(describe_any(name))),
        ]
    for name in SHARED:
        parts += [f"## {name}", markdown(columns, _coded(describe_any(name)))]
    return "\n\n".join(parts) + "\n"


def _coded(rows: list[tuple[str, str, str, str]]) -> list[list[str]]:
    return [[f"`{name}`", f"`{default}`" if default else "", unit, _plain(line)] for name, default, unit, line in rows]


def _option(action: Any) -> list[str]:
    words = ", ".join(action.option_strings) or action.dest
    value = "" if action.nargs == 0 or not action.option_strings else f" {action.metavar or action.dest.upper()}"
    return [f"`{words}{value}`", _plain((action.help or "").replace("%%", "%"))]


def _plain(text: str) -> str:
    """A line of help as Markdown takes it."""
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def _entry(name: str) -> str:
    thing = getattr(fewer, name)
    parts = [f"### `fewer.{name}`"]
    if inspect.isfunction(thing) or _made_by_users(thing):
        parts.append(f"```text\n{_signature(name, thing)}\n```")
    parts.append(_doc(thing))
    members = list(_members(thing))
    if members:
        parts.append("\n".join(members))
    return "\n\n".join(part for part in parts if part)


def _made_by_users(thing: Any) -> bool:
    return inspect.isclass(thing) and Protocol not in thing.__mro__ and not inspect.isabstract(thing)


def _signature(name: str, thing: Any) -> str:
    """One line, or one line for each argument where that is too long."""
    signature = inspect.signature(thing)
    shown = [str(part).replace("'", "") for part in signature.parameters.values() if part.name != "self"]
    shown = [re.sub(r"<factory>|<[^>]*object at[^>]*>", "...", part) for part in shown]
    star = next((i for i, p in enumerate(signature.parameters.values()) if p.kind is p.KEYWORD_ONLY), None)
    if star is not None and not any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        shown.insert(star, "*")
    line = f"{name}({', '.join(shown)})"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + ")"


def _doc(thing: Any) -> str:
    if thing.__doc__ is None or not (inspect.isclass(thing) or inspect.isfunction(thing) or inspect.ismodule(thing)):
        return "Any networks by their names." if thing is Any else "A function from a batch to predictions."
    return inspect.cleandoc(thing.__doc__).replace("<", "&lt;")


def _members(thing: Any) -> Iterator[str]:
    if inspect.ismodule(thing):
        for name in getattr(thing, "__all__", ()):
            yield f"- `{thing.__name__.rpartition('.')[2]}.{name}`: {_first(getattr(thing, name))}"
    elif inspect.isclass(thing):
        helped = {name: line for name, _, _, line in describe(thing)} if dataclasses.is_dataclass(thing) else {}
        yield from (f"- `{name}`: {_plain(line)}" for name, line in helped.items() if line)
        for name, member in vars(thing).items():
            inner = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
            target = inner.fget if isinstance(inner, property) else inner
            if not name.startswith("_") and inspect.isfunction(target) and target.__doc__:
                call = "" if isinstance(inner, property) else "()"
                yield f"- `.{name}{call}`: {_first(target)}"


def _first(thing: Any) -> str:
    """The first paragraph of its docstring in one line."""
    text = inspect.getdoc(thing) or ""
    return (
        " ".join(text.split("\n\n")[0].split()).replace("<", "&lt;")
        if inspect.isroutine(thing) or inspect.isclass(thing)
        else ""
    )
