"""A preset: words of `fewer train` under one name, such as a paper's own training; a system says which it has.

It is expanded before a job is made, so that a run folder holds what was trained and no name that could change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewer.core.errors import UserError
from fewer.core.registry import system_of, task_class
from fewer.core.settings import nearest
from fewer.pruning.recipe import dense

__all__ = ["expanded", "pairs_of", "spelled", "text_of"]


def expanded(task: str, words: Mapping[str, Any]) -> dict[str, Any]:
    """The words that are given, and under them those of their preset; settings are merged key by key."""
    given = {key: value for key, value in words.items() if value is not None}
    if "preset" not in given:
        return given
    own = dict(_preset(task, str(given.pop("preset"))))
    settings = {pair.partition("=")[0].strip(): pair for pair in pairs_of(own.pop("settings", ()))}
    changed = pairs_of(given.pop("settings", ()))
    for pair in changed:
        settings.pop(pair.partition("=")[0].strip(), None)
    under = {key: value for key, value in own.items() if not _replaced(key, given)}
    return {**under, **given, "settings": (*settings.values(), *changed)}


def _preset(task: str, name: str) -> Mapping[str, Any]:
    presets = system_of(task).presets
    if not presets:
        task_class(task)  # a task that is not there is told as such
        raise UserError(f"preset {name!r} of {task}", "a task that has presets", "leave it out")
    if name not in presets:
        raise UserError(f"preset {name!r}", f"one that `fewer tasks {task}` lists", nearest(name, list(presets)))
    return presets[name]


def _replaced(key: str, given: Mapping[str, Any]) -> bool:
    """Whether a preset's word gives way: to the same word, to its whole group, or to a pruning that says it too."""
    group, dot, _ = key.partition(".")
    if key in given or (dot and group in given):
        return True
    if key != "sparsity" or not {"prune", "prune.sparsity"} & given.keys():
        return False
    prune = str(given.get("prune", ""))
    return "prune.sparsity" in given or dense(prune) or "sparsity=" in prune


def spelled(preset: Mapping[str, Any]) -> str:
    """As one would type it without its name."""
    options = [f"--set {pair}" for pair in pairs_of(preset.get("settings", ()))]
    for key, value in preset.items():
        if key != "settings":
            option = {"start_from": "from"}.get(key, key.replace("_", "-"))
            options.append(f"--{option}" if value is True else f"--{option} {text_of(value)}")
    return " ".join(options)


def pairs_of(settings: Mapping[str, object] | Sequence[str]) -> tuple[str, ...]:
    """Settings of a task as key=value."""
    if isinstance(settings, Mapping):
        return tuple(f"{key}={text_of(value)}" for key, value in settings.items())
    return tuple(settings)


def text_of(value: object) -> str:
    """A value as the command line spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(text_of(part) for part in value) if isinstance(value, tuple | list) else str(value)
