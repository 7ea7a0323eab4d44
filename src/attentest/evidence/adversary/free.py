"""Weights that answer to no scorer: an adversary of each text's own, by the loss of a trained one (ME-5).

Per text, `0.5 TVD(y, y_base) - lambda KL(a || a_base)` over the softmax of free scores, states and decoder as
they are: one reading of a model whose other parts are frozen (A33). KL is convex in the weights, so descents
end in corners, and which one depends on the start: of several the best is kept, and the base itself where
none is better. What is found is what can at least be had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Network, Reading
from attentest.model.training.imitation import LEAST, kullback_leibler
from attentest.refusal import Refusal
from attentest.shapes import Weights

NOISE = 3.0  # of the starts' scores: peaked attention, each start elsewhere
Tried = Float[Tensor, "batch start unit"]


@final
@dataclass(frozen=True, kw_only=True)
class FreeAdversary:
    """The descent with its settings; `strength` is lambda in the published code's unit (A31)."""

    strength: float
    starts: int = 10
    steps: int = 200
    rate: float = 0.1

    def __post_init__(self) -> None:
        fine = 0 <= self.strength < math.inf and 0 < self.rate < math.inf
        if not fine or min(self.starts, self.steps) < 1:
            raise Refusal(
                "free adversary",
                got=f"lambda {self.strength}, {self.starts} starts, {self.steps} steps, rate {self.rate}",
                needs="lambda of at least 0, at least 1 start and 1 step, and a rate above 0",
                way_out="Leave them out for the defaults; only lambda has none.",
            )

    def run(self, model: Network, reading: Reading, *, rng: torch.Generator) -> Weights:
        """The best weights found for every text of a reading; NaN where the base's own output is."""
        real = reading.mask[:, None]
        drawn = torch.randn(len(real), self.starts, real.shape[2], generator=rng)
        scores = (NOISE * drawn).to(reading.weights).requires_grad_()
        adam = torch.optim.Adam([scores], lr=self.rate, amsgrad=True)
        judge = _Loss(model, reading, self.strength)
        with torch.enable_grad():
            for _ in range(self.steps):
                weights = scores.masked_fill(~real, -math.inf).softmax(2)
                (scores.grad,) = torch.autograd.grad(judge(weights).sum(), scores)
                adam.step()
        with torch.no_grad():
            found = scores.masked_fill(~real, -math.inf).softmax(2)
            candidates = torch.cat([reading.weights[:, None], found], dim=1)
            best = judge(candidates).argmin(1)
            return candidates[torch.arange(len(best), device=best.device), best]


@final
class _Loss:
    """The loss of several weights for every text of a reading, whose states never change."""

    def __init__(self, model: Network, reading: Reading, strength: float) -> None:
        self.model, self.reading, self.strength = model, reading, strength
        with torch.no_grad():
            self.outcome = distribution(model.decide(reading))
            self.log_base = _log_weights(model, reading)

    def __call__(self, weights: Tried) -> Float[Tensor, "batch start"]:
        outcomes = distribution(self.model.decide(self.reading, given=weights))
        apart = 0.5 * total_variation(outcomes, self.outcome[:, None])
        log_base = self.log_base[:, None].expand_as(weights)
        moved = kullback_leibler(weights.flatten(0, 1), log_base.flatten(0, 1)).view(weights.shape[:2])
        return apart - self.strength * moved


def _log_weights(model: Network, reading: Reading) -> Weights:
    """A softmax has its logarithm in its scores; any other is raised to what a trained adversary is told."""
    if model.projection.name != "softmax":
        return reading.weights.clamp_min(LEAST).log()
    return reading.scores.masked_fill(~reading.mask, -math.inf).log_softmax(1).masked_fill(~reading.mask, 0.0)
