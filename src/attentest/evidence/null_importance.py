"""Importances that know nothing of attention, yet carry its factor: the null of JW-1 and JW-2.

With attention held, a word's gradient is its weight times how sensitive the output is to it, so the two agree
even where weight and sensitivity have nothing to do with each other: over 18 words tau is about 0.5. What
attention explains is what goes beyond that. Here sensitivities, or values, change places at random.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from attentest.evidence.dealt import dealt
from attentest.evidence.erasure_remainder import answered, carried
from attentest.evidence.hidden_importance_foreign import by_asking
from attentest.model.decoder import distribution
from attentest.model.divergence import total_variation
from attentest.model.foreign import ForeignModel
from attentest.model.seam import AttentionModel, Reading
from attentest.model.selection import selected
from attentest.shapes import Weights

Orders = Int[Tensor, "batch draw unit"]
Drawn = Float[Tensor, "batch draw unit"]
CLOSE = 1e-4  # between two outputs that were found in different ways
ALMOST_ALL = 1e-6  # what is left beside a weight that rounds to one: a null needs no more digits


def null_gradient(weights: Weights, gradient: Weights, orders: Orders) -> Drawn:
    """The importances if each weight met another unit's sensitivity `gradient / weight`.

    A unit without weight has no importance either, and its sensitivity cannot be known: zero.
    """
    sensitivity = torch.where(weights > 0, gradient / weights, 0.0)
    shuffled = sensitivity[:, None].expand_as(orders).gather(2, orders)
    return weights[:, None] * shuffled


def null_leave_one_out(model: AttentionModel, reading: Reading, orders: Orders) -> Drawn:
    """The importances if each weight met another unit's value, and leaving one out only renormalised.

    That is exactly leave-one-out for an encoder without context; for others it is what attention's factor
    alone brings about.
    """
    if isinstance(model, ForeignModel):
        return _with_weights_dealt(model, reading, orders)
    weights, values = reading.weights, carried(reading)
    rest = (1 - weights).clamp_min(ALMOST_ALL)[..., None]
    draws = []
    for order in orders.unbind(1):
        moved = values.gather(1, order[..., None].expand_as(values))
        whole = weights[:, None] @ moved
        without = (whole - weights[..., None] * moved) / rest
        own, others = (distribution(answered(model, reading, sums)) for sums in (whole, without))
        draws.append(total_variation(others, own))
    return torch.stack(draws, dim=1)


def null_deletion(model: AttentionModel, reading: Reading, loo: Weights, orders: Orders) -> Drawn:
    """The same where a model made elsewhere does nothing more when a unit is deleted; NaN for other texts.

    A transformer reads a shorter text anew, from its first layer on, and what that does owes nothing to one
    row of weights: in random ones leave-one-out does not agree with attention, and this null does. It would
    take off what was never there, so it is used only where it is proven to be leave-one-out's own.
    """
    found = torch.full_like(orders, float("nan"), dtype=reading.weights.dtype)
    texts = ((by_asking(model, reading) - loo).abs().amax(1) <= CLOSE).nonzero().squeeze(1)
    if len(texts):
        some = selected(reading, texts)
        units = some.mask.shape[1]
        drawn = null_leave_one_out(model, some, orders[texts, :, :units])
        found[texts] = functional.pad(drawn, (0, found.shape[2] - units))
    return found


def _with_weights_dealt(model: AttentionModel, reading: Reading, orders: Orders) -> Drawn:
    """The same where values cannot be moved: weights are, and each tells what its new unit does."""
    draws = [by_asking(model, dealt(reading, order)).gather(1, order) for order in orders.unbind(1)]
    return torch.stack(draws, dim=1)
