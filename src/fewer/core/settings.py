"""Settings are frozen dataclasses; here they meet text: `key=value` in, defaults with units out."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from fewer.core.errors import UserError
from fewer.core.renamed import tell

__all__ = ["check_choices", "check_ranges", "current", "describe", "either", "from_text", "nearest", "setting"]

T = TypeVar("T")
_CURE = "see `fewer tasks NAME`"
_TYPES = {int: "a whole number", float: "a number", bool: "true or false"}


def setting(default: Any, help: str, unit: str = "") -> Any:
    """A field with what `fewer tasks` says of it."""
    return dataclasses.field(default=default, metadata={"help": help, "unit": unit})


def check_choices(settings: object, choices: Mapping[str, Sequence[str]], *, of: str = "") -> None:
    """Refuse a field that is none of its words; `of` says whose field it is."""
    for name, allowed in choices.items():
        if (value := getattr(settings, name)) not in allowed:
            raise UserError(
                f"{of} {name} {value!r}".strip(), f"one of {', '.join(allowed)}", _guess(str(value), allowed)
            )


def check_ranges(settings: object, ranges: Sequence[tuple[str, float, float]], *, of: str = "") -> None:
    """Refuse a field that is no finite number between its bounds, both included; `of` says whose field it is."""
    for name, low, high in ranges:
        value = getattr(settings, name)
        if not math.isfinite(value) or not low <= value <= high:
            expected = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
            raise UserError(f"{of} {name} {value}".strip(), f"a number {expected}")


def either(words: Iterable[str]) -> str:
    """Words to choose from, for a sentence.

    >>> either(["bash", "zsh", "fish"])
    'bash, zsh or fish'
    """
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def nearest(word: str, words: Sequence[str]) -> str:
    """ "did you mean ...?" if something is close, else what there is.

    >>> nearest("visoin", ["vision", "control"])
    "did you mean 'vision'?"
    >>> nearest("x", ["vision", "control"])
    'there are vision, control'
    """
    return _guess(word, words) or f"there are {', '.join(words)}"


def _guess(word: str, words: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, words, 1)
    return f"did you mean {close[0]!r}?" if close else ""


def current(kind: type[Any], key: str) -> str:
    """What a field is called now; where a class says in `RENAMED` that it had another name, one line tells so."""
    now: str = getattr(kind, "RENAMED", {}).get(key, key)
    return key if now == key else tell(key, now)


def from_text(
    kind: type[T], pairs: Sequence[str] | Mapping[str, str], start: T | None = None, *, cure: str = _CURE
) -> T:
    """Settings from `key=value` words on top of the defaults (or of `start`); `cure` says where they are listed."""
    if not isinstance(pairs, Mapping):
        for pair in pairs:
            if "=" not in pair:
                raise UserError(f"--set {pair}", "key=value", cure)
        pairs = {key.strip(): value for key, value in (pair.split("=", 1) for pair in pairs)}
    pairs = {current(kind, key): value for key, value in pairs.items()}
    hints = typing.get_type_hints(kind)
    names = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, text in pairs.items():
        if key not in names:
            raise UserError(f"setting {key!r}", f"a setting of {kind.__name__}", nearest(key, names))
        values[key] = _value(key, text, hints[key], cure)
    return dataclasses.replace(start, **values) if start is not None else kind(**values)  # type: ignore[type-var]


def _value(key: str, text: str, kind: Any, cure: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if text.lower() == "none" and type(None) in arguments:
            return None
        kind = next(argument for argument in arguments if argument is not type(None))
        return _value(key, text, kind, cure)
    try:
        if origin is tuple:
            parts = [part for part in text.replace(" ", "").split(",") if part]
            return tuple(_value(key, part, arguments[0], cure) for part in parts)
        if kind is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        if kind in (int, float, str):
            return kind(text)
    except (ValueError, KeyError):
        pass
    raise UserError(f"{key}={text}", _TYPES.get(kind, f"a value of type {getattr(kind, '__name__', kind)}"), cure)


def describe(kind: type[Any]) -> list[tuple[str, str, str, str]]:
    """(name, default, unit, help) of every setting."""
    rows = []
    for field in dataclasses.fields(kind):
        made = field.default_factory
        default: Any = field.default if made is dataclasses.MISSING else made()
        rows.append((field.name, str(default), field.metadata.get("unit", ""), field.metadata.get("help", "")))
    return rows
