"""LIME and Shapley values of one set of parts, of which so many are drawn as a precision asks for.

LIME and KernelSHAP are both weighted regressions of answers on who is there, and differ in the weights. The
parts that KernelSHAP is best drawn from have every size alike (Musco and Witter 2025, by leverage), and so
has our LIME. So both get the same parts. Each comes with its complement (Covert and Lee 2021): only the
difference of the two answers matters to a Shapley value. Parts of one unit, and of all but one, weigh most;
there are few, leave-one-out asks half of them, and none is left to chance: only the sizes between are drawn.

A text is done when the standard error of its values, measured by how far the drawn pairs disagree, is small
beside the spread of these values over its units: beyond that, draws no longer change a ranking. It is done,
too, when as many draws as it may have would not get it there, as is usual of a model that learnt nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.erasure.drawn_units import Units
from attentest.evidence.erasure.known import KnownParts
from attentest.evidence.importances.lime import PENALTY, nearness
from attentest.evidence.importances.presence import (
    Explained,
    PerText,
    PerUnit,
    answers_to_parts,
    explained,
    without_lone_units,
)
from attentest.evidence.permutation import orders
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal

Pairs = Bool[Tensor, "batch pair unit"]  # one half of each pair; the other half is the rest of the text
PerPair = Float[Tensor, "batch pair"]
ALL_OF = 5  # a text of at most so many units is asked about in all its parts
NOMINAL = 200.0  # parts that LIME's penalty counts as: its slopes do not depend on how many were drawn


@final
@dataclass(frozen=True, kw_only=True)
class Precision:
    """How exact values are to be: their standard error over their spread in a text, and the price at most."""

    error: float = 0.1
    first: int = 8  # pairs of parts that are drawn of a text before anything is known of the error
    enough: int = 8  # pairs before an error counts as small; as out of reach it counts from the first on
    most: int = 512  # after so many pairs a text is done in any case
    steps: int = 31  # of integrated gradients, at most
    # The error of a few draws is not known well: so many times the most are thought within reach.
    reach: float = 2.0

    def __post_init__(self) -> None:
        if self.error <= 0 or self.first < 2 or self.most < self.first:
            raise Refusal(
                "precision of importances",
                got=f"an error of {self.error:g}, {self.first} pairs at first and {self.most} at most",
                needs="an error above 0, and at least 2 pairs at first",
                way_out="0.1 is the default.",
            )

    def wanted(self, error: PerText, drawn: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        """How many more pairs a text gets: as many as its error asks for, yet no more than it has already.

        The error falls with the root of the number of draws. None where a text is done, or will never be.
        """
        needed = drawn * (error / self.error).square()
        goal = needed.ceil().clamp(min=min(self.enough, self.most), max=self.most).minimum(2.0 * drawn)
        done = (drawn >= self.enough) & (error <= self.error)
        over = done | (drawn >= self.most) | (needed > self.reach * self.most)
        more = (goal.long() - drawn).masked_fill(over, 0)
        return torch.where(drawn == 0, self.first, more)


@final
@dataclass(frozen=True)
class Sampled:
    """Both values of every unit, and of every text how many pairs were drawn and the error that is left."""

    lime: PerUnit
    shapley: PerUnit
    pairs: Int[Tensor, " batch"]
    error: PerText  # the larger of both; 0 where no part was left to chance


def sampled(
    model: Model,
    reading: Reading,
    precision: Precision,
    *,
    rng: torch.Generator,
    known: KnownParts | None = None,
    units: Units | None = None,
) -> Sampled:
    """LIME's slopes and Shapley values, signed: positive is for the predicted class.

    Where `units` are named, they alone come and go: the others are in every part of the text, and get 0.
    """
    about, mask = explained(model, reading), reading.mask if units is None else units
    if units is not None:
        others = (reading.mask & ~units)[:, None]
        about = replace(about, unread=answers_to_parts(model, reading, others, known=known)[:, 0])
    parts, chance = certain_pairs(mask)
    answers = _answers(model, reading, mask, parts, known)
    counted = parts.any(2) & False  # which pairs are drawn; the certain ones are not
    drawn = torch.zeros(len(parts), dtype=torch.long, device=parts.device)
    several = mask.sum(1) > ALL_OF
    while True:
        game = _Game(mask, about, parts, answers, _chances(chance, counted, drawn), counted)
        shapley, lime = game.shapley(), game.lime()
        error = torch.maximum(shapley.error, lime.error)
        wanted = precision.wanted(error, drawn) * several
        if not wanted.any():
            break
        more = drawn_pairs(mask, wanted, rng=rng)
        parts = torch.cat([parts, more], dim=1)
        answers = torch.cat([answers, _answers(model, reading, mask, more, known)], dim=1)
        counted = torch.cat([counted, more.any(2)], dim=1)
        drawn = drawn + wanted
    one, other = (without_lone_units(each.values.to(reading.embeddings), reading) for each in (lime, shapley))
    return Sampled(one, other, drawn, error)


def certain_pairs(mask: Bool[Tensor, "batch unit"]) -> tuple[Pairs, PerPair]:
    """The pairs that are always asked about, and the chance of either half among parts of all sizes alike.

    They are every unit alone beside all the others; of a text of a few units, all pairs there are.
    """
    lengths = mask.sum(1)
    n = lengths[:, None].double().clamp_min(2)
    alone = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device) & mask[:, None]
    chance = (1 / (n * (n - 1))).expand(mask.shape) * mask
    room = alone.new_zeros(len(mask), len(_all_pairs(ALL_OF)), mask.shape[1])
    parts, chance = torch.cat([alone, room], 1), torch.cat([chance, chance.new_zeros(room.shape[:2])], 1)
    for text in (lengths <= ALL_OF).nonzero()[:, 0].tolist():
        parts[text], chance[text] = False, 0.0
        there = mask[text].nonzero()[:, 0]
        for place, units in enumerate(_all_pairs(count := int(lengths[text]))):
            parts[text, place, there[list(units)]] = True
            chance[text, place] = 1 / ((count - 1) * comb(count, len(units)))
    return parts, chance


def _all_pairs(units: int) -> list[tuple[int, ...]]:
    """One half of every pair of a text of so many units: the smaller, or the one that has the first unit."""
    sizes = range(1, units // 2 + 1)
    return [p for size in sizes for p in combinations(range(units), size) if 2 * size < units or 0 in p]


def drawn_pairs(
    mask: Bool[Tensor, "batch unit"], wanted: Int[Tensor, " batch"], *, rng: torch.Generator
) -> Pairs:
    """Random pairs of which neither half is one unit, so many of each text and empty ones behind them.

    All sizes are alike, spread evenly over the draws of a text.
    """
    count, lengths = int(wanted.max()), mask.sum(1)
    begin = torch.rand(len(mask), 1, generator=rng, dtype=torch.float64).to(mask.device)
    numbers = torch.arange(count, device=mask.device)
    spread = ((numbers + begin) / wanted.clamp_min(1)[:, None]) * (lengths[:, None] - 3)
    place = orders(mask, count, rng=rng).argsort(2)
    there = mask[:, None] & (numbers < wanted[:, None])[..., None]
    return (place < 2 + spread.long()[..., None]) & there


def _answers(
    model: Model, reading: Reading, mask: Bool[Tensor, "batch unit"], parts: Pairs, known: KnownParts | None
) -> Float[Tensor, "batch pair 2"]:
    """The probability of the predicted class under each half of each pair, beside what is in no half."""
    asked = parts.any(2, keepdim=True)
    others = (reading.mask & ~mask)[:, None] & asked
    halves = torch.cat([parts | others, (~parts & mask[:, None] & asked) | others], dim=1)
    both = answers_to_parts(model, reading, halves, known=known)
    return torch.stack(both.double().chunk(2, dim=1), dim=2)


def _chances(chance: PerPair, counted: Bool[Tensor, "batch all"], drawn: Int[Tensor, " batch"]) -> Tensor:
    """The chance of either half: what is left by the certain pairs is shared by the drawn ones."""
    left = (0.5 - chance.sum(1)).clamp_min(0) / drawn.clamp_min(1)
    return torch.cat([chance, counted[:, chance.shape[1] :] * left[:, None]], dim=1)


@final
@dataclass(frozen=True)
class _Values:
    """What each unit is worth, and the standard error of that by its spread over the units."""

    values: Float[Tensor, "batch unit"]
    error: PerText


@final
@dataclass(frozen=True)
class _Game:
    """Texts, the parts asked of them with their answers, and how much each part stands for."""

    mask: Bool[Tensor, "batch unit"]
    about: Explained
    parts: Pairs
    answers: Float[Tensor, "batch pair 2"]
    chance: PerPair
    drawn: Bool[Tensor, "batch pair"]

    def shapley(self) -> _Values:
        """KernelSHAP: the difference between both halves' answers, regressed on who is in which half.

        The values are held to the sum they must have, so what is regressed is how they differ from its
        share; that has a sum of 0, and so does whatever it is regressed on, once centred.
        """
        mask = self.mask[:, None].double()
        units = mask.sum(2)
        size = self.parts.sum(2)
        weights = self.chance / (size * (units - size)).clamp_min(1)
        share = (self.about.probability - self.about.unread).double()[:, None] / units
        signs = (2.0 * self.parts - 1.0) * mask
        beyond = self.answers[..., 0] - self.answers[..., 1] - share * signs.sum(2)
        centred = (signs - signs.sum(2, keepdim=True) / units[..., None]) * mask
        found = _regressed(centred, beyond, weights, _along_the_sum(mask[:, 0]))
        moved = _influence(centred, beyond, weights, found)
        return _Values(found.slopes + share * mask[:, 0], self._error(found.slopes, moved))

    def lime(self) -> _Values:
        """A ridge regression on both halves and the whole text, near parts counting more."""
        mask, rest = self.mask, ~self.parts & self.mask[:, None]
        present = torch.cat([self.parts, rest, mask[:, None]], dim=1)
        whole = self.about.probability.double()[:, None]
        answers = torch.cat([self.answers[..., 0], self.answers[..., 1], whole], dim=1)
        near = nearness(present, mask)
        weights = near * torch.cat([self.chance * NOMINAL, self.chance * NOMINAL, torch.ones_like(whole)], 1)
        shares = (weights / weights.sum(1, keepdim=True))[..., None]
        centred = present.double() - (shares * present).sum(1, keepdim=True)
        beyond = answers - (shares[..., 0] * answers).sum(1, keepdim=True)
        found = _regressed(centred, beyond, weights, torch.eye(mask.shape[1], device=mask.device) * PENALTY)
        one, other, _ = _influence(centred, beyond, weights, found).split([self.parts.shape[1]] * 2 + [1], 1)
        return _Values(found.slopes, self._error(found.slopes, one + other))

    def _error(self, slopes: Tensor, moved: Float[Tensor, "batch pair unit"]) -> PerText:
        """How far the drawn pairs would move the values if others had come, by the spread of the values."""
        drawn, mask = self.drawn[..., None], self.mask
        count = self.drawn.sum(1).double()
        moved = (moved - (moved * drawn).sum(1, keepdim=True) / count.clamp_min(1)[:, None, None]) * drawn
        squares = moved.square().sum((1, 2)) * count / (count - 1).clamp_min(1)
        mean = (slopes * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        spread = ((slopes - mean) * mask).square().sum(1)
        return torch.where(squares > 0, (squares / spread.clamp_min(1e-300)).sqrt(), 0.0)


@final
@dataclass(frozen=True)
class _Regression:
    slopes: Float[Tensor, "batch unit"]
    inverse: Float[Tensor, "batch unit unit"]


def _regressed(x: Tensor, y: Tensor, weights: Tensor, penalty: Tensor) -> _Regression:
    """Weighted least squares of every text at once."""
    weighed = weights[..., None] * x
    inverse = torch.linalg.inv(weighed.mT @ x + penalty)
    return _Regression((inverse @ (weighed.mT @ y[..., None]))[..., 0], inverse)


def _influence(x: Tensor, y: Tensor, weights: Tensor, found: _Regression) -> Float[Tensor, "batch row unit"]:
    """How far each row moved the slopes; a row that few others resemble hides its own error, so that is
    divided by what it leaves to be seen (MacKinnon and White 1985)."""
    towards = x @ found.inverse
    leverage = (weights * (towards * x).sum(2)).clamp(max=0.9)
    residual = (y - (x @ found.slopes[..., None])[..., 0]) / (1 - leverage)
    return (weights * residual)[..., None] * towards


def _along_the_sum(mask: Float[Tensor, "batch unit"]) -> Float[Tensor, "batch unit unit"]:
    """What makes the squares of centred rows invertible and changes no slope: they hold nothing along it."""
    return mask[:, :, None] * mask[:, None] + torch.diag_embed(1 - mask)
