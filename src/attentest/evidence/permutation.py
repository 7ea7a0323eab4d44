"""Permutation (Jain & Wallace 2019, JW-4): the same weights on other tokens."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.model.decoder import distribution
from attentest.model.seam import AttentionModel, Reading

# Sorting keys of this many numbers at a time keeps memory in the tens of megabytes for any text length.
CHUNK = 4_000_000
KEY_BITS = 24  # of a random float in single precision


def orders(
    mask: Bool[Tensor, "batch unit"], count: int, *, rng: torch.Generator
) -> Int[Tensor, "batch variant unit"]:
    """`count` random orders of each row's real units; padding stays where it is.

    Sorting independent uniform keys gives every order the same chance. Padding gets keys above one, so it
    sorts behind all real units. A key is a multiple of 2^-24, so key and unit fit into one integer: sorting
    those is many times faster than asking for the places of a sort.
    """
    batch, units = mask.shape
    keys = torch.rand(batch, count, units, generator=rng).mul_(2**KEY_BITS)
    bits = units.bit_length()
    whole = torch.int32 if KEY_BITS + 1 + bits < 32 else torch.int64
    numbered = keys.to(whole).masked_fill_(~mask[:, None].cpu(), 2**KEY_BITS)
    numbered = numbered.bitwise_left_shift_(bits).bitwise_or_(torch.arange(units, dtype=whole))
    numbered.numpy().sort(axis=-1)
    return numbered.bitwise_and_(2**bits - 1).to(mask.device, torch.int64)


def permuted(
    weights: Float[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
    count: int,
    *,
    rng: torch.Generator,
) -> Float[Tensor, "batch variant unit"]:
    """Each row's weights in `count` random orders over its real units."""
    return weights[:, None].expand(-1, count, -1).gather(2, orders(mask, count, rng=rng))


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


def medians(changes: Float[Tensor, "batch variant"]) -> Float[np.ndarray, " batch"]:
    """Each text's median: of an even number of draws the mean of the middle two.

    Numpy finds the middle without sorting the rest; torch's quantile would take as long as all the above.
    """
    values = changes.detach().cpu().numpy()
    middle = [(values.shape[1] - 1) // 2, values.shape[1] // 2]
    return np.partition(values, middle, axis=1)[:, middle].astype(np.float64).mean(1)
