"""Gradient importance (JW-1) under attention that is given: how much each word would move the output there.

With attention held, `logits = given @ values + bias` where the decision is affine, so the derivative of
the logits along a word's vector is `sum_u given_u J_ut` with the Jacobian `J_ut = (dv_u / de_t) . e_t`,
which does not depend on the given weights: it is computed once and serves every draw. Any other decision
is differentiated once for each draw. The probability that is differentiated is that of the class
predicted under the given weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attentest.evidence.importances.gradient import likeliest, parameters_at_rest, per_unit
from attentest.evidence.importances.value_jacobian import passes_back, value_jacobian
from attentest.model.networks.decoder import distribution
from attentest.model.networks.encoders import Recurrent
from attentest.model.seam import Model, Reading, network_of
from attentest.refusal import Refusal

Drawn = Float[Tensor, "batch draw *head unit"]
PerDraw = Float[Tensor, "batch draw unit"]
# A walk back through an LSTM by hand takes a fifth of autograd's time for a state and an output.
WALKED = 5


@final
@dataclass(frozen=True)
class GradientsUnder:
    """|gradient x input| of every unit for every draw, zero on padding, and the road to it."""

    times_input: PerDraw
    road: str


def gradients_under(
    model: Model, reading: Reading, weights: Drawn, *, road: str | None = None
) -> GradientsUnder:
    """The importances under each of the given weights; `reading` is one without noise."""
    fast = "jacobian" if _pays(model, reading, weights.shape[1]) else "each draw"
    name = road or fast
    if name == "jacobian" and reading.values is None:
        raise Refusal(
            "gradients under given attention by one Jacobian",
            got="a decision that is not affine in the context vector",
            needs="logits = weights @ values + bias",
            way_out="Leave the road out.",
        )
    of_tokens = (_by_jacobian if name == "jacobian" else _each_draw)(model, reading, weights)
    draws = [per_unit(model, reading, each) for each in of_tokens.unbind(1)]
    return GradientsUnder(torch.stack(draws, dim=1), name)


def _pays(model: Model, reading: Reading, draws: int) -> bool:
    """Whether the Jacobian takes less than one pass back for each draw."""
    network = model.network
    if reading.values is None or network is None:
        return False
    by_hand = isinstance(network.encoder, Recurrent) and isinstance(network.encoder.cell, nn.LSTM)
    return passes_back(network, reading) <= draws * (WALKED if by_hand else 1)


def _by_jacobian(model: Model, reading: Reading, weights: Drawn) -> Float[Tensor, "batch draw token"]:
    jacobian = value_jacobian(network_of(model, "gradients by one Jacobian"), reading)
    with torch.no_grad():
        slopes = torch.einsum("bdu,bcut->bdct", weights, jacobian).double()
        chances = distribution(model.decide(reading, weights).double())
    return _of_probability(slopes, chances).abs().to(weights.dtype)


def _of_probability(
    slopes: Float[Tensor, "batch draw class token"], chances: Float[Tensor, "batch draw outcome"]
) -> Float[Tensor, "batch draw token"]:
    """From the derivatives of the logits to that of the probability `gradient.likeliest` names."""
    if slopes.shape[2] == 1:
        return slopes[:, :, 0] * chances.prod(-1, keepdim=True)
    best = chances.argmax(-1)[..., None, None].expand(-1, -1, 1, slopes.shape[3])
    beyond = slopes.gather(2, best)[:, :, 0] - (chances[..., None] * slopes).sum(2)
    return beyond * chances.amax(-1, keepdim=True)


def _each_draw(model: Model, reading: Reading, weights: Drawn) -> Float[Tensor, "batch draw token"]:
    draws = []
    with parameters_at_rest(model), torch.enable_grad():
        vectors = reading.embeddings.detach().requires_grad_()
        again = model.read(reading.batch, embeddings=vectors)
        for drawn in weights.unbind(1):
            answer = likeliest(model.decide(again, drawn.detach()))
            (slope,) = torch.autograd.grad(answer.sum(), vectors, retain_graph=True)
            draws.append((slope * vectors).sum(-1).abs().detach())
    return torch.stack(draws, dim=1)
