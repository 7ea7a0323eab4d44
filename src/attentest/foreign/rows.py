"""The row of attention that decides, by units: words or sub-words, with whatever is no unit held as it is.

A row rests on units and elsewhere: on marks, on the second text. Weights are the share of each unit in what
rests on units; what rests elsewhere stays there. A unit of several sub-words divides its weight among them
as the model did, so that giving the weights back gives the row back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.foreign.text import Layout
from attentest.model.batch import Batch
from attentest.model.precision import at_least_single
from attentest.shapes import Embedded

Row = Float[Tensor, "batch head place"]
Units = Int[Tensor, "batch place"]  # the unit each place belongs to, -1 where it is none


@final
@dataclass(frozen=True)
class Portions:
    """A row, divided: each unit's sum, their mass, and every place's portion of its unit."""

    row: Row
    unit: Units
    sums: Float[Tensor, "batch head unit"]
    mass: Float[Tensor, "batch head"]
    portion: Row

    @classmethod
    def of(cls, row: Row, unit: Units, units: int) -> Portions:
        """Divide; a unit on which nothing rests at all would divide evenly."""
        member = (unit[..., None] == torch.arange(units, device=unit.device)).to(row.dtype)
        sums = row @ member
        at = unit.clamp_min(0)[:, None].expand_as(row)
        of_unit, size = sums.gather(2, at), member.sum(1)[:, None].expand_as(sums).gather(2, at)
        portion = torch.where(of_unit > 0, row / of_unit.where(of_unit > 0, 1.0), 1 / size.clamp_min(1))
        return cls(row, unit, sums, sums.sum(2), portion.masked_fill((unit < 0)[:, None], 0.0))

    @property
    def weights(self) -> Float[Tensor, "batch head unit"]:
        """Each unit's share of what rests on units: a distribution for every head."""
        return self.sums / self.mass[..., None]

    def rows(
        self, given: Float[Tensor, "batch variant head unit"], heads: Bool[Tensor, " head"]
    ) -> Float[Tensor, "batch variant head place"]:
        """Whole rows under other weights; other heads, and what is no unit, keep theirs."""
        at = self.unit.clamp_min(0)[:, None, None]
        scaled = given * self.mass[:, None, :, None]
        spread = scaled.gather(3, at.expand(*scaled.shape[:3], -1)) * self.portion[:, None]
        changed = (self.unit >= 0)[:, None, None] & heads[:, None]
        return torch.where(changed, spread, self.row[:, None])

    def brought(self, values: Float[Tensor, "batch head place each"]) -> Float[Tensor, "batch unit hidden"]:
        """What each unit brings to the sum when all weight is on it, heads side by side."""
        unit = self.unit.clamp_min(0)[:, None, :, None].expand_as(values)
        found = values.new_zeros(*self.sums.shape, values.shape[3])
        return found.scatter_add(2, unit, values * self.portion[..., None]).transpose(1, 2).flatten(2)


def row_at(maps: Float[Tensor, "batch head query place"], deciding: Int[Tensor, " batch"]) -> Row:
    """Every head's row of the deciding position."""
    at = deciding[:, None, None, None].expand(-1, maps.shape[1], 1, maps.shape[3])
    return maps.gather(2, at)[:, :, 0]


def mean_row(maps: Float[Tensor, "batch head query place"], present: Bool[Tensor, "batch query"]) -> Row:
    """What all positions of a text rest on together: the mean of each column."""
    asking = present[:, None, :, None].to(maps)
    return (maps * asking).sum(2) / asking.sum(2)


def brought(portions: Portions, carried: Tensor | None, laid: Layout, embeddings: Embedded) -> Tensor:
    """What each unit brings, in values; where a hook saw none, in the vectors of its words."""
    if carried is not None:
        return portions.brought(at_least_single(carried))
    at = laid.token.clamp_min(0)[..., None].expand(-1, -1, embeddings.shape[2])
    mean = portions.row.mean(1, keepdim=True)
    return Portions.of(mean, portions.unit, portions.sums.shape[2]).brought(embeddings.gather(1, at)[:, None])


def units_of(batch: Batch, laid: Layout) -> tuple[Units, Bool[Tensor, "batch unit"]]:
    """The unit of every place, and which units each text has."""
    numbers = torch.arange(batch.tokens.shape[1], device=laid.token.device).expand_as(batch.tokens)
    if batch.sentences is not None:
        numbers = batch.sentences
    unit = numbers.gather(1, laid.token.clamp_min(0)).masked_fill(laid.token < 0, -1)
    counts = unit.amax(1) + 1
    return unit, torch.arange(int(counts.max()), device=unit.device) < counts[:, None]
