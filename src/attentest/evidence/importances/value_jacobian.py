"""How the value of every unit moves along the vector of every word: `J_ut = (dv_u / de_t) . e_t`.

In principle that is one pass back for every unit and class. Where a state depends only on the words
within a reach of r (0 without context, the radius of the widest kernel under convolutions), units that
are 2r + 1 apart share no word, so one pass serves all of them. Under an LSTM all states of all texts walk
back together, by hand.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attentest.evidence.importances.gradient import parameters_at_rest
from attentest.evidence.importances.influence_recurrent import recurrent_slopes
from attentest.model.networks.decoder import Affine
from attentest.model.networks.encoders import Convolutional, Recurrent, TokenWise
from attentest.model.seam import Network, Reading

Jacobian: TypeAlias = Float[Tensor, "batch class unit token"]


def reach(model: Network, units: int) -> int:
    """How many words away a word may be from a unit whose state depends on it."""
    if model.attention is None or model.gathers:
        return units
    if isinstance(model.encoder, TokenWise):
        return 0
    if isinstance(model.encoder, Convolutional):
        kernels = [kernel for kernel in model.encoder.kernels if isinstance(kernel, nn.Conv1d)]
        return max(kernel.kernel_size[0] for kernel in kernels) // 2
    return units


def passes_back(model: Network, reading: Reading) -> int:
    """How often autograd would go back."""
    assert reading.values is not None
    units = reading.mask.shape[1]
    return reading.values.shape[2] * min(units, 2 * reach(model, units) + 1)


def value_jacobian(model: Network, reading: Reading, *, by_hand: bool = True) -> Jacobian:
    """The whole of it; zero on padding. Only for decisions that are affine in the context vector."""
    walks = isinstance(model.encoder, Recurrent) and isinstance(model.encoder.cell, nn.LSTM)
    if by_hand and walks and model.attention is not None:
        assert isinstance(model.decoder, Affine)
        found = recurrent_slopes(model, reading, model.decoder.dense.weight)
    else:
        found = _by_passes(model, reading)
    return found.masked_fill(~reading.batch.mask[:, None, None], 0.0)


def _by_passes(model: Network, reading: Reading) -> Jacobian:
    batch, units = reading.mask.shape
    tokens, span = reading.batch.mask.shape[1], min(units, 2 * reach(model, units) + 1)
    with parameters_at_rest(model), torch.enable_grad():
        vectors = reading.embeddings.detach().requires_grad_()
        values = model.read(reading.batch, embeddings=vectors).values
        assert values is not None
        values = values.masked_fill(~reading.mask[..., None], 0.0)
        found = values.new_zeros(batch, values.shape[2], units, tokens)
        for number in range(values.shape[2]):
            for first in range(span):
                some = torch.arange(first, units, span, device=values.device)
                (slope,) = torch.autograd.grad(values[:, some, number].sum(), vectors, retain_graph=True)
                moved = (slope * vectors).sum(-1).detach()
                found[:, number, some] = moved[:, None] * _nearest(some, units, tokens, span)
    return found


def _nearest(some: Tensor, units: int, tokens: int, span: int) -> Float[Tensor, "unit token"]:
    """Which tokens belong to which of the units of a pass: those nearer to it than to the others."""
    if span == units:
        return torch.ones(len(some), tokens, device=some.device)
    apart = (torch.arange(tokens, device=some.device) - some[:, None]).abs()
    return (apart <= span // 2).float()
