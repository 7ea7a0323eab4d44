"""How much each unit's state matters, by the seam alone: the only road into a model made elsewhere."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.evidence.erasure import leave_one_out as erasure
from attentest.evidence.importances.gradient import likeliest, parameters_at_rest
from attentest.evidence.removal.decisions import without
from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.precision import at_least_single
from attentest.model.seam import Model, Reading

PerUnit = Float[Tensor, "batch unit"]


@torch.enable_grad()
def free_gradient(model: Model, reading: Reading) -> PerUnit:
    """`||df / dh_i||_2`, through the sum and through the weights, by whatever graph the model's reading has.

    The states of a transformer are those that enter the layer: its attention scores them by their keys and
    sums them up by their values. By values alone the gradient would be the weight times one vector for all
    units, and would agree with attention by construction. A word of several places has the sum of theirs.
    NaN where the states that enter a layer cannot be had.
    """
    with parameters_at_rest(model):
        again = model.read(reading.batch, embeddings=reading.embeddings.detach().requires_grad_())
        states = again.scored_states
        if states is None:
            return torch.full_like(reading.weights, float("nan"))
        (slope,) = torch.autograd.grad(likeliest(model.decide(again)).sum(), states)
    norms = at_least_single(slope.norm(dim=2))
    if again.scored_unit is not None:
        inside = norms.masked_fill(again.scored_unit < 0, 0.0)
        norms = norms.new_zeros(again.mask.shape).scatter_add(1, again.scored_unit.clamp_min(0), inside)
    return norms.masked_fill(~reading.mask, 0.0)


@torch.no_grad()
def by_asking(model: Model, reading: Reading) -> PerUnit:
    """How far the output moves when one weight is taken away and the rest renormalise.

    The weights are the reading's, whosever they are. Zero on padding; NaN where nothing would be left.
    """
    batch, units = reading.mask.shape
    own = distribution(model.decide(reading, reading.weights).double())[:, None]
    at_once = max(1, erasure.FLOATS // (batch * units))
    changes = []
    for lefts in torch.arange(units, device=reading.mask.device).split(at_once):
        gone = (lefts[:, None] == torch.arange(units, device=lefts.device)).expand(batch, -1, -1)
        rest = without(reading.weights.masked_fill(~reading.mask, 0.0), gone)
        moved = total_variation(distribution(model.decide(reading, rest).double()), own)
        changes.append(moved.masked_fill(rest.sum(-1) == 0, float("nan")))
    return torch.cat(changes, dim=1).to(reading.weights.dtype).masked_fill(~reading.mask, 0.0)
