"""The commands of a published result are ones that can be typed, and stand for the settings that it says."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from fewer.cli import parser
from fewer.cli.verbs.reproduce import order_of
from fewer.core.errors import UserError
from fewer.core.system import imported
from fewer.studies.order import _OF_ALL, SCALES, Order, studies
from fewer.studies.pieces import pieces_of, silent
from tests.studies.records import NO_STUDIES, RESULTS, ROOT

# made by version 0.1.0, with fewer seeds and a weaker attack than today's command: their notes say so; none joins them
MADE_BEFORE = {"vision-fig4", "vision-fig5-8"}
STUDIES = {name: record for name, record in RESULTS.items() if not name.startswith(NO_STUDIES)}


def commands(record: dict[str, Any]) -> list[str]:
    return record.get("commands") or [record["command"]]


def parsed(command: str) -> argparse.Namespace | None:
    """As the command line takes it; scripts of the project have parsers of their own."""
    first, *words = shlex.split(command)
    if first == "python":
        found = importlib.util.find_spec(words[1]) if words[0] == "-m" else (ROOT / words[0]).is_file()
        assert found, command
        return None
    assert first == "fewer", command
    return parser().parse(words)


@pytest.mark.parametrize("name", RESULTS)
def test_every_command_of_a_published_result_can_be_typed(name: str) -> None:
    for command in commands(RESULTS[name]):
        arguments = parsed(command)
        if arguments is None or arguments.verb != "reproduce":
            continue
        order = order_of(arguments)
        if arguments.pieces:
            assert set(arguments.pieces) <= {*pieces_of(order).every, "all"}, command


@pytest.mark.parametrize("name", sorted(set(STUDIES) - MADE_BEFORE))
def test_the_last_command_stands_for_the_settings_that_the_result_was_made_with(name: str) -> None:
    record = STUDIES[name]
    arguments = parsed(commands(record)[-1])
    assert arguments is not None and arguments.verb == "reproduce"
    order = order_of(arguments)
    assert (order.study, order.scale) == (record["study"], record["scale"])
    meant = imported(order.asked.settings)(order)
    assert json.loads(json.dumps(meant)) == record["settings"]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", [name for name, study in studies().items() if study.settings])
def test_settings_are_said_at_every_scale_without_making_anything(name: str, scale: str, tmp_path: Path) -> None:
    order = Order(name, scale, tmp_path / "none", silent)
    if scale == "paper" and name in _OF_ALL:
        with pytest.raises(UserError, match="no paper made"):
            imported(order.asked.settings)(order)
    else:
        assert json.loads(json.dumps(imported(order.asked.settings)(order), allow_nan=False))
    assert not order.out.exists()


def test_every_study_says_its_settings() -> None:
    assert [name for name, study in studies().items() if not study.settings] == []


@pytest.mark.parametrize("name", sorted(MADE_BEFORE))
def test_a_result_that_todays_command_does_not_make_says_so(name: str) -> None:
    record = STUDIES[name]
    assert "settings" not in record and any("version 0.1.0" in note for note in record["notes"])
