"""Chooses a language model by what it has gained per dollar: Thompson sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from runs_app.optimiser.evolve.config import ModelSpec

TYPICAL_TOKENS = (4000, 2000)
"""In and out, of a call to a model that has answered none yet."""


@dataclass
class Arm:
    """A language model, and what its proposals brought."""

    model: ModelSpec
    pulls: int = 0
    reward: float = 0.0  # sum of what `gain` gave
    cost_usd: float = 0.0  # sum

    def add(self, reward: float, cost_usd: float) -> None:
        """Count a proposal. `reward` lies between 0 and 1."""
        self.pulls += 1
        self.reward += reward
        self.cost_usd += cost_usd

    @property
    def price(self) -> float:
        """Expected USD of a call: the price list counts as one call among those made."""
        tokens_in, tokens_out = TYPICAL_TOKENS
        listed = (tokens_in * self.model.price_in_usd + tokens_out * self.model.price_out_usd) / 1e6
        return (listed + self.cost_usd) / (1 + self.pulls)


def gain(parent_ns: float, child_ns: float | None) -> float:
    """Reward of a proposal: 1 where it halves its parent's time, 0 where it is no faster."""
    if child_ns is None or child_ns >= parent_ns:
        return 0.0
    return min(1.0, math.log2(parent_ns / child_ns))


def choose(arms: Sequence[Arm], rng: Random) -> ModelSpec:
    """The model whose sampled reward per dollar is the highest.

    The reward of a model is sampled from Beta(1 + rewards, 1 + pulls - rewards) (Agrawal and Goyal
    2012), and divided by its price. No price counts for less than a tenth of the highest, since
    building and measuring what a free model wrote is not free; if all are free, none counts.
    """
    least = max(arm.price for arm in arms) / 10 or 1.0
    sampled = [
        (rng.betavariate(1 + arm.reward, 1 + arm.pulls - arm.reward) / max(arm.price, least), arm)
        for arm in arms
    ]
    return max(sampled, key=lambda pair: pair[0])[1].model
