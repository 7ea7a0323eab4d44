"""How far attention has moved, on tensors: natural logarithms, exact zeros, gradients where they exist."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

LN2 = math.log(2)


def jensen_shannon(p: Float[Tensor, "*#batch token"], q: Float[Tensor, "*#batch token"]) -> Tensor:
    """The mean divergence of p and q from their midpoint over the last axis, in [0, ln 2].

    A zero contributes exactly nothing, neither to the sum nor to the gradient; NaN stays NaN.
    """
    both = p + q
    return (0.5 * (_from_midpoint(p, both) + _from_midpoint(q, both)).sum(-1)).clamp(0.0, LN2)


def _from_midpoint(p: Tensor, both: Tensor) -> Tensor:
    """p ln(p / m) for the midpoint m, given as p + q.

    Zeros leave before the division, not after the logarithm: backward would turn 0 * inf into NaN.
    """
    nothing = p == 0
    ratio = 2.0 * p.masked_fill(nothing, 0.5) / both.masked_fill(nothing, 1.0)
    return p * ratio.log()


def total_variation(p: Float[Tensor, "*#batch outcome"], q: Float[Tensor, "*#batch outcome"]) -> Tensor:
    """Half the summed absolute differences over the last axis."""
    return 0.5 * (p - q).abs().sum(-1)


def at_corners(weights: Float[Tensor, "*batch token"]) -> Float[Tensor, "*batch token"]:
    """The divergence of `weights` from resting on each token alone.

    A token that loses everything contributes half its weight times ln 2, so each corner needs only its own
    weight p and the mass of the others: 0.5 [ln(2 / (1 + p)) + p ln(2p / (1 + p)) + (mass - p) ln 2].
    """
    others = weights.sum(-1, keepdim=True) - weights
    outside = (2.0 / (1.0 + weights)).log()
    kept = torch.xlogy(weights, weights) + weights * outside
    return (0.5 * (outside + kept + others * LN2)).clamp(0.0, LN2)


def attainable(
    weights: Float[Tensor, "batch token"], mask: Bool[Tensor, "batch token"]
) -> Float[Tensor, " batch"]:
    """The largest divergence that any attention over the real tokens can have; 0 for one token.

    The divergence is convex, so a corner of the simplex is furthest away: the one with the least weight.
    NaN where a real token's weight is NaN, or where there is no real token.
    """
    corners = at_corners(weights.masked_fill(~mask, 0.0)).masked_fill(~mask, float("-inf"))
    return corners.amax(-1).masked_fill(~mask.any(-1), float("nan"))
