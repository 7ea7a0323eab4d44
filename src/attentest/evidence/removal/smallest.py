"""The fewest items whose removal overturns a decision, exactly (after Serrano & Smith 2019).

Removing a set zeroes its weights and renormalises the rest; hidden states stay. Logits are then
`sum of a_t (v_t + b)` over what is left, divided by its mass, which is positive and so decides nothing. The
lead of the predicted class over a rival is hence a sum of one share an item, and a rival is above exactly
where the shares that are left sum below zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.adversary.affine import affine_parts, check_affine
from attentest.evidence.removal.decisions import as_classes

CHUNK = 4_000_000  # numbers held at once: tens of megabytes, however long a text and many its classes

AnyFloat = Float[Tensor, "..."]  # shapes are checked here, in a sentence, and not by the annotations
AnyBool = Bool[Tensor, "..."]


@final
@dataclass(frozen=True, kw_only=True)
class SmallestFlip:
    """For each text a smallest set of tokens without which another class is strictly above."""

    count: Int[Tensor, " batch"]  # its size; 0 where no set flips the decision, or where that is undefined
    removed: Bool[Tensor, "batch token"]  # the set itself
    rival: Int[
        Tensor, " batch"
    ]  # the class that is above then, or -1; a single logit decides between 0 and 1
    defined: Bool[Tensor, " batch"]  # False where an input is NaN or infinite, or attention rests nowhere


class Leads(NamedTuple):
    """What the predicted class is ahead by, item by item, in double precision.

    A column of the predicted class itself, or of an impossible answer, is exactly zero: it is never above.
    """

    shares: Float[Tensor, "batch token rival"]  # of every item in the lead; zero off the items
    empty: Float[Tensor, "batch rival"]  # the lead where attention rests nowhere: that of the bias
    weights: Float[Tensor, "batch token"]
    items: Bool[Tensor, "batch token"]  # real tokens of positive weight
    defined: Bool[Tensor, " batch"]


def smallest_flip(
    weights: AnyFloat,
    values: AnyFloat | None,
    bias: AnyFloat | None,
    mask: AnyBool,
    *,
    answers: AnyBool | None = None,
) -> SmallestFlip:
    """The smallest set of tokens whose removal, with the rest renormalised, changes the predicted class.

    Logits are `weights @ values + bias`; one class is a sigmoid logit, and predicts class 0 at exactly 0.
    A flip needs a rival strictly above, at least one token of positive weight stays, and tokens without
    weight are never counted. `answers` marks each text's possible classes.
    """
    values, bias = affine_parts("the smallest flip", values, bias)
    check_affine("the smallest flip", weights, values, bias, mask, answers)
    at_once = max(1, CHUNK // max(1, values[0].numel() if len(values) else 1))
    found = []
    for begun in range(0, max(1, len(values)), at_once):
        part = slice(begun, begun + at_once)
        possible = None if answers is None else answers[part]
        found.append(_smallest(leads(weights[part], values[part], bias, mask[part], possible)))
    fields = zip(*((one.count, one.removed, one.rival, one.defined) for one in found), strict=True)
    count, removed, rival, defined = (torch.cat(field) for field in fields)
    return SmallestFlip(count=count, removed=removed, rival=rival, defined=defined)


def leads(
    weights: Float[Tensor, "batch token"],
    values: Float[Tensor, "batch token class"],
    bias: Float[Tensor, " class"],
    mask: Bool[Tensor, "batch token"],
    answers: Bool[Tensor, "batch class"] | None = None,
) -> Leads:
    """The lead of each text's predicted class over every other, shared out among its items."""
    worth = as_classes(values.detach().double() + bias.detach().double())
    alone = as_classes(bias.detach().double()).expand(len(values), -1)
    possible = torch.ones_like(alone, dtype=torch.bool) if answers is None else answers
    # Padding and impossible answers may hold anything, even NaN.
    weights = weights.detach().double().masked_fill(~mask, 0.0)
    worth = worth.masked_fill(~(mask[:, :, None] & possible[:, None]), 0.0)
    alone = alone.masked_fill(~possible, 0.0)
    proper = (weights.isfinite() & (weights >= 0)).all(1) & (weights > 0).any(1)
    finite = worth.isfinite().flatten(1).all(1) & alone.isfinite().all(1)
    defined = proper & finite & possible.any(1)
    weights = weights.masked_fill(~defined[:, None], 0.0)
    worth = worth.masked_fill(~defined[:, None, None], 0.0)
    logits = (weights[:, None] @ worth)[:, 0].masked_fill(~possible, float("-inf"))
    own = logits.argmax(1, keepdim=True)
    rival = (possible & defined[:, None]).scatter(1, own, False)
    ahead = worth.gather(2, own[:, None].expand(-1, worth.shape[1], 1)) - worth
    return Leads(
        shares=(weights[:, :, None] * ahead).masked_fill(~rival[:, None], 0.0),
        empty=(alone.gather(1, own) - alone).masked_fill(~rival, 0.0),
        weights=weights,
        items=weights > 0,
        defined=defined,
    )


def _smallest(lead: Leads) -> SmallestFlip:
    """Keep as many items as possible while their shares sum below zero, for the best of all rivals.

    Of all sets of m items, the m smallest shares have the smallest sum. So some set of m may be left under
    this rival if and only if those m sum below zero; the largest such m below the number of items leaves the
    fewest to remove. A set flips the decision if any rival is above, so the best rival's set is optimal.
    """
    rising, order = lead.shares.masked_fill(~lead.items[:, :, None], float("inf")).sort(dim=1, stable=True)
    size = torch.arange(1, rising.shape[1] + 1, device=rising.device)[None, :, None]
    items = lead.items.sum(1)
    may_stay = (rising.cumsum(1) < 0) & (size < items[:, None, None])
    most, rival = (may_stay * size).amax(1).max(1)
    place = order.gather(2, rival[:, None, None].expand(-1, order.shape[1], 1))[:, :, 0].argsort(1)
    flips = most > 0
    return SmallestFlip(
        count=(items - most).where(flips, 0),
        removed=lead.items & (place >= most[:, None]) & flips[:, None],
        rival=rival.where(flips, -1),
        defined=lead.defined,
    )
