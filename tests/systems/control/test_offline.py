"""The bench beside d3rlpy, whose side is played here."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from fewer.core.errors import MissingExtra, UserError
from fewer.systems.control.bench import offline
from fewer.systems.control.task.worlds.environments import ENVIRONMENTS


def test_scores_are_of_the_same_episodes_and_rates_of_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    low, high = ENVIRONMENTS["hopper"].reference or (0.0, 0.0)

    whole = subprocess.run

    def played(words: list[str], **more: Any) -> Any:
        if "input" not in more:  # somebody else's, such as the commit's
            return whole(words, **more)
        asked.append(json.loads(more["input"]))
        answer = {"returns": [low, high], "seconds": 0.5, "version": "2"}
        return subprocess.CompletedProcess(words, 0, f"a line of theirs\n{json.dumps(answer)}\n", "")

    monkeypatch.setattr(offline.subprocess, "run", played)
    score, rate = offline.compared("there", "hopper", "plain-bc", updates=2, seeds=1, episodes=2, logged=300)
    assert (
        score.theirs == pytest.approx(50) and score.ratio == pytest.approx(score.ours / 50) and score.required == 0.97
    )
    assert rate.theirs == pytest.approx(4) and asked[0]["environment"] == "Hopper-v5"
    assert len(set(asked[0]["episode_seeds"])) == 2 and asked[0]["updates"] == 2


def test_without_d3rlpy_it_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWER_D3RLPY", sys.executable)
    with pytest.raises(MissingExtra, match="pip install d3rlpy"):
        offline.run(quick=True)
    monkeypatch.setenv("FEWER_D3RLPY", "/nowhere/python")
    with pytest.raises(UserError, match="a Python with d3rlpy"):
        offline.run(quick=True)
