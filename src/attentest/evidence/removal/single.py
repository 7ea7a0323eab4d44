"""Removing one item: the one on top of a ranking, beside one at random (Serrano & Smith 2019, SS-1, SS-2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.permutation import orders
from attentest.evidence.removal.decisions import attended, is_defined, overtaken, predicted, without
from attentest.evidence.removal.orders import largest_first
from attentest.model.divergence import jensen_shannon
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading

Picked = Int[Tensor, " batch"]  # a unit of each text
TOP, RANDOM = 0, 1


@final
@dataclass(frozen=True, kw_only=True)
class SingleRemovals:
    """What removing each of two items does to each text: the first is on top, the second drawn."""

    weights: Float[Tensor, "batch 2"]  # what they had
    divergence: Float[Tensor, "batch 2"]  # Jensen-Shannon, of the output from the whole text's; double
    flips: Bool[Tensor, "batch 2"]
    defined: Bool[Tensor, " batch"]  # False for one item, and where attention or output is not a number


@torch.no_grad()
def single_removals(model: Model, reading: Reading, on_top: Picked, drawn: Picked) -> SingleRemovals:
    """Zero one weight, renormalise the rest, decide again: for both items of all texts in one call."""
    items = attended(reading)
    picked = torch.stack([on_top, drawn], dim=1)
    removed = torch.zeros_like(items)[:, None].repeat(1, 2, 1).scatter(2, picked[..., None], True)
    own = model.decide(reading)
    logits = model.decide(reading, without(reading.weights, removed))
    # Half of what single precision knows of two outputs is lost in their divergence, which is a square.
    outputs, before = distribution(logits.double()), distribution(own.double())
    return SingleRemovals(
        weights=reading.weights.gather(1, picked),
        divergence=jensen_shannon(outputs, before[:, None]),
        flips=overtaken(logits, predicted(own)),
        defined=is_defined(reading, own) & (items.sum(1) > 1),
    )


def topmost(scores: Float[Tensor, "batch unit"], items: Bool[Tensor, "batch unit"]) -> Picked:
    """The item of the largest score."""
    return largest_first(scores, items)[:, 0]


def any_other(items: Bool[Tensor, "batch unit"], on_top: Picked, *, rng: torch.Generator) -> Picked:
    """An item drawn uniformly from all but the one on top."""
    others = items.scatter(1, on_top[:, None], False)
    return orders(others, 1, rng=rng)[:, 0, 0]


def any_place(mask: Bool[Tensor, "batch unit"], *, rng: torch.Generator) -> Picked:
    """A place but the first, as the published code draws it (A17): it takes a rank for a place.

    A number from 1 to the last is meant as a rank below the top and used as a place in the text, so the item
    on top may be drawn, and the first of the text never is.
    """
    lengths = mask.sum(1)
    draw = torch.rand(len(mask), generator=rng, dtype=torch.float64).to(mask.device)
    return torch.where(lengths > 1, 1 + (draw * (lengths - 1)).long(), 0)


def exchanged(reading: Reading, *, rng: torch.Generator) -> Reading:
    """The null: the same weights over the same hidden states in a random order.

    Whatever a removal does here, it does because of how large weights are, not because of where they lie.
    """
    order = orders(reading.mask, 1, rng=rng)[:, 0, :, None]
    values = reading.values
    return replace(
        reading,
        hidden=reading.hidden.gather(1, order.expand_as(reading.hidden)),
        values=None if values is None else values.gather(1, order.expand_as(values)),
    )
