"""A search in bfloat16: its successes are judged by the network as it was given."""

from __future__ import annotations

import copy

import pytest
import torch

from fewer.attack.audit import Audit, robust
from fewer.attack.rough import Rough
from fewer.attack.threat import Threat
from fewer.core.engines.nets import NetworkSet
from fewer.core.errors import UserError
from fewer.systems.vision.task.task import Vision

from .test_audit import SHORT

ROUGHLY = Audit(limit=80, search="bfloat16")


def _confused(rough: Rough) -> Rough:
    """Copies that call every image wrong: their last layer's rows are turned round."""
    for module in rough.quick.modules.values():
        weight = list(module.parameters())[-2:]
        with torch.no_grad():
            for tensor in weight:
                tensor.copy_(tensor.roll(1, 0))
    return rough


@pytest.mark.parametrize("threat", SHORT, ids=lambda threat: threat.kind)
def test_a_search_that_cries_wolf_fools_nobody(
    threat: Threat, mlp: Vision, robust_mlp: NetworkSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fewer.attack.audit.Rough", lambda task, nets: _confused(Rough(task, nets)))
    still = Threat(threat.kind, 0.0, options=threat.options)
    report = robust(mlp, robust_mlp, [still], ROUGHLY)
    assert report.robust == report.clean > 0.5


def test_a_rough_search_finds_nearly_what_an_exact_one_finds(mlp: Vision, robust_mlp: NetworkSet) -> None:
    chosen = [threat for threat in SHORT if threat.kind in ("pgd", "apgd", "apgd-t", "square")]
    exact, rough = (robust(mlp, robust_mlp, chosen, audit) for audit in (Audit(limit=80), ROUGHLY))
    assert rough.clean == exact.clean
    assert 0 < rough.robust < rough.clean and abs(rough.robust - exact.robust) <= 3 / 80


def test_a_rough_classifier_leaves_the_given_networks_alone(mlp: Vision, robust_mlp: NetworkSet) -> None:
    before = copy.deepcopy(dict(robust_mlp.modules)["net"].state_dict())
    rough = Rough(mlp, robust_mlp)
    pixels = mlp.data("test").take(torch.arange(4)).pixels
    scores = rough.logits(robust_mlp, pixels, None)
    assert scores.dtype == torch.float32
    assert torch.allclose(scores, mlp.logits(robust_mlp, pixels, None), atol=0.1)
    assert all(torch.equal(value, before[key]) for key, value in robust_mlp.modules["net"].state_dict().items())


def test_chunks_that_are_filled_up_give_the_scores_and_slopes_of_the_whole(mlp: Vision, robust_mlp: NetworkSet) -> None:
    rough = Rough(mlp, robust_mlp)
    pixels = mlp.data("test").take(torch.arange(10)).pixels
    found = []
    for rough.chunk in (0, 4):
        leaf = pixels.clone().requires_grad_()
        scores = rough.logits(robust_mlp, leaf, None)
        found.append((scores.detach(), torch.autograd.grad(scores.square().sum(), leaf)[0]))
    for whole, parts in zip(*found):
        assert whole.shape == parts.shape and torch.allclose(whole, parts, rtol=0.02, atol=0.02)


def test_what_a_search_on_a_gpu_turns_on_is_turned_off_behind_it(mlp: Vision, robust_mlp: NetworkSet) -> None:
    import torch._dynamo.config as compiling

    rough = Rough(mlp, robust_mlp)
    rough.device = torch.device("cuda")
    with pytest.raises(ValueError, match="in between"), rough.quickly():
        assert torch.backends.cudnn.benchmark and compiling.suppress_errors
        raise ValueError("in between")
    assert not torch.backends.cudnn.benchmark and not compiling.suppress_errors


def test_a_rough_search_cannot_show_every_image_every_step() -> None:
    with pytest.raises(UserError, match="judge every, and drop"):
        Audit(search="bfloat16", judge="last")
    with pytest.raises(UserError, match="exact or bfloat16"):
        Audit(search="float8")
