"""Lottery tickets: masks, starts, resuming between rounds, and the defects of the published code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fewer.attack.hardening.harden import harden
from fewer.core.engines.base import Engine, Training
from fewer.core.engines.optimizer import Optimizer
from fewer.core.engines.state import fresh_modules
from fewer.core.errors import UserError
from fewer.pruning.schedules import lottery as module
from fewer.pruning.schedules.lottery import Lottery, lottery
from fewer.pruning.schedules.survivors import shuffled_mask, smaller_mask
from tests.toys import Blobs, Control, Patches, Untrained

TRAINING = Training(12, 16, Optimizer(lr=0.02), precision="float64")


def weights(engine: Engine) -> list[dict[str, Any]]:
    """A measure that notes every replica's weights instead of judging them."""
    return [
        {"found": {key: value.clone() for key, value in engine.state.weights_of(replica)["net"].items()}}
        for replica in range(engine.state.replicas)
    ]


def line(rows: list[dict[str, Any]], number: int, start: str, seed: int = 0) -> dict[str, Any]:
    return next(row for row in rows if (row["round"], row["start"], row["seed"]) == (number, start, seed))


def test_each_round_keeps_the_stated_share_of_every_layer() -> None:
    rows = lottery(Blobs(20), TRAINING, Lottery(rounds=4, rate=0.3), seeds=[0])
    for row in rows:
        assert row["layers"]["net.0.weight"] == round(80 * 0.7 ** row["round"])
        assert row["layers"]["net.2.weight"] == round(60 * 0.7 ** row["round"])
        assert row["kept"] == sum(row["layers"].values())
    assert len(rows) == 5 * 3


def test_the_output_layer_can_lose_half_as_much() -> None:
    rows = lottery(Blobs(20), TRAINING, Lottery(rounds=2, rate=0.4, output_share=0.5, starts=("reset",)), seeds=[0])
    assert rows[-1]["layers"] == {"net.0.weight": round(80 * 0.36), "net.2.weight": round(60 * 0.64)}


def test_a_global_round_keeps_exactly_as_many_and_ranks_layers_together() -> None:
    scores = {"net": {"a": torch.tensor([5.0, 4.0, 3.0]), "b": torch.tensor([0.3, 0.2, 0.1])}}
    whole = {"net": {key: torch.ones(3, dtype=torch.bool) for key in "ab"}}
    found = smaller_mask(scores, whole, 1, rate=0.5, scope="global")
    assert found["net"]["a"].tolist() == [True] * 3
    assert not found["net"]["b"].any()


def test_a_network_that_nobody_trains_and_its_copy_stay_whole_in_every_round() -> None:
    rows = lottery(Untrained(), TRAINING, Lottery(rounds=2, rate=0.3), seeds=[0])
    assert all(name.startswith("net.") for row in rows for name in row["layers"])


def test_negative_weights_survive_by_their_size_and_train_on() -> None:
    seen = lottery(Blobs(20), TRAINING, Lottery(rounds=1, starts=("reset",)), seeds=[0], measure=weights)
    before, after = fresh_modules(Blobs(20), 0)["net"].state_dict(), line(seen, 1, "reset")["found"]
    alive = (after["0.weight"] != 0) & (before["0.weight"] < 0)
    assert alive.any()
    assert (after["0.weight"][alive] != before["0.weight"].double()[alive]).all()


def test_what_is_pruned_stays_pruned_through_training_and_rounds() -> None:
    seen = lottery(Blobs(20), TRAINING, Lottery(rounds=3, starts=("reset",)), seeds=[0], measure=weights)
    dead = [line(seen, number, "reset")["found"]["0.weight"] == 0 for number in range(4)]
    for number in range(1, 4):
        assert int(dead[number].sum()) == 80 - round(80 * 0.7**number)
        assert (dead[number] >= dead[number - 1]).all()


def first_weights(start: str, number: int, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Tensor]]:
    """The weights with which each replica begins a round."""
    begun: list[dict[str, Tensor]] = []
    original = module._Game.begin_

    def begin(game: Any, which: int, masks: Any) -> None:
        original(game, which, masks)
        if which == number:
            begun.extend(row["found"] for row in weights(game.engine))

    monkeypatch.setattr(module._Game, "begin_", begin)
    settings = Lottery(rounds=number, starts=(start,), rewind=5)
    lottery(Blobs(20), TRAINING, settings, seeds=[3])
    return begun


def test_reset_begins_with_the_first_weights_and_the_first_biases(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = first_weights("reset", 2, monkeypatch)[0]
    first = fresh_modules(Blobs(20), 3)["net"].double().state_dict()
    for key, value in begun.items():
        kept = value != 0 if key.endswith("weight") else torch.ones_like(value, dtype=torch.bool)
        assert torch.equal(value[kept], first[key][kept])


def test_fresh_begins_with_weights_that_are_new_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = [first_weights("fresh", number, monkeypatch)[0]["0.bias"] for number in (1, 2)]
    first = fresh_modules(Blobs(20), 3)["net"].double().state_dict()["0.bias"]
    assert not torch.equal(begun[0], begun[1])
    assert not any(torch.equal(each, first) for each in begun)


def test_rewind_begins_with_the_weights_of_the_early_step(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = first_weights("rewind", 1, monkeypatch)[0]
    short = Training(5, 16, Optimizer(lr=0.02), precision="float64")
    early = lottery(Blobs(20), short, Lottery(rounds=0, starts=("reset",)), seeds=[3], measure=weights)[0]["found"]
    for key, value in begun.items():
        kept = value != 0 if key.endswith("weight") else torch.ones_like(value, dtype=torch.bool)
        assert torch.equal(value[kept], early[key][kept])


def test_controls_keep_as_many_weights_as_the_ticket_and_fresh_ones_its_mask() -> None:
    seen = lottery(Blobs(20), TRAINING, Lottery(rounds=2), seeds=[0, 1], measure=weights)
    for seed in (0, 1):
        ticket, fresh, random = (line(seen, 2, start, seed) for start in ("reset", "fresh", "shuffled"))
        assert ticket["layers"] == fresh["layers"] == random["layers"]
        kept = [row["found"]["0.weight"] != 0 for row in (ticket, fresh, random)]
        assert torch.equal(kept[0], kept[1])
        assert not torch.equal(kept[0], kept[2])


def test_random_masks_of_one_seed_nest() -> None:
    large = {"net": {"w": torch.ones(50, dtype=torch.bool)}}
    large["net"]["w"][:20] = False
    small = {"net": {"w": torch.zeros(50, dtype=torch.bool)}}
    small["net"]["w"][:10] = True
    wide, narrow = (shuffled_mask(mask, 4)["net"]["w"] for mask in (large, small))
    assert (int(wide.sum()), int(narrow.sum())) == (30, 10)
    assert (wide >= narrow).all()
    assert not torch.equal(wide, shuffled_mask(large, 5)["net"]["w"])


def test_a_line_ends_the_same_alone_and_in_a_cohort() -> None:
    alone = lottery(Blobs(20), TRAINING, Lottery(rounds=2, starts=("reset",)), seeds=[1], measure=weights)
    together = lottery(Blobs(20), TRAINING, Lottery(rounds=2), seeds=[0, 1], measure=weights)
    for key, value in line(alone, 2, "reset", 1)["found"].items():
        assert torch.allclose(value, line(together, 2, "reset", 1)["found"][key], atol=1e-9)


def test_finished_rounds_are_found_again_and_the_rest_ends_the_same(tmp_path: Path) -> None:
    settings = Lottery(rounds=3, starts=("rewind", "fresh", "shuffled"), rewind=4)
    whole = lottery(Blobs(20), TRAINING, settings, seeds=[0], out=tmp_path / "whole")
    calls: list[int] = []

    def cut_off(engine: Engine) -> list[dict[str, float]]:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return module.evaluate_cohort(engine.task, engine.state)

    with pytest.raises(KeyboardInterrupt):
        lottery(Blobs(20), TRAINING, settings, seeds=[0], out=tmp_path / "cut", measure=cut_off)
    resumed = lottery(Blobs(20), TRAINING, settings, seeds=[0], out=tmp_path / "cut", measure=cut_off)
    assert resumed == whole
    assert len(calls) == 5  # the third round again and the fourth; the first two were only read
    last = [folder / "round-03" / "fresh-seed0.safetensors" for folder in (tmp_path / "whole", tmp_path / "cut")]
    assert last[0].read_bytes() == last[1].read_bytes()


def test_another_experiment_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    settings = Lottery(rounds=0, starts=("reset",))
    lottery(Blobs(8), TRAINING, settings, seeds=[0], out=tmp_path, about={"hardening": ""})
    with pytest.raises(UserError, match=r"hardening was '', now 'pgd:0\.3'"):
        lottery(Blobs(8), TRAINING, settings, seeds=[0], out=tmp_path, about={"hardening": "pgd:0.3"})


def test_tickets_are_drawn_for_a_hardened_task_and_for_one_with_batch_norms() -> None:
    training = Training(4, 12, Optimizer(lr=0.01))
    for task in (harden(Blobs(8), "pgd:0.1,steps=2", total=4), Patches()):
        rows = lottery(task, training, Lottery(rounds=1), seeds=[0])
        assert len(rows) == 6
        assert all(0 <= row["accuracy"] <= 1 for row in rows)


def test_an_actor_and_its_critics_get_masks_that_go_together(tmp_path: Path) -> None:
    found: list[Mapping[str, Mapping[str, Tensor]]] = []

    def measure(engine: Engine) -> list[dict[str, float]]:
        found.append(engine.state.mask_of(0))
        return [{} for _ in engine.state.seeds]

    settings = Lottery(rounds=1, starts=("reset", "shuffled"))
    lottery(Control(), Training(6, 16), settings, seeds=[0], out=tmp_path, measure=measure)
    mask = found[-1]
    assert set(mask) == {"actor", "critic", "critic2", "critic_target", "critic2_target"}
    for name in ("critic2", "critic_target", "critic2_target"):
        assert all(torch.equal(mask[name][key], kept) for key, kept in mask["critic"].items())


@pytest.mark.parametrize(
    "wrong",
    [{"rate": 0.0}, {"rate": 1.0}, {"rounds": -1}, {"scope": "all"}, {"starts": ()}, {"starts": ("reset", "reset")},
     {"starts": ("again",)}, {"starts": ("rewind",)}, {"output_share": 2.0}],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Lottery(**wrong)


def test_rewinding_past_the_end_is_refused() -> None:
    with pytest.raises(UserError, match="rewind to step 12"):
        lottery(Blobs(8), TRAINING, Lottery(starts=("rewind",), rewind=12), seeds=[0])
