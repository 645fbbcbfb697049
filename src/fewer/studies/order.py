"""An order: a study as somebody asks for it, and where studies are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fewer.core.errors import UserError
from fewer.core.registry import systems
from fewer.core.settings import nearest
from fewer.core.system import Study

__all__ = ["SCALES", "Log", "Order", "file_of", "studies"]

Log = Callable[[str], None]

SCALES = {
    "quick": "minutes on two cores",
    "full": "what a CUDA GPU makes in minutes to hours: the sizes of the published tables",
    "paper": "the paper's own sizes, rounds, updates and optimisers, whatever they cost",
}

_OF_ALL: dict[str, Study] = {
    "matrix": Study(
        "fewer.studies.matrix.matrix:matrix", "every way of pruning on every task",
        settings="fewer.studies.matrix.cases:settings", pieces="fewer.studies.matrix.parts:catalogue",
        remarks="fewer.studies.matrix.remarks:winners",
    ),
    "smallest": Study(
        "fewer.studies.smallest:smallest_networks", "the smallest network of every task that still does its job",
        settings="fewer.studies.smallest:settings",
    ),
    "transfer": Study(
        "fewer.studies.transfer:transfer", "hardening, voting and packing on every task",
        settings="fewer.studies.transfer:settings",
    ),
}  # fmt: skip


def studies() -> dict[str, Study]:
    """Every study by name: those of each system, then those over all of them."""
    found: dict[str, Study] = {}
    for system in systems().values():
        found |= system.studies
    return found | _OF_ALL


def file_of(study: str) -> str:
    """The name of the file that keeps a study's result."""
    return f"{study.replace('/', '-')}.json"


@dataclass(frozen=True)
class Order:
    """It can be sent to other processes if its log can."""

    study: str
    scale: str
    out: Path
    log: Log = print
    words: tuple[str, ...] = ()  # key=value, choices of the study's own
    data: str = ""  # the user's own files in the paper's format; empty: what the scale takes by itself

    def __post_init__(self) -> None:
        if self.study not in studies():
            cure = nearest(self.study, list(studies()))
            raise UserError(f"study {self.study!r}", "one that `fewer reproduce --list` names", cure)
        if self.scale not in SCALES:
            raise UserError(f"scale {self.scale!r}", f"one of {', '.join(SCALES)}", nearest(self.scale, list(SCALES)))

    @property
    def asked(self) -> Study:
        """What is known of the study."""
        return studies()[self.study]

    @property
    def file(self) -> Path:
        """Where its result is written."""
        return self.out / file_of(self.study)

    def command(self) -> str:
        """What asks for the same again, from the shell, with a folder of one's own."""
        words = [f"--scale {self.scale}", *(f"--set {word}" for word in self.words)]
        return " ".join([f"fewer reproduce {self.study}", *words, *(["--data DATA"] if self.data else []), "--out DIR"])
