"""Policies over HTTP, and episodes that are Gymnasium's own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fewer import zoo
from fewer.packs.pack import load
from fewer.serve.app import Application
from fewer.serve.models import open_models

pytest.importorskip("mujoco", reason="no MuJoCo: pip install 'fewer[control]'")

SEEN = [1.25, 0.0, 0.1, -0.1, 0.0, 0.2, 0.0, 0.0, 0.0, -0.3, 0.0]


@pytest.fixture(scope="module")
def policies() -> Iterator[TestClient]:
    with TestClient(Application(open_models(["control-hopper"]))) as found:
        yield found


def test_an_observation_gets_the_packs_action(policies: TestClient) -> None:
    expected = load(zoo.path("control-hopper")).predict(np.float32([SEEN]))[0]
    one = policies.post("/v1/control/predict", json={"observation": SEEN}).json()["action"]
    many = policies.post("/v1/control/predict", json={"observation": [SEEN, SEEN]}).json()["action"]
    assert np.allclose(one, expected, atol=1e-6) and np.allclose(many, [expected, expected], atol=1e-6)


@pytest.mark.parametrize("wrong", [SEEN[1:], ["a"] * 11, [True] * 11, [1e300] * 11, [None] * 11, "x", [[]]])
def test_what_is_no_observation_is_refused(policies: TestClient, wrong: object) -> None:
    answer = policies.post("/v1/control/predict", json={"observation": wrong})
    assert answer.status_code == 422 and answer.json()["detail"]


def test_policies_of_one_robot_are_together_whatever_their_packs_call_it() -> None:
    names = ["control-hopper", "control-hopper-95", "control-walker2d"]
    with TestClient(Application(open_models(names))) as client:
        worlds = client.get("/v1/control/worlds").json()
        listed = {model["name"]: model["removed"] for model in client.get("/v1/models").json()}
    assert worlds == dict(zip(names, ["Hopper-v5", "Hopper-v5", "Walker2d-v5"]))
    assert listed["control-hopper-95"] == pytest.approx(0.943, abs=1e-3) and listed["control-walker2d"] == 0


def test_an_episode_is_the_one_gymnasium_plays(policies: TestClient) -> None:
    from fewer.systems.control.task.worlds.simulator import make

    found = policies.post("/v1/control/episode", json={"seed": 3, "seconds": 1.0}).json()
    act, world = load(zoo.path("control-hopper")), make("Hopper-v5")
    seen, total = world.reset(seed=3)[0], 0.0
    for _ in range(found["steps"]):
        seen, reward, *_ = world.step(act.predict(np.float32(seen)[None])[0])
        total += float(reward)
    world.close()
    assert found["steps"] == 125 and found["return"] == pytest.approx(total, abs=0.01)
    frames = np.array(found["frames"])
    assert frames.shape[1:] == (4, 4) and abs(len(frames) - 26) <= 1  # four limbs, 25 frames a second
    lengths = np.hypot(frames[..., 2] - frames[..., 0], frames[..., 3] - frames[..., 1])
    assert np.allclose(lengths, lengths[0], atol=0.003)  # bones do not stretch


def test_a_robot_that_fell_is_filmed_without_its_motors_until_it_is_down() -> None:
    with TestClient(Application(open_models(["control-hopper-99"]))) as client:
        found = client.post("/v1/control/episode", json={"seed": 2, "seconds": 8.0}).json()
    assert found["fell"] and found["seconds"] < 8
    frames, rate = np.array(found["frames"]), found["frames_per_second"]
    assert abs(len(frames) - rate * (found["seconds"] + 1.6)) <= 1
    ends = frames[..., [1, 3]]  # heights, in metres
    fall = round(found["seconds"] * rate)
    assert ends[fall].max() > 1.5 and ends[-1].max() < 0.8 and -0.1 < ends[-1].min() < 0.1


@pytest.mark.parametrize("body", [{"seconds": 100}, {"seconds": -1}, {"seed": -1}, {"seed": 1.5}, {"model": 3}])
def test_an_episode_beyond_reason_is_refused(policies: TestClient, body: dict[str, object]) -> None:
    assert policies.post("/v1/control/episode", json=body).status_code == 422


def test_a_push_changes_what_comes_after_it_and_nothing_before(policies: TestClient) -> None:
    wish = {"seed": 3, "seconds": 1.0}
    free = policies.post("/v1/control/episode", json=wish).json()
    push = {"at_s": 0.6, "metres_per_second": -2.0}
    pushed = policies.post("/v1/control/episode", json={**wish, "pushes": [push]}).json()
    before = int(0.6 * free["frames_per_second"])
    assert pushed["frames"][:before] == free["frames"][:before]
    assert pushed["frames"][-1] != free["frames"][-1]
    wrong = policies.post("/v1/control/episode", json={**wish, "pushes": [{**push, "metres_per_second": 99.0}]})
    assert wrong.status_code == 422


def test_experts_are_told_from_those_who_learnt_from_them() -> None:
    with TestClient(Application(open_models(["control-hopper", "control-hopper-95"]))) as client:
        assert client.get("/v1/control/experts").json() == ["control-hopper"]
        notes = {model["name"]: model["note"] for model in client.get("/v1/models").json()}
    assert notes["control-hopper"].startswith("expert") and notes["control-hopper-95"].startswith("learnt")
