"""Shapley values of units: what each adds to the predicted class, on average over orders of joining the text.

Orders are drawn (Castro et al. 2009), each together with its reverse: who comes early in one comes late in
the other, so that much of the noise cancels. What the units of an order add always comes to the same sum, the
answer to the whole text less the answer to nothing, so that sum is exact for any number of orders.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from attentest.evidence.importances.presence import PerUnit, answers_to_parts, explained, without_lone_units
from attentest.evidence.permutation import orders
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal


def shapley_values(
    model: Model, reading: Reading, *, rng: torch.Generator, permutations: int = 10
) -> PerUnit:
    """The mean over drawn orders of what each unit adds; signed. NaN where a text has one unit."""
    if permutations < 2 or permutations % 2:
        raise Refusal(
            "Shapley values",
            got=f"{permutations} orders",
            needs="an even number, at least 2: an order comes with its reverse",
            way_out="10 are the default.",
        )
    drawn = orders(reading.mask, permutations // 2, rng=rng)
    both = torch.cat([drawn, _reversed(drawn, reading.mask.sum(1))], dim=1)
    return over_orders(model, reading, both)


def over_orders(model: Model, reading: Reading, joining: Int[Tensor, "batch order unit"]) -> PerUnit:
    """The mean over these orders; over all of them it is the Shapley value itself."""
    place = joining.argsort(2)  # of each unit in each order
    steps = torch.arange(joining.shape[2], device=joining.device)
    grown = place[:, :, None] < steps[1:, None]  # before the last has joined, from one unit on
    about, lengths = explained(model, reading), reading.mask.sum(1)[:, None]
    answers = answers_to_parts(model, reading, grown.flatten(1, 2)).unflatten(1, grown.shape[1:3])
    ended = about.probability[:, None, None].expand(-1, joining.shape[1], 1)
    # Of a text that is shorter than the batch, the last units to join are padding and add nothing.
    answers = torch.cat([answers.where(steps[1:] < lengths[..., None], ended), ended], dim=2)
    # What nothing is worth is owed to all units alike. So orders begin with the mean of what the first unit
    # says, whoever that is, and the way there is shared out: who happened to come first often gains nothing.
    begun = answers[:, :, :1].mean(1, keepdim=True)
    added = torch.cat([begun.expand_as(ended), answers], dim=2).diff(dim=2)
    shared = (begun[:, 0] - about.unread[:, None]) / lengths
    return without_lone_units(added.gather(2, place).mean(1) + shared, reading)


def _reversed(
    joining: Int[Tensor, "batch order unit"], lengths: Int[Tensor, " batch"]
) -> Int[Tensor, "batch order unit"]:
    """Each order of a text's units the other way round; padding stays behind."""
    steps = torch.arange(joining.shape[2], device=joining.device)
    mirrored = lengths[:, None] - 1 - steps
    return joining.gather(2, torch.where(mirrored >= 0, mirrored, steps)[:, None].expand_as(joining))
