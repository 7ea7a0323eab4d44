"""Attention weights that do not match the words of a text: the two nulls of agreement with importances.

*Permuted*: the text's own weights in a random order. This holds the set of weights fixed and breaks which
unit has which; it is exact where weights are exchangeable. *Swapped*: the weights of another text of the
same length. This also holds fixed how smooth weights are and how they depend on the position, and breaks
only their match with these words; it is exact where attention is independent of the words given the
length. Under both the importance is computed again, so whatever the weights bring about by entering the
output is in the null, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.erasure.remainder import over_units
from attentest.evidence.permutation import orders
from attentest.model.batch import AbstractSplit
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading

Drawn = Float[Tensor, "batch draw *head unit"]


@final
@dataclass(frozen=True)
class GivenAttention:
    """Several attentions for each text of a reading: weights for `decide`, and the scores behind them."""

    weights: Drawn
    scores: Drawn

    @property
    def ranked(self) -> Float[Tensor, "batch draw unit"]:
        """What rankings are of: the weights, or their mean over heads."""
        return self.weights if self.weights.ndim == 3 else self.weights.mean(2)

    @classmethod
    def own(cls, reading: Reading) -> GivenAttention:
        """The reading's own attention, as the only draw."""
        return cls(reading.weights[:, None].detach(), reading.scores[:, None].detach())

    @classmethod
    def permuted(cls, reading: Reading, draws: int, *, rng: torch.Generator) -> GivenAttention:
        """The reading's own weights and scores in random orders; one order serves all heads."""
        order = orders(reading.mask, draws, rng=rng)
        if reading.weights.ndim == 3:
            order = order[:, :, None].expand(-1, -1, reading.weights.shape[1], -1)
        own = cls.own(reading)
        return cls(*(each.expand(order.shape).gather(-1, order) for each in (own.weights, own.scores)))

    def each(self, reading: Reading) -> Iterator[Reading]:
        """The reading under each of them, its states unchanged."""
        for weights, scores in zip(self.weights.unbind(1), self.scores.unbind(1), strict=True):
            yield replace(reading, weights=weights, scores=scores)

    @staticmethod
    def joined(*parts: GivenAttention) -> GivenAttention:
        """The draws of all parts, in their order."""
        weights, scores = ([getattr(part, name) for part in parts] for name in ("weights", "scores"))
        return GivenAttention(torch.cat(weights, dim=1), torch.cat(scores, dim=1))


@final
class AttentionPool:
    """The attention of every text of a split, from which other texts borrow."""

    def __init__(self, weights: list[Tensor], scores: list[Tensor]) -> None:
        lengths = [each.shape[-1] for each in weights]
        self.lengths = np.array(lengths)
        self.starts = torch.tensor([0, *np.cumsum(lengths)[:-1]])
        self.weights, self.scores = (torch.cat(each, dim=-1) for each in (weights, scores))
        # Rows by length, where each length begins among them, and where a row stands.
        self.by_length = np.argsort(self.lengths, kind="stable")
        self.sorted = self.lengths[self.by_length]
        self.place = np.argsort(self.by_length, kind="stable")

    @classmethod
    def of(cls, model: Model, split: AbstractSplit) -> AttentionPool:
        """Read the whole split once."""
        found: dict[int, tuple[Tensor, Tensor]] = {}
        for rows, reading in readings(model, split):
            weights, scores, counts = (
                reading.weights.cpu(),
                reading.scores.cpu(),
                reading.mask.sum(1).tolist(),
            )
            for place, (row, units) in enumerate(zip(rows.tolist(), counts, strict=True)):
                found[row] = weights[place, ..., :units], scores[place, ..., :units]
        pairs = [found[row] for row in sorted(found)]
        return cls([one for one, _ in pairs], [other for _, other in pairs])

    def partners(self, rows: np.ndarray, draws: int, *, rng: torch.Generator) -> Int[np.ndarray, "text draw"]:
        """Random other rows of the same length, else of the nearest longer length; -1 where there is none."""
        lengths = self.lengths[rows]
        first, behind = (np.searchsorted(self.sorted, lengths, side=side) for side in ("left", "right"))
        alone = behind - first == 1
        longer = self.sorted[np.minimum(behind, len(self.sorted) - 1)]
        first = np.where(alone, behind, first)
        behind = np.where(alone, np.searchsorted(self.sorted, longer, side="right"), behind)
        count = behind - first - ~alone  # a text does not borrow from itself
        drawn = torch.rand(len(rows), draws, generator=rng, dtype=torch.float64).numpy()
        place = first[:, None] + (drawn * np.maximum(count, 1)[:, None]).astype(np.int64)
        place += ~alone[:, None] & (place >= self.place[rows][:, None])
        found = self.by_length[np.minimum(place, len(self.by_length) - 1)]
        return np.where(count[:, None] > 0, found, -1)

    def swapped(
        self, model: Model, reading: Reading, rows: np.ndarray, draws: int, *, rng: torch.Generator
    ) -> GivenAttention:
        """For each row the attention of its partners, cut to its length; NaN where it has no partner."""
        partner = torch.from_numpy(self.partners(rows, draws, rng=rng))
        units = torch.arange(reading.mask.shape[1])
        at = self.starts[partner.clamp_min(0)][..., None] + units
        at = at.masked_fill(~reading.mask[:, None].cpu(), 0)
        scores, weights = (
            each[..., at].movedim(0, 2) if each.ndim == 2 else each[at]
            for each in (self.scores, self.weights)
        )
        scores, weights = (each.to(reading.weights) for each in (scores, weights))
        without = (partner < 0).to(reading.mask.device)
        mask = reading.mask[:, None].expand(-1, draws, -1)
        found = over_units(model, reading, weights, scores, mask)
        return GivenAttention(
            found.masked_fill(without.view(*without.shape, *[1] * (found.ndim - 2)), float("nan")), scores
        )

    def own_and_nulls(
        self, model: Model, reading: Reading, rows: np.ndarray, draws: int, *, rng: torch.Generator
    ) -> GivenAttention:
        """The reading's own attention, then so many swapped and as many permuted draws."""
        return GivenAttention.joined(
            GivenAttention.own(reading),
            self.swapped(model, reading, rows, draws, rng=rng),
            GivenAttention.permuted(reading, draws, rng=rng),
        )
