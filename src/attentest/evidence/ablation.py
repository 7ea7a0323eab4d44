"""What becomes of the output under weights that are not the model's own; nothing is encoded again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.networks.projection import uniform
from attentest.model.seam import Model, Reading
from attentest.shapes import Given, Weights


@final
@dataclass(frozen=True, kw_only=True)
class Moved:
    """Of each text how far its output moved, and which class is the likeliest now."""

    change: Float[Tensor, " batch"]  # total variation; NaN for one unit, which leaves attention no choice
    likeliest: Int[Tensor, " batch"]


def moved(model: Model, reading: Reading, given: Given) -> Moved:
    """The output under `given`, held against the one under the model's own weights."""
    with torch.no_grad():
        own, other = (distribution(model.decide(reading, weights)) for weights in (None, given))
    alone = reading.mask.sum(1) < 2
    change = total_variation(other, own).masked_fill(alone, float("nan"))
    return Moved(change=change, likeliest=other.argmax(-1))


def moved_by_uniform(model: Model, reading: Reading) -> Moved:
    """The output when every unit weighs the same."""
    return moved(model, reading, uniform(reading.scores, reading.mask))


def shares(importance: Float[Tensor, "batch unit"], mask: Bool[Tensor, "batch unit"]) -> Weights:
    """Importances as an attention: each magnitude's share of their sum; NaN where nothing is important."""
    sizes = importance.abs().masked_fill(~mask, 0.0)
    return sizes / sizes.sum(1, keepdim=True)  # 0 / 0 is NaN, and so is whatever is decided under it
