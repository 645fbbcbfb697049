"""Bounds, names and refusals of the core, each at the very value where the answer changes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from fewer.core.engines import base
from fewer.core.engines.base import Training
from fewer.core.engines.plain import Plain
from fewer.core.errors import Notice, UserError
from fewer.core.files.fingerprints import named_files
from fewer.core.machine.requirements import Needed
from fewer.core.mask import choose_, prunable
from fewer.core.registry import task_class
from fewer.core.renamed import modern_word
from fewer.core.settings import from_text
from tests.toys import Fit


def test_a_change_far_inside_a_named_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    content = bytearray(100_000)
    path.write_bytes(content)
    before = named_files([f"data={path}"])
    content[70_000] = 1
    path.write_bytes(content)
    assert named_files([f"data={path}"]) != before


@pytest.mark.parametrize(
    ("found", "fine"), [("2.0", True), ("2.0.1", True), ("10.0", True), ("1.9", False), ("", False)]
)
def test_a_package_at_the_bound_itself_will_do(found: str, fine: bool) -> None:
    assert (Needed("numpy", ">=2.0", found).trouble == "") is fine


def test_a_pattern_with_a_networks_name_touches_that_network_alone() -> None:
    networks = {name: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)) for name in ("actor", "critic")}
    choose_(networks, only=("critic.0",))
    assert prunable(networks["critic"]) == ["0.weight"] and prunable(networks["actor"]) == []
    choose_(networks, skip=("crit*.1.weight",))
    assert prunable(networks["critic"]) == ["0.weight"] and len(prunable(networks["actor"])) == 2


def test_a_class_that_a_module_does_not_have_is_refused_with_the_one_that_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_traffic.py").write_text("from tests.toys import Fit\nclass Traffic(Fit): ...\nnumber = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("Trafic", "number"):
        with pytest.raises(UserError, match=f"own_traffic:{name}.*a class in own_traffic.*Traffic"):
            task_class(f"own_traffic:{name}")
    (tmp_path / "own_nothing.py").write_text("")
    with pytest.raises(UserError, match="it has no task"):
        task_class("own_nothing:Task")
    sys.modules.pop("own_traffic", None)


def test_a_former_word_still_means_what_it_is_called_now() -> None:
    for word, now in (("local", "processes"), ("here", "inline")):
        with pytest.warns(Notice, match=f"{word} is now called {now}"):
            assert modern_word(word) == now
    assert modern_word("ray") == "ray"


@dataclass(frozen=True)
class Switch:
    on: bool = False


@pytest.mark.parametrize("start", [True, False])
def test_every_word_for_yes_and_no_is_taken_as_such(start: bool) -> None:
    for on, words in ((True, ("true", "1", "yes", "Yes")), (False, ("false", "0", "no", "NO"))):
        assert all(from_text(Switch, [f"on={word}"], Switch(start)).on is on for word in words)
    with pytest.raises(UserError, match="on=perhaps"):
        from_text(Switch, ["on=perhaps"])


def test_on_a_processor_the_order_of_many_steps_is_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, draw = [], base.shuffled
    monkeypatch.setattr(base, "shuffled", lambda *words: calls.append(words) or draw(*words))
    engine = Plain(Fit(), Training(steps=20, batch=8), 0)
    engine.advance(20)
    assert len(calls) == 1
    ahead = torch.cat([draw(engine.seeds[:, None], torch.arange(8) + 8 * step, 60) for step in range(20)], 1)
    assert torch.equal(engine.ahead[1][:, :20].flatten(1), ahead)
