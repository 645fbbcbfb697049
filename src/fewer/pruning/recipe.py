"""The text form of pruning, one for the command line, Python and grids: `snip,sparsity=0.95`, `lottery` or `dense`."""

from __future__ import annotations

from collections.abc import Sequence

from fewer.core.errors import UserError
from fewer.core.settings import from_text, nearest
from fewer.pruning.criteria import METHODS
from fewer.pruning.pruning import Pruning

__all__ = ["dense", "parse_prune"]

_DENSE = ("", "none", "dense")
_LOTTERY = ("method=magnitude", "when=rounds")


def dense(text: str | None) -> bool:
    """Whether a text says that nothing is pruned."""
    return (text or "") in _DENSE


def parse_prune(text: str | None, more: Sequence[str] = ()) -> Pruning | None:
    """The pruning of a text such as `lamp,when=gradual`, with `more` settings as key=value; None where it is dense.

    >>> parse_prune("lottery,rate=0.5", ["sparsity=0.75"]).when
    'rounds'
    """
    name, *words = (text or "").split(",")
    if dense(name):
        if words:
            raise UserError(f"prune {text!r}", "nothing after it: no weight is removed", "name a method")
        if more:
            raise UserError(f"{more[0]} without a method", "a method to prune by", "add --prune snip")
        return None
    if name not in METHODS:
        raise UserError(f"pruning method {name!r}", "a criterion or lottery", nearest(name, METHODS))
    pairs = [*(_LOTTERY if name == "lottery" else (f"method={name}",)), *words, *more]
    keys = [pair.partition("=")[0].strip() for pair in pairs]
    if twice := [key for number, key in enumerate(keys) if key in keys[:number]]:
        raise UserError(f"{twice[0]} twice for prune {text!r}", f"one {twice[0]}")
    return from_text(Pruning, pairs)
