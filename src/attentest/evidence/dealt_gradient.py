"""The null of gradient importance where it is no product: weights are dealt anew and gradients taken anew.

A model that does nothing but sum up states by weights has gradients that carry the weight as a factor, so
exchanging the other factor is a null (`null_importance`). In a transformer a word also reaches the output
past the one row that is asked about, and the weight is a factor of a part of its gradient only: taking all of
it off would take off what was never there. Here nothing is assumed. The same weights lie on other units, the
model answers under them, and its gradients say what that alone brings about.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.corpus.batch import Batch
from attentest.evidence.dealt import dealt
from attentest.evidence.gradient import likeliest, parameters_at_rest, per_unit
from attentest.model.seam import AttentionModel


def dealt_gradient(
    model: AttentionModel, batch: Batch, orders: Int[Tensor, "batch draw unit"]
) -> Float[Tensor, "batch draw unit"]:
    """|gradient x input| of the unit on which each weight came to lie; a pass back for every draw."""
    draws = []
    with parameters_at_rest(model), torch.enable_grad():
        vectors = model.embedding(batch.tokens).detach().requires_grad_()
        reading = model.read(batch, embeddings=vectors)
        for order in orders.unbind(1):
            answer = likeliest(model.decide(reading, dealt(reading, order).weights.detach()))
            (slope,) = torch.autograd.grad(answer.sum(), vectors, retain_graph=True)
            of_tokens = (slope * vectors).sum(-1).abs().detach()
            draws.append(per_unit(model, reading, of_tokens).gather(1, order))
    return torch.stack(draws, dim=1)
