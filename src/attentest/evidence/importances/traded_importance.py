"""The first edition's null of JW-1 and JW-2, superseded: sensitivities or values trade places at random.

It presumes that a word's gradient is its own weight times its own sensitivity. That holds where no word
shares its state with another and the decision is affine with two classes; there it equals the permuted
null of `given_attention`. In a BiLSTM or a CNN a word also reaches the output through its neighbours'
states, and this null is far too high. The number is kept for one release, beside the right ones.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.erasure.remainder import answered, carried
from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Network, Reading
from attentest.shapes import Weights

Orders = Int[Tensor, "batch draw unit"]
Drawn = Float[Tensor, "batch draw unit"]
ALMOST_ALL = 1e-6  # what is left beside a weight that rounds to one: a null needs no more digits


def traded_gradient(weights: Weights, gradient: Weights, orders: Orders) -> Drawn:
    """The importances if each weight met another unit's sensitivity `gradient / weight`.

    A unit without weight has no importance either, and its sensitivity cannot be known: zero.
    """
    sensitivity = torch.where(weights > 0, gradient / weights, 0.0)
    shuffled = sensitivity[:, None].expand_as(orders).gather(2, orders)
    return weights[:, None] * shuffled


def traded_leave_one_out(model: Network, reading: Reading, orders: Orders) -> Drawn:
    """The importances if each weight met another unit's value, and leaving one out only renormalised.

    That is exactly leave-one-out for an encoder without context; for others it is what attention's factor
    alone brings about.
    """
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
