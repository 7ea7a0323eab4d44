"""Handing out portions of attention by sorting, turned until the output is kept.

Given `portions`, largest first, the attention that maximises a linear function sorts tokens by their slopes.
Adding a multiple of the tokens' moves to the slopes turns that order step by step, until the moved logit
reaches the slab `low <= alpha . moves <= high`: the multiple is the Lagrangian multiplier of the slab's edge.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TURNS = 30  # bisections of a right angle, to 1e-9 of it

PerToken = Float[Tensor, "batch token"]
Variants = Float[Tensor, "batch variant token"]
PerVariant = Float[Tensor, "batch variant"]


class Slab(NamedTuple):
    """Which attentions keep the output: what each token adds to the logit alone, and how far it may move."""

    moves: PerToken
    low: PerVariant
    high: PerVariant
    mask: Bool[Tensor, "batch token"]


class Turned(NamedTuple):
    """The orders on both sides of the slab's edge, and the share of the outer that meets the edge."""

    inside: Variants
    outside: Variants
    share: PerVariant


def allocate_at_edge(portions: Float[Tensor, "batch 1 token"], slopes: Variants, slab: Slab) -> Turned:
    """Hand out portions by slopes, turned towards the moves no further than the slab needs.

    Turned by a right angle only moves count, so the logit is as far as these portions can take it; and it
    grows with the angle all the way, so bisection is safe. An order inside at once is not turned at all.
    """
    moves = slab.moves[:, None].expand_as(slopes)
    slopes, steep = standard(slopes, slab.mask), standard(moves, slab.mask)

    def order(angle: PerVariant) -> Int[Tensor, "batch variant token"]:
        keys = torch.addcmul(angle.cos()[..., None] * slopes, angle.sin()[..., None], steep)
        return keys.masked_fill_(~slab.mask[:, None], -math.inf).argsort(2, descending=True)

    def logit(order: Int[Tensor, "batch variant token"]) -> PerVariant:
        return (portions * moves.gather(2, order)).sum(2)

    least = torch.zeros_like(slab.low)
    begun = logit(order(least))
    side = (begun < slab.low).to(begun) - (begun > slab.high).to(begun)
    edge = torch.where(side > 0, slab.low, slab.high)
    most = least + math.pi / 2
    for _ in range(TURNS):
        middle = 0.5 * (least + most)
        enough = side * (logit(order(side * middle)) - edge) >= 0
        least, most = torch.where(enough, least, middle), torch.where(enough, middle, most)
    inner, outer = order(side * most), order(side * least)
    share = (logit(inner) - edge) / (logit(inner) - logit(outer))
    given, nothing = portions.expand_as(slopes), torch.zeros_like(slopes)
    return Turned(
        nothing.scatter(2, inner, given),
        nothing.scatter(2, outer, given),
        (side.abs() * share.nan_to_num(0.0, 0.0, 0.0)).clamp(0.0, 1.0),
    )


def best_linear(
    slopes: Variants, slab: Slab, cap: Float[Tensor, " batch"], mass: Float[Tensor, " batch"]
) -> Variants:
    """Maximise `alpha . slopes` over attentions of this mass, below the cap and within the slab: exactly.

    Without the slab the best fills tokens to the cap in the order of their slopes. On both sides of the edge
    stand two such fills with one Lagrangian; their mixture on the edge shares it, and is the optimum.
    """
    filled = torch.arange(slopes.shape[2], device=slopes.device) * cap[:, None]
    portions = (mass[:, None] - filled).clamp_min(0.0).minimum(cap[:, None])
    inside, outside, share = allocate_at_edge(portions[:, None], slopes, slab)
    return inside + share[..., None] * (outside - inside)


def standard(slopes: Variants, mask: Bool[Tensor, "batch token"]) -> Variants:
    """Centred and scaled to one standard deviation over the real tokens, and zero on padding."""
    counts = mask.sum(1)[:, None, None]
    centred = (slopes - (slopes * mask[:, None]).sum(2, keepdim=True) / counts) * mask[:, None]
    return centred / (centred.pow(2).sum(2, keepdim=True) / counts).sqrt().clamp_min(1e-12)
