"""Adversaries no peakier than the model's own attention (Jain & Wallace 2019, JW-5): an objection met.

The strongest adversary rests on one or two tokens, as hardly any attention does. Two fairer opponents must
keep the output too: a *permutation* of the text's own weights, and any attention whose largest weight is at
most the own largest. No fast way to either optimum is known, so both functions return what they found: a
lower bound of the optimum, checked against the output, and at least 0, as the own attention is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.evidence.adversary.capped_simplex import (
    PerToken,
    Slab,
    Variants,
    allocate_at_edge,
    best_linear,
    standard,
)
from attentest.evidence.adversary.slab import slab
from attentest.evidence.adversary.strongest import MASS_TOLERANCE
from attentest.evidence.permutation import permuted
from attentest.model.divergence import jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from attentest.shapes import Mask, Values

SWAPS = 1000  # proposed to every chain
# Chain 0 stays hot enough to visit any order, the last one ends cold. A swap changes the divergence by about
# 1 / tokens, so heat is in that unit; leaving the slab costs per standard deviation of a permuted logit.
HOT, COLD = 4.0, 2e-4
STRICT, LENIENT = 3.0, 0.1
CALM, WILD = 0.1, 3.0  # noise on the slopes of a start, in standard deviations of theirs
ROUNDS = 2  # of the convex-concave procedure; a third gains less than 1e-4 on average
FLOOR = 0.01  # of the cap: the slope at zero is minus infinity, and an empty token would stay so for ever
TINY = 1e-300  # in place of weights that are exactly zero, whose logarithm is not needed


@final
@dataclass(frozen=True, kw_only=True)
class Matched:
    """The furthest attention found for each epsilon; NaN for undefined texts, and beyond two classes."""

    divergence: Float[Tensor, "epsilon batch"]
    weights: Float[Tensor, "epsilon batch token"]  # the own ones where nothing better was found


class _Texts(NamedTuple):
    """A batch in double precision, with undefined texts replaced by harmless ones."""

    weights: PerToken
    values: Values
    bias: Float[Tensor, " class"]
    defined: Bool[Tensor, " batch"]
    slab: Slab  # one column for each start of each epsilon


@torch.no_grad()
def best_permutation(
    weights: PerToken,
    values: Values,
    bias: Float[Tensor, " class"],
    mask: Mask,
    epsilons: Sequence[float],
    *,
    rng: torch.Generator,
    draws: int = 8,
) -> Matched:
    """The best order of each text's own weights that was found: a lower bound; NaN beyond two classes.

    JSD is a sum over tokens of f(weight given, own weight), and f is submodular (its mixed derivative is
    -1 / (2 (x + y))): were it not for the output, the reversed order would be best. Half of the `draws`
    chains of each epsilon start there, turned until the output is kept, the others anywhere. Then they swap
    two tokens at a time; a swap for the worse is taken with a chance that falls as the chain cools.
    """
    _check(epsilons, draws)
    if values.shape[2] > 2:
        return _unknown(weights, len(epsilons))
    texts = _texts(weights, values, bias, mask, epsilons, draws)
    cold = (torch.arange(draws, device=mask.device) / max(draws - 1, 1)).double().repeat(len(epsilons))
    anywhere = permuted(texts.weights, mask, len(cold), rng=rng)
    starts = torch.where(cold[:, None] < 0.5, anywhere, _reversed_and_turned(texts))
    return _best(texts, _anneal(texts, starts, cold, rng), epsilons)


@torch.no_grad()
def capped(
    weights: PerToken,
    values: Values,
    bias: Float[Tensor, " class"],
    mask: Mask,
    epsilons: Sequence[float],
    *,
    rng: torch.Generator,
    draws: int = 12,
) -> Matched:
    """The best attention found with no weight above the own largest: a lower bound; NaN beyond two classes.

    JSD is convex, so chords from no weight to the cap lie above it, and the attention that is best for them
    has all but two weights at their ends, where they touch. That linear programme is the first start of each
    epsilon; noisy copies of it are the other `draws - 1`. The convex-concave procedure goes on from each:
    linear programmes again, with the slopes at the point before.
    """
    _check(epsilons, draws)
    if values.shape[2] > 2:
        return _unknown(weights, len(epsilons))
    texts = _texts(weights, values, bias, mask, epsilons, draws)
    cap, mass = texts.weights.amax(1), texts.weights.sum(1)
    slopes = _with_noise(_chords(texts.weights, cap[:, None]), mask, len(epsilons), draws, rng)
    found = []
    for _ in range(ROUNDS):
        found.append(best_linear(slopes, texts.slab, cap, mass))
        slopes = _slopes(found[-1].maximum(FLOOR * cap[:, None, None]), texts.weights)
    return _best(texts, torch.cat(found, dim=1), epsilons)


def _reversed_and_turned(texts: _Texts) -> Variants:
    """Own weights in the order of f's slopes, which is the reversed one; taken at one weight for each start,
    as that decides which tokens change places first when the order is turned."""
    largest, mean = texts.weights.amax(1, keepdim=True), 1 / texts.slab.mask.sum(1, keepdim=True)
    share = torch.linspace(0, 1, texts.slab.low.shape[1]).to(largest)
    slopes = _slopes((largest * (mean / largest) ** share)[..., None], texts.weights)
    return allocate_at_edge(texts.weights.sort(1, descending=True).values[:, None], slopes, texts.slab).inside


def _anneal(
    texts: _Texts, starts: Variants, cold: Float[Tensor, " variant"], rng: torch.Generator
) -> Variants:
    """Every chain's best feasible order. Arrays are flat, one row a chain, as a swap touches two places."""
    batch, chains, tokens = starts.shape
    counts = texts.slab.mask.sum(1).repeat_interleave(chains)
    own = texts.weights.clamp_min(TINY).repeat_interleave(chains, 0).flatten()
    unit = _spread(texts)[:, None]
    moves = (texts.slab.moves / unit).repeat_interleave(chains, 0).flatten()
    low, high = (texts.slab.low / unit).flatten(), (texts.slab.high / unit).flatten()
    cold = cold.repeat(batch)
    penalty = STRICT * (LENIENT / STRICT) ** cold
    heat, cooling = HOT / counts * (COLD / HOT) ** (0.5 * cold), (COLD / HOT) ** (0.5 * cold / SWAPS)
    rows = torch.arange(batch * chains, device=starts.device) * tokens

    now = starts.flatten()
    logit = (now * moves).view(-1, tokens).sum(1)
    divergence = jensen_shannon(now.view(-1, tokens), own.view(-1, tokens))
    outside = _outside(logit, low, high)
    most, best = torch.zeros_like(logit), texts.weights.repeat_interleave(chains, 0)
    for _ in range(SWAPS + 1):
        better = ((outside <= 0) & (divergence > most)).nonzero()[:, 0]
        most[better], best[better] = divergence[better], now.view(-1, tokens)[better]
        drawn = torch.rand(3, len(rows), generator=rng).to(now)
        i, j = (drawn[:2] * counts).long() + rows  # texts are left-aligned: real tokens come first
        x, y, at_i, at_j = now[i], now[j], own[i], own[j]
        moved = logit + (y - x) * (moves[i] - moves[j])
        # Weights keep their x ln x in every order, and the midpoints of a pair their sum.
        gained = 0.5 * (_x_ln_x(x + at_i) + _x_ln_x(y + at_j) - _x_ln_x(y + at_i) - _x_ln_x(x + at_j))
        left = _outside(moved, low, high)
        taken = gained - penalty * (left - outside) > heat * drawn[2].log()
        logit, outside = torch.where(taken, moved, logit), torch.where(taken, left, outside)
        divergence = torch.where(taken, divergence + gained, divergence)
        now[i], now[j] = torch.where(taken, y, x), torch.where(taken, x, y)
        heat.mul_(cooling)
    return best.view(batch, chains, tokens)


def _outside(logit: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """How far a logit is from the slab."""
    return (low - logit).maximum(logit - high).clamp_min_(0.0)


def _x_ln_x(x: Tensor) -> Tensor:
    return x * x.log()


def _spread(texts: _Texts) -> Float[Tensor, " batch"]:
    """The standard deviation of the logit over all orders of the own weights, in closed form."""
    counts = texts.slab.mask.sum(1)
    centred = texts.slab.moves - texts.slab.moves.sum(1, keepdim=True) / counts[:, None]
    variance = (centred * texts.slab.mask).pow(2).sum(1) / (counts - 1).clamp_min(1)
    return (variance * ((texts.weights**2).sum(1) - 1 / counts)).clamp_min(1e-24).sqrt()


def _slopes(at: Float[Tensor, "batch variant #token"], own: PerToken) -> Variants:
    """The derivative of JSD in each weight, 0.5 ln(2x / (x + a))."""
    return 0.5 * (2 * at / (at + own[:, None])).log()


def _chords(own: PerToken, cap: Float[Tensor, "batch 1"]) -> PerToken:
    """The mean slope of each token's part of JSD between no weight and the cap."""
    both = own + cap
    gain = torch.xlogy(cap, cap) + torch.xlogy(own, own) - torch.xlogy(both, 0.5 * both) - math.log(2) * own
    return 0.5 * gain / cap


def _with_noise(slopes: PerToken, mask: Mask, epsilons: int, draws: int, rng: torch.Generator) -> Variants:
    """The slopes themselves and copies with more and more noise, for each epsilon."""
    levels = torch.cat([torch.zeros(1), CALM * (WILD / CALM) ** torch.linspace(0, 1, draws - 1)])
    drawn = torch.randn(int(mask.sum()), epsilons, draws, generator=rng) * levels  # for real tokens only
    noise = slopes.new_zeros(*mask.shape, epsilons * draws)
    noise[mask] = drawn.flatten(1).to(noise)
    return standard(slopes[:, None], mask) + noise.transpose(1, 2)


def _texts(
    weights: Tensor, values: Tensor, bias: Tensor, mask: Tensor, epsilons: Sequence[float], draws: int
) -> _Texts:
    weights, bias = weights.double().masked_fill(~mask, 0.0), bias.double()
    values = values.double().masked_fill(~mask[..., None], 0.0)
    is_attention = ((weights.sum(1) - 1.0).abs() <= MASS_TOLERANCE) & (weights >= 0).all(1)
    defined = is_attention & values.isfinite().flatten(1).all(1) & bias.isfinite().all()
    weights = torch.where(defined[:, None], weights, mask.double() / mask.sum(1, keepdim=True))
    values, bias = values.where(defined[:, None, None], 0.0), bias.nan_to_num(0.0, 0.0, 0.0)
    alone = values[..., 0] if len(bias) == 1 else values[..., 1] - values[..., 0]
    logit = (weights * alone).sum(1)
    moves = (alone - logit[:, None]).masked_fill(~mask, 0.0)
    logit = logit + (bias[0] if len(bias) == 1 else bias[1] - bias[0])
    sides = [slab(logit, float(epsilon)) for epsilon in epsilons]
    low, high = (torch.stack(s, dim=1).repeat_interleave(draws, 1) for s in zip(*sides, strict=True))
    return _Texts(weights, values, bias, defined, Slab(moves, low, high, mask))


def _best(texts: _Texts, found: Variants, epsilons: Sequence[float]) -> Matched:
    """The furthest of all found whose recomputed output is within each epsilon.

    What one epsilon allows a larger one does too, so all that was found counts for each.
    """
    everything = torch.cat([texts.weights[:, None], found], dim=1)
    outputs = distribution(everything @ texts.values + texts.bias)
    change = total_variation(outputs, outputs[:, :1])
    far = jensen_shannon(everything, texts.weights[:, None])
    divergence, weights = [], []
    for epsilon in epsilons:
        most, which = far.where(change <= epsilon, -1.0).max(1)
        divergence.append(most)
        weights.append(everything[torch.arange(len(which), device=which.device), which])
    undefined = ~texts.defined
    return Matched(
        divergence=torch.stack(divergence).masked_fill(undefined, math.nan),
        weights=torch.stack(weights).masked_fill(undefined[:, None], math.nan),
    )


def _unknown(weights: PerToken, epsilons: int) -> Matched:
    nothing = weights.new_full((epsilons, *weights.shape), math.nan, dtype=torch.float64)
    return Matched(divergence=nothing[..., 0].clone(), weights=nothing)


def _check(epsilons: Sequence[float], draws: int) -> None:
    if draws < 1 or not epsilons or not all(0 < epsilon <= 1 for epsilon in epsilons):
        raise Refusal(
            "a peakiness-matched adversary",
            got=f"{draws} draws and epsilons {list(epsilons)}",
            needs="at least 1 draw, and epsilons above 0 and at most 1",
            way_out="The papers let the output change by 0.01, and by 0.05 with a query.",
        )
