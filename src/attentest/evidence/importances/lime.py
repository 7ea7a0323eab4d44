"""LIME (Ribeiro et al. 2016): a line through the answers to random parts of a text, near parts counting more.

Of each text parts are drawn by first drawing how many units go. A part's distance is that of directions, one
minus the cosine between what is there and the whole; its weight falls with the distance squared. The line is
a ridge regression, whose constant is not shrunk. Its slopes, one a unit, are the importances.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.evidence.importances.presence import PerUnit, answers_to_parts, explained, without_lone_units
from attentest.evidence.permutation import orders
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal

WIDTH = 0.25  # of the kernel: half of a text counts a quarter of the whole, a tenth of it next to nothing
PENALTY = 1.0  # on the squares of the slopes: what scikit-learn's ridge has by default


def lime(model: Model, reading: Reading, *, rng: torch.Generator, samples: int = 200) -> PerUnit:
    """The slope of each unit's presence; signed. NaN where a text has one unit."""
    if samples < 1:
        raise Refusal("LIME", got=f"{samples} samples", needs="at least 1", way_out="200 are the default.")
    kept = drawn_parts(reading.mask, samples, rng=rng)
    answers = answers_to_parts(model, reading, kept)
    whole = explained(model, reading).probability[:, None]
    kept = torch.cat([reading.mask[:, None], kept], dim=1)
    slopes = ridge(kept.double(), torch.cat([whole, answers], dim=1).double(), nearness(kept, reading.mask))
    return without_lone_units(slopes.to(reading.embeddings), reading)


def drawn_parts(
    mask: Bool[Tensor, "batch unit"], samples: int, *, rng: torch.Generator
) -> Bool[Tensor, "batch sample unit"]:
    """Random parts: any number of units from one on goes, all numbers alike, and at least one stays."""
    lengths = mask.sum(1)
    drawn = torch.rand(len(mask), samples, generator=rng, dtype=torch.float64).to(mask.device)
    gone = 1 + (drawn * (lengths[:, None] - 1)).long()
    place = orders(mask, samples, rng=rng).argsort(2)
    return (place >= gone[..., None]) & mask[:, None]


def nearness(
    kept: Bool[Tensor, "batch sample unit"], mask: Bool[Tensor, "batch unit"]
) -> Float[Tensor, "batch sample"]:
    """The weight of each part: the cosine between a part of k units and the whole of n is sqrt(k / n)."""
    cosine = (kept.sum(2) / mask.sum(1)[:, None]).double().sqrt()
    return (-((1 - cosine) ** 2) / WIDTH**2).exp()


def ridge(
    presence: Float[Tensor, "batch sample unit"],
    answers: Float[Tensor, "batch sample"],
    weights: Float[Tensor, "batch sample"],
) -> PerUnit:
    """Weighted ridge regression of all texts at once; centred by weighted means, it needs no constant."""
    shares = (weights / weights.sum(1, keepdim=True))[..., None]
    presence = presence - (shares * presence).sum(1, keepdim=True)
    answers = (answers[..., None] - (shares * answers[..., None]).sum(1, keepdim=True)) * weights[..., None]
    squares = (weights[..., None] * presence).mT @ presence
    penalty = PENALTY * torch.eye(presence.shape[2], dtype=presence.dtype, device=presence.device)
    return torch.linalg.solve(squares + penalty, presence.mT @ answers)[..., 0]
