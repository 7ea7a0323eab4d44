"""The attention furthest from a model's own among those that keep a binary output: exactly, by vertices.

Let v be what each token says (its logit, alone), a the own attention, and alpha any other. The output moves
by at most epsilon iff `low <= alpha . m <= high`, where m = v - a . v: a slab. Then:

1. The Jensen-Shannon divergence from a is convex in alpha: it is a sum of x ln(2x / (x + a)) + a ln(2a / (x +
   a)), whose second derivative a / (x (x + a)) is positive. A convex function on a polytope is largest at a
   vertex.
2. A vertex of {alpha >= 0, sum alpha = 1, low <= alpha . m <= high} makes as many independent constraints
   tight as there are tokens. The sum is one; of the two sides of the slab at most one can be tight (low <
   high); so at least T - 2 are alpha_t = 0. What is left is one token inside the slab, or two tokens on
   either side of `low` (or of `high`) mixed so that the side is met exactly.

So looking at every such token and pair finds the global maximum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.model.divergence import LN2, at_corners

# Pairs looked at in one go: half a megabyte a temporary stays in the cache, whatever the length of the text.
CHUNK = 1 << 16
# A round costs about as much as looking at this many pairs, so padding below it is cheaper than a new round.
ROUND = 1 << 12
MARGIN = 1e-9  # of probability, so that rounding cannot carry the recomputed output past epsilon

PerText = Float[Tensor, " batch"]
PerToken = Float[Tensor, "batch token"]


class Line(NamedTuple):
    """Each text's tokens in the order of their moves, so that every side of a slab is one run of them."""

    weights: PerToken
    moves: PerToken  # plus infinity on padding, which therefore comes last
    order: Int[Tensor, "batch token"]
    counts: Int[Tensor, " batch"]


class Crossings(NamedTuple):
    """Sides of slabs with tokens before and behind: the first `below` tokens, and `above` from `start` on."""

    text: Int[Tensor, " side"]
    level: Float[Tensor, " side"]
    below: Int[Tensor, " side"]
    start: Int[Tensor, " side"]
    above: Int[Tensor, " side"]

    def take(self, rows: Tensor) -> Crossings:
        """Some of them."""
        return Crossings(*(field[rows] for field in self))


class Best(NamedTuple):
    """For each text or side the divergence reached, and the two tokens (of the line) that reach it."""

    divergence: Float[Tensor, " found"]
    first: Int[Tensor, " found"]
    second: Int[Tensor, " found"]


def line_up(weights: PerToken, moves: PerToken, mask: Bool[Tensor, "batch token"]) -> Line:
    """Sort once; every epsilon then cuts the same line."""
    moves, order = moves.masked_fill(~mask, float("inf")).sort(dim=1)
    return Line(weights.masked_fill(~mask, 0.0).gather(1, order), moves, order, mask.sum(1))


def slab(logit: PerText, epsilon: float) -> tuple[PerText, PerText]:
    """How far the logit may fall and rise while its probability stays within epsilon.

    logit(p + e) - logit(p) = log1p(e / p) - log1p(-e / q) with q = 1 - p: no difference of near numbers, and
    from ln p even where p itself underflows. Where p - e <= 0, or p + e >= 1, that side is open.
    """
    reach = epsilon - min(MARGIN, epsilon / 1000)
    high = _raised(logit, reach) - _lowered(-logit, reach, epsilon)
    low = _lowered(logit, reach, epsilon) - _raised(-logit, reach)
    return low, high


def _raised(logit: PerText, reach: float) -> PerText:
    log_odds = math.log(reach) - torch.nn.functional.logsigmoid(logit)
    return torch.logaddexp(torch.zeros_like(log_odds), log_odds)


def _lowered(logit: PerText, reach: float, epsilon: float) -> PerText:
    p = torch.sigmoid(logit)
    is_open = p <= epsilon
    return torch.log1p(-reach / p.masked_fill(is_open, 1.0)).masked_fill(is_open, float("-inf"))


def furthest(line: Line, low: PerText, high: PerText) -> PerToken:
    """The vertex of the largest divergence, its tokens in the text's own order; NaN if there is no vertex."""
    corner = _best_corner(line, low, high)
    sides = torch.stack([low, high], dim=1)
    pairs = _best_pair_of_each_side(line, sides.flatten())
    divergence, side = pairs.divergence.view(-1, 2).max(dim=1, keepdim=True)
    first, second = (tokens.view(-1, 2).gather(1, side) for tokens in (pairs.first, pairs.second))
    # The shares with which the two meet the side; a corner needs none.
    ahead = line.moves.gather(1, second) - sides.gather(1, side)
    share = ahead / (line.moves.gather(1, second) - line.moves.gather(1, first))
    paired = divergence > corner.divergence[:, None]
    share = torch.where(paired, share, 1.0)
    first = torch.where(paired, first, corner.first[:, None])
    mixed = torch.zeros_like(line.weights).scatter(1, second, 1.0 - share).scatter(1, first, share)
    empty = torch.maximum(divergence[:, 0], corner.divergence) == float("-inf")
    return torch.zeros_like(mixed).scatter(1, line.order, mixed).masked_fill(empty[:, None], float("nan"))


def _best_corner(line: Line, low: PerText, high: PerText) -> Best:
    """One token with everything; padding, at plus infinity, is outside even where the slab is open."""
    inside = (line.moves >= low[:, None]) & (line.moves <= high[:, None]) & line.moves.isfinite()
    divergence, token = at_corners(line.weights).masked_fill(~inside, float("-inf")).max(dim=1)
    return Best(divergence, token, token)


def _best_pair_of_each_side(line: Line, levels: Float[Tensor, " side"]) -> Best:
    """Two sides a text, so side number s belongs to text s // 2; minus infinity where nothing crosses it."""
    crossings = _crossings(line, levels)
    nowhere = torch.zeros_like(crossings.text)
    best = Best(torch.full_like(levels, float("-inf")), nowhere, nowhere.clone())
    for rows in _alike(crossings):
        for whole, part in zip(best, _best_pair(line, crossings.take(rows)), strict=True):
            whole[rows] = part
    return best


def _crossings(line: Line, levels: Float[Tensor, " side"]) -> Crossings:
    text = torch.arange(len(line.moves), device=levels.device).repeat_interleave(2)
    moves = line.moves[text]
    below = (moves < levels[:, None]).sum(1)
    start = (moves <= levels[:, None]).sum(1)  # a token exactly on the side needs no partner
    return Crossings(text, levels, below, start, line.counts[text] - start)


def _alike(crossings: Crossings) -> Iterator[Tensor]:
    """Numbers of crossings to look at together: of like shape, so that padded rectangles waste little."""
    shapes = list(zip(crossings.below.tolist(), crossings.above.tolist(), strict=True))
    real = [number for number, (below, above) in enumerate(shapes) if below > 0 and above > 0]
    real.sort(key=lambda number: (round(3 * math.log2(sum(shapes[number]))), shapes[number][0]))
    together: list[int] = []
    rows = columns = area = 0
    for number in real:
        below, above = shapes[number]
        rows, columns, area = max(rows, below), max(columns, above), area + below * above
        padded = (len(together) + 1) * rows * columns
        if together and (padded > CHUNK or padded > 1.5 * area + ROUND):
            yield torch.tensor(together, device=crossings.text.device)
            together, rows, columns, area = [], below, above, below * above
        together.append(number)
    if together:
        yield torch.tensor(together, device=crossings.text.device)


def _best_pair(line: Line, crossings: Crossings) -> Best:
    """The best pair of a token below and a token above each side, some rows of the rectangle at a time."""
    below = _run(line, crossings, torch.zeros_like(crossings.start), crossings.below)
    above = _run(line, crossings, crossings.start, crossings.above)
    (texts, rows), columns = below.weights.shape, above.weights.shape[1]
    best = Best(below.weights.new_full((texts,), float("-inf")), crossings.text, crossings.text)
    at_once = max(1, CHUNK // (texts * columns))
    for begun in range(0, rows, at_once):
        some = Run(*(field[:, begun : begun + at_once] for field in below))
        gain, pair = _gains(some, above).flatten(1).max(dim=1)
        here = Best(gain, begun + pair // columns, crossings.start + pair % columns)
        better = gain > best.divergence
        best = Best(*(torch.where(better, new, old) for new, old in zip(here, best, strict=True)))
    mass = line.weights.sum(1)[crossings.text]
    return best._replace(divergence=0.5 * ((mass + 1.0) * LN2 + best.divergence))


class Run(NamedTuple):
    """Tokens on one side of a level: own weight, distance to the level, and f(weight), f(x) = x ln x."""

    weights: Float[Tensor, "side place"]
    distance: Float[Tensor, "side place"]
    kept: Float[Tensor, "side place"]  # minus infinity on padding, which therefore is never chosen


def _run(line: Line, crossings: Crossings, start: Tensor, count: Tensor) -> Run:
    offset = torch.arange(int(count.max()), device=start.device)
    place = (start[:, None] + offset).clamp_max(line.moves.shape[1] - 1)
    real = offset < count[:, None]
    text = crossings.text[:, None]
    weights, moves = line.weights[text, place], line.moves[text, place]
    distance = (moves - crossings.level[:, None]).abs().masked_fill(~real, 1.0)
    return Run(weights, distance, torch.xlogy(weights, weights).masked_fill(~real, float("-inf")))


def _gains(below: Run, above: Run) -> Float[Tensor, "side row column"]:
    """What each pair adds to 0.5 (mass + 1) ln 2, doubled.

    With shares x on token i and y = 1 - x on token j all other tokens lose everything, and twice the
    divergence is (mass + 1) ln 2 + f(x) + f(y) - f(x + a_i) - f(y + a_j) + f(a_i) + f(a_j): four logarithms.
    """
    near, far = below.distance[:, :, None], above.distance[:, None]
    both = near + far
    gains = below.kept[:, :, None] + above.kept[:, None]
    for share, own in ((far / both, below.weights[:, :, None]), (near / both, above.weights[:, None])):
        gains += _x_log_x(share)
        gains -= _x_log_x(share.add_(own))
    return gains


def _x_log_x(x: Tensor) -> Tensor:
    """As `xlogy(x, x)`, at half its price; a share may underflow to zero, whose logarithm is never taken."""
    return x.clamp_min(torch.finfo(x.dtype).tiny).log_().mul_(x)
