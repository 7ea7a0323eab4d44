"""How much each hidden state matters, attention not held (Meister et al. 2021, ME-4).

A hidden state enters twice: attention scores it, and sums it up. With attention held, an affine decision
would make its gradient proportional to its weight, and the two would agree by construction; so here neither
the gradient nor leaving a state out holds attention. Both start from the states, whatever encoder made them.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.evidence.erasure import leave_one_out as erasure
from attentest.evidence.erasure import tokenwise as erasure_tokenwise
from attentest.evidence.erasure.remainder import rescored, reweighed
from attentest.evidence.importances import hidden_importance_foreign
from attentest.evidence.importances.gradient import likeliest
from attentest.evidence.removal.decisions import in_double
from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import Affine, distribution
from attentest.model.seam import Model, Network, Reading

PerUnit = Float[Tensor, "batch unit"]


@torch.enable_grad()
def hidden_gradient(model: Model, reading: Reading) -> PerUnit:
    """`||df / dh_i||_2`, f being the probability of class 1, or of the likeliest where there are several.

    The scores are the reading's, whosever they are, and move with the states as the model's own do: under
    a given attention each score has a constant added to it.
    """
    network = model.network
    if network is None:
        return hidden_importance_foreign.free_gradient(model, reading)
    hidden = reading.hidden.detach().requires_grad_()
    weights = reading.weights.detach()
    scores = None if network.attention is None else rescored(network, reading, hidden)
    if scores is not None:  # else the weights depend on words, or there is one unit
        scores = scores + (reading.scores - scores).detach()
        weights = reweighed(network, weights, scores, reading.mask)
    values = network.decoder.values(hidden) if isinstance(network.decoder, Affine) else None
    logits = model.decide(replace(reading, hidden=hidden, weights=weights, values=values))
    (slope,) = torch.autograd.grad(likeliest(logits).sum(), hidden)
    return slope.norm(dim=2).masked_fill(~reading.mask, 0.0)


@torch.no_grad()
def hidden_leave_one_out(model: Model, reading: Reading) -> PerUnit:
    """How far the output moves when a state is dropped before the projection, so that the rest renormalise.

    The other states stay, as if no token saw another: leave-one-out of an encoder without context, its
    closed form included. Zero on padding; NaN where a text has one unit.
    """
    network = model.network
    if network is None:
        return hidden_importance_foreign.by_asking(model, reading)
    reading = _precise(network, reading)
    batch, units = reading.mask.shape
    variant = batch * erasure_tokenwise.floats_per_variant(network, units)
    at_once = max(1, (erasure.FLOATS if reading.mask.device.type == "cpu" else erasure.GPU_FLOATS) // variant)
    own = distribution(model.decide(reading))[:, None]
    changes = [
        total_variation(distribution(erasure_tokenwise.token_wise(network, reading, lefts)), own)
        for begin in range(0, units, at_once)
        for lefts in [range(begin, min(begin + at_once, units))]
    ]
    alone = (reading.mask.sum(1) < 2)[:, None]
    return torch.cat(changes, dim=1).masked_fill(alone, float("nan")).masked_fill(~reading.mask, 0.0)


def _precise(model: Network, reading: Reading) -> Reading:
    """In double precision where the decision is affine.

    A small weight moves the output by less than the output is rounded by, and its unit would tie with others
    of which attention says that they differ.
    """
    if reading.values is None:
        return reading
    scores = reading.scores.double()
    exact = in_double(reading)
    return replace(exact, scores=scores, weights=reweighed(model, exact.weights, scores, reading.mask))
