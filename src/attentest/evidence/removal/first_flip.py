"""Removing items one after another until the decision flips (Serrano & Smith 2019, SS-3).

Whether a decision is flipped goes on and off as more is removed, so no prefix of an order may be skipped.
When everything is removed the bias alone decides, as in the published code; that may flip it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.removal.decisions import (
    attended,
    check_one_distribution,
    is_defined,
    overtaken,
    predicted,
    without,
)
from attentest.evidence.removal.smallest import CHUNK, Leads, leads
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal

Orders = Int[Tensor, "batch order unit"]  # items from the first removed to the last, then everything else
Flips = Bool[Tensor, "batch order unit"]  # at k: is the decision another one without the first k + 1?
NEVER = -1


@final
@dataclass(frozen=True, kw_only=True)
class FirstFlips:
    """Where each order of removal flips each text's decision for the first time."""

    count: Int[Tensor, "batch order"]  # items removed by then; -1 where even all of them do not flip it
    mass: Float[Tensor, "batch order"]  # the share of attention they had; -1 likewise
    items: Int[Tensor, " batch"]  # how many there were to remove
    defined: Bool[Tensor, " batch"]  # False where attention or output is not a number


def first_flips(model: Model, reading: Reading, orders: Orders) -> FirstFlips:
    """Follow every order of every text to its first flip.

    Where the decision is affine, one cumulative sum along an order tells all its prefixes; any other decision
    is asked about them, many to a call.
    """
    _check_orders(reading, orders)
    if reading.values is None or reading.bias is None:
        return _by_asking(model, reading, orders)
    answers = reading.batch.answers
    classes = max(2, reading.values.shape[2])
    at_once = max(1, CHUNK // (orders[0].numel() * classes))
    found = []
    for begun in range(0, len(orders), at_once):
        part = slice(begun, begun + at_once)
        possible = None if answers is None else answers[part]
        lead = leads(reading.weights[part], reading.values[part], reading.bias, reading.mask[part], possible)
        flips = _by_summing(lead, orders[part])
        found.append(_first(flips, lead.weights, lead.items, lead.defined, orders[part]))
    fields = zip(*((one.count, one.mass, one.items, one.defined) for one in found), strict=True)
    count, mass, items, defined = (torch.cat(field) for field in fields)
    return FirstFlips(count=count, mass=mass, items=items, defined=defined)


def _by_summing(lead: Leads, orders: Orders) -> Flips:
    """The lead that is left after each removal is a sum from the order's end: nothing is subtracted."""
    rivals = lead.shares.shape[2]
    shares = lead.shares[:, None].expand(-1, orders.shape[1], -1, -1)
    in_order = shares.gather(2, orders[..., None].expand(-1, -1, -1, rivals))
    left = in_order.flip(2).cumsum(2).flip(2)
    behind = (left < 0).any(-1)
    flips = torch.cat([behind[:, :, 1:], torch.zeros_like(behind[:, :, :1])], dim=2)
    last = (lead.items.sum(1) - 1).clamp_min(0)[:, None, None].expand(-1, orders.shape[1], 1)
    return flips.scatter(2, last, (lead.empty < 0).any(-1)[:, None, None].expand_as(last))


@torch.no_grad()
def _by_asking(model: Model, reading: Reading, orders: Orders) -> FirstFlips:
    """Ask about prefixes of growing length, a block at a time, until every order has flipped or ended."""
    batch, count, units = orders.shape
    logits, items = model.decide(reading, reading.weights), attended(reading)
    own, sizes = predicted(logits), items.sum(1)[:, None, None]
    place = orders.argsort(2)  # when each unit is removed
    flips = torch.zeros_like(orders, dtype=torch.bool)
    at_once = max(1, CHUNK // orders.numel())
    for begun in range(0, units, at_once):
        removed = torch.arange(begun, min(begun + at_once, units), device=orders.device)
        gone = (place[:, :, None] <= removed[:, None]).flatten(1, 2)
        rest = without(reading.weights.masked_fill(~items, 0.0), gone)
        above = overtaken(model.decide(reading, rest), own).view(batch, count, len(removed))
        flips[:, :, begun : begun + at_once] = above & (removed < sizes)
        if (flips.any(2, keepdim=True) | (removed[-1] + 1 >= sizes)).all():
            break
    weights = reading.weights.double().masked_fill(~items, 0.0)
    return _first(flips, weights, items, is_defined(reading, logits), orders)


def _first(
    flips: Flips,
    weights: Float[Tensor, "batch unit"],
    items: Bool[Tensor, "batch unit"],
    defined: Bool[Tensor, " batch"],
    orders: Orders,
) -> FirstFlips:
    first = flips.to(torch.uint8).argmax(2, keepdim=True)  # of equals the first
    share = weights / weights.sum(1, keepdim=True)
    mass = share[:, None].expand_as(orders).gather(2, orders).cumsum(2).gather(2, first)
    never = ~(flips.any(2) & defined[:, None])
    return FirstFlips(
        count=(first[:, :, 0] + 1).masked_fill(never, NEVER),
        mass=mass[:, :, 0].clamp_max(1.0).masked_fill(never, NEVER),
        items=items.sum(1),
        defined=defined,
    )


def _check_orders(reading: Reading, orders: Tensor) -> None:
    check_one_distribution("orders of removal", reading)
    batch, units = reading.weights.shape
    if orders.shape[::2] != (batch, units) or not orders.shape[1]:
        raise Refusal(
            "orders of removal",
            got=f"the shape {tuple(orders.shape)}",
            needs=f"({batch}, orders, {units}): every unit of every text, in one order or more",
            way_out="Rank the items of this very reading.",
        )
