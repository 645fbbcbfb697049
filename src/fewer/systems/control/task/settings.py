"""Every choice of the control task, with its unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fewer.core.errors import UserError
from fewer.core.settings import check_choices, check_ranges, setting

__all__ = ["Settings"]

ALGORITHMS = ("bcq", "bc", "plain-bc", "td3bc", "iql")
POLICIES = ("own", "decoder", "both")
TWINS = ("own", "copy")
ATTACK_LOSSES = ("distance", "value")
JUDGES = ("auto", "rollout", "fqe")


@dataclass(frozen=True)
class Settings:
    """The logs, the algorithm that learns from them, and how its policy is judged."""

    RENAMED: ClassVar[dict[str, str]] = {"harm": "attack_loss"}

    environment: str = setting("hopper", "halfcheetah, hopper, walker2d, any Gymnasium id, or none (logs alone)")
    data: str = setting("", "file of logged steps, or a Minari id; empty: the embedded expert's")
    transitions: int = setting(100_000, "steps that the embedded expert takes")
    data_seed: int = setting(0, "seed of the embedded expert's roll-outs")
    algorithm: str = setting("bcq", f"one of {', '.join(ALGORITHMS)}; dense bcq wants --steps 100000")
    normalise: bool = setting(True, "observations less their mean, over their deviation + 0.001; false: raw")
    action_bound: float = setting(0.0, "actions lie within plus and minus this; 0: the environment's bounds, else 1")
    hidden: tuple[int, ...] = setting((400, 300), "hidden widths of actor, critic and value", "units")
    autoencoder_hidden: tuple[int, ...] = setting((750, 750), "hidden widths of encoder and decoder", "units")
    latent: int = setting(0, "latent variables; 0: twice the actions")
    discount: float = setting(0.99, "gamma")
    target_rate: float = setting(0.005, "tau, how fast target networks follow")
    twin: str = setting("own", "second critic: own first weights, or copy of the first critic (they stay equal)")
    perturbation: float = setting(
        0.05, "phi, largest change of a candidate action by bcq's actor", "half the action range"
    )
    pessimism: float = setting(0.75, "lambda, weight of the smaller of two values in bcq's target")
    divergence: float = setting(0.5, "weight of the divergence in the autoencoder's loss")
    target_samples: int = setting(10, "candidate actions in bcq's target")
    candidates: int = setting(10, "candidate actions when bcq acts; the reference takes 100")
    sampled: bool = setting(False, "bc draws its latent variable (as the paper's code) instead of taking 0")
    policy: str = setting("own", "who acts for bcq: own, decoder (bc at the same price), or both side by side")
    behaviour_weight: float = setting(2.5, "td3bc's alpha: value against imitation")
    expectile: float = setting(0.7, "iql's expectile of the value")
    temperature: float = setting(3.0, "iql's beta: weight of advantages in its policy")
    reward_scale: float = setting(0.0, "iql's rewards times this; 0: so that logged returns span 1000")
    episodes: int = setting(20, "episodes that judge a policy")
    episode_seed: int = setting(100, "seed of these episodes' starts, the same for every replica; validation: the next")
    horizon: int = setting(0, "cut episodes after so many steps; 0: the environment's own limit", "steps")
    judge: str = setting("auto", "rollout, fqe (from logs alone), or auto: rollout where there is an environment")
    fqe_steps: int = setting(4000, "training steps of fitted Q evaluation")
    attack_loss: str = setting("distance", "what an attack increases: distance of the action, or value it costs")

    def __post_init__(self) -> None:
        check_choices(self, _CHOICES)
        check_ranges(self, _RANGES)
        for name in ("hidden", "autoencoder_hidden"):
            widths = getattr(self, name)
            if not widths or min(widths) < 1:
                raise UserError(f"{name} {widths}", "at least one width of 1 or more", f"--set {name}=400,300")
        if self.policy != "own" and self.algorithm != "bcq":
            raise UserError(f"policy {self.policy} of {self.algorithm}", "own", "only bcq has a decoder beside")
        if self.attack_loss == "value" and self.algorithm in ("bc", "plain-bc"):
            raise UserError(
                f"attack_loss value of {self.algorithm}", "distance", "only algorithms with a critic know values"
            )
        if self.environment == "none" and self.judge == "rollout":
            raise UserError("roll-outs without an environment", "an environment or judge=fqe")
        if self.environment == "none" and not self.data:
            raise UserError("neither an environment nor data", "a file of logged steps", "--set data=FILE")

    @property
    def rolls_out(self) -> bool:
        """Whether a simulator judges; otherwise fitted Q evaluation does."""
        return self.judge == "rollout" or (self.judge == "auto" and self.environment != "none")


_CHOICES = {"algorithm": ALGORITHMS, "policy": POLICIES, "twin": TWINS, "attack_loss": ATTACK_LOSSES, "judge": JUDGES}
_RANGES = (
    ("transitions", 1, 10**9),
    ("data_seed", 0, 2**62),
    ("action_bound", 0, 1e6),
    ("latent", 0, 10_000),
    ("discount", 0, 1),
    ("target_rate", 0, 1),
    ("perturbation", 0, 1),
    ("pessimism", 0, 1),
    ("divergence", 0, 1e6),
    ("target_samples", 1, 10_000),
    ("candidates", 1, 10_000),
    ("behaviour_weight", 0, 1e6),
    ("expectile", 0, 1),
    ("temperature", 0, 1e6),
    ("reward_scale", 0, 1e6),
    ("episodes", 1, 100_000),
    ("episode_seed", 0, 2**31),
    ("horizon", 0, 10**9),
    ("fqe_steps", 1, 10**9),
)
