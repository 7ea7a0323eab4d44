"""Permutation (Jain & Wallace 2019, JW-4): the same weights on other tokens."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.model.decoder import distribution
from attentest.model.seam import AttentionModel, Reading

# Sorting keys of this many numbers at a time keeps memory in the tens of megabytes for any text length.
CHUNK = 4_000_000


def permuted(
    weights: Float[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
    count: int,
    *,
    rng: torch.Generator,
) -> Float[Tensor, "batch variant unit"]:
    """Each row's weights in `count` random orders over its real units; padding keeps its zeros.

    Sorting independent uniform keys gives every order the same chance. Padding gets keys above one, so it
    sorts behind all real units and stays where it is.
    """
    batch, units = weights.shape
    keys = torch.rand(batch, count, units, generator=rng)
    keys = keys.masked_fill(~mask[:, None].cpu(), 2.0).argsort(-1).to(weights.device)
    return weights[:, None].expand(-1, count, -1).gather(2, keys)


def output_changes(
    model: AttentionModel, reading: Reading, count: int, *, rng: torch.Generator
) -> Float[Tensor, "batch variant"]:
    """The total variation between the output and that of each of `count` permutations.

    All permutations of a chunk are answered by one `decide`; nothing is encoded again.
    """
    own = distribution(model.decide(reading))[:, None]
    at_once = max(1, CHUNK // reading.weights.numel())
    changes = []
    for begun in range(0, count, at_once):
        orders = permuted(reading.weights, reading.mask, min(at_once, count - begun), rng=rng)
        changes.append(0.5 * (distribution(model.decide(reading, orders)) - own).abs().sum(-1))
    return torch.cat(changes, dim=1)
