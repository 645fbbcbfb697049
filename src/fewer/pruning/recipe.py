"""The text form of pruning, one for the command line, Python and grids: `auto`, `snip,sparsity=0.95`,
`lottery` or `dense`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fewer.core.errors import UserError
from fewer.core.recipe import PRUNE
from fewer.core.settings import from_text, nearest
from fewer.pruning.criteria import METHODS
from fewer.pruning.pruning import Pruning

__all__ = ["automatic", "dense", "parse_prune"]

_DENSE = ("", "none", "dense")
_LOTTERY = ("method=magnitude", "when=rounds")


def dense(text: str | None) -> bool:
    """Whether a text says that nothing is pruned."""
    return (text or "") in _DENSE


def automatic(text: str | None) -> bool:
    """Whether a text leaves the choice to the task's recipe."""
    return (text or "").partition(",")[0] == "auto"


def parse_prune(text: str | None, more: Sequence[str] = (), *, recipe: str = PRUNE) -> Pruning | None:
    """The pruning of a text such as `lamp,when=gradual`, with `more` settings as key=value; None where it is dense.

    `recipe` is what `auto` stands for; what is said beside it wins.

    >>> parse_prune("lottery,rate=0.5", ["sparsity=0.75"]).when
    'rounds'
    """
    name, *words = (text or "").split(",")
    if dense(name):
        if words:
            raise UserError(f"prune {text!r}", "nothing after it: no weight is removed", "name a method")
        if more:
            raise UserError(f"{more[0]} without a method", "a method to prune by", "add --prune auto")
        return None
    if name not in METHODS:
        raise UserError(f"pruning method {name!r}", "auto, a criterion or lottery", nearest(name, METHODS))
    given = [*words, *more]
    keys = [_key(pair) for pair in given]
    if name == "auto":
        own, *others = recipe.split(",")
        pairs = [f"method={own}", *(pair for pair in others if _key(pair) not in keys), *given]
    else:
        pairs = [*(_LOTTERY if name == "lottery" else (f"method={name}",)), *given]
    keys = [_key(pair) for pair in pairs]
    if twice := [key for number, key in enumerate(keys) if key in keys[:number]]:
        raise UserError(f"{twice[0]} twice for prune {text!r}", f"one {twice[0]}")
    return from_text(Pruning, pairs)


def _key(pair: str) -> str:
    return pair.partition("=")[0].strip()
