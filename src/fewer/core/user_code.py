"""What a user's own code raised, in words and with its place, for a line that ends in exit code 2."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fewer.core.errors import UserError

__all__ = ["blame", "called"]

T = TypeVar("T")
_NOT_THE_USERS = ("<", str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))


def blame(error: BaseException) -> str:
    """`KeyError: 'x' (mine.py, line 12)`."""
    name, said = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, SyntaxError) and error.filename:
        return f"{name}: {error.msg} ({Path(error.filename).name}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{name}{f': {said[:200]}' if said else ''}{place}"


def called(work: Callable[[], T], name: str, expected: str) -> T:
    """The answer of a user's function; what it raises is the user's to mend, and told in one line."""
    try:
        return work()
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{name}, which raised {blame(error)}", expected) from error
