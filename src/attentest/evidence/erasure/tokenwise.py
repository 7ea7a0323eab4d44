"""Leave-one-out where no token sees another: hidden states stay, attention is spread over the rest.

Where projections renormalise, the rest has a closed form: `(sum_s a_s v_s - a_t v_t) / (sum_s a_s - a_t)`. It
costs one subtraction a token and no second axis of units. Two kinds of variants need a projection of their
own: those whose token held nearly all weight (a text has at most one), because what remains of the others
was rounded away; and, under sparse projections, those whose token had any weight at all. A token outside
the support never moved the threshold, so leaving it out changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.erasure.remainder import (
    AbstractRemainder,
    Answers,
    Carried,
    Drawn,
    answered,
    carried,
    parts_of,
    renormalises,
    reweighed,
)
from attentest.model.networks.decoder import Affine
from attentest.model.seam import Model, Network, Reading

# Above this weight the others are projected again.
NEARLY_ALL = 0.99


def floats_per_variant(model: Model, units: int) -> int:
    """Memory of one variant: what attention carries, in double precision; or scores and weights again."""
    network = parts_of(model)
    width = len(model.labels) if isinstance(network.decoder, Affine) else network.width
    return 6 * width if renormalises(network.projection) else 8 * units + 2 * width


@final
class TokenWiseRemainder(AbstractRemainder):
    """No state changes when another unit is deleted, so scores are held as they are."""

    def own(self) -> Answers:
        """Every unit keeps its score."""
        return token_wise(parts_of(self.model), self.reading, self.lefts)

    def under(self, weights: Drawn, scores: Drawn) -> Float[Tensor, "batch draw variant class"]:
        """The same closed form for every draw."""
        network = parts_of(self.model)
        draws = [
            token_wise(network, replace(self.reading, weights=drawn, scores=scored), self.lefts)
            for drawn, scored in zip(weights.unbind(1), scores.unbind(1), strict=True)
        ]
        return torch.stack(draws, dim=1)


def token_wise(model: Network, reading: Reading, lefts: range) -> Answers:
    """The logits of each variant."""
    sums = (_renormalised if renormalises(model.projection) else _projected)(model, reading, lefts)
    return answered(model, reading, sums)


def _renormalised(model: Network, reading: Reading, lefts: range) -> Carried:
    each, leaving = carried(reading), reading.weights[:, lefts.start : lefts.stop]
    # In double precision the differences lose nothing that the weights themselves had.
    parts = reading.weights.masked_fill(~reading.mask, 0.0).double()
    shares = parts[..., None] * each
    rest = shares.sum(1, keepdim=True) - shares[:, lefts.start : lefts.stop]
    mass = parts.sum(1, keepdim=True) - leaving
    sums = (rest / mass[..., None]).to(each.dtype)
    texts, variants = (leaving > NEARLY_ALL).nonzero(as_tuple=True)
    if len(texts):
        weights = _weights_without(model, reading, texts, variants + lefts.start)
        sums[texts, variants] = (weights[:, None] @ each[texts])[:, 0]
    return sums


def _projected(model: Network, reading: Reading, lefts: range) -> Carried:
    weights = reading.weights[:, None].repeat(1, len(lefts), 1)
    texts, variants = (reading.weights[:, lefts.start : lefts.stop] > 0).nonzero(as_tuple=True)
    weights[texts, variants] = _weights_without(model, reading, texts, variants + lefts.start)
    return weights @ carried(reading)


def _weights_without(
    model: Network, reading: Reading, texts: Int[Tensor, " row"], lefts: Int[Tensor, " row"]
) -> Float[Tensor, "row unit"]:
    remain = reading.mask[texts]
    remain[torch.arange(len(texts), device=texts.device), lefts] = False
    return reweighed(model, reading.weights[texts], reading.scores[texts], remain)
