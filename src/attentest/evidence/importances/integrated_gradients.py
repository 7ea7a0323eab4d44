"""Integrated gradients (Sundararajan et al. 2017): slopes along the way from no vectors to the words' own.

Attention is free to follow on the way: only then do the values of a text add up to what its words change,
which is what the method promises. The way is a straight line, and Gauss and Legendre say where to stop on it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.erasure import leave_one_out as erasure
from attentest.evidence.importances.gradient import parameters_at_rest, per_unit
from attentest.evidence.importances.presence import PerUnit, explained
from attentest.model.batch import buckets
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading
from attentest.model.subset import selected, selected_batch
from attentest.refusal import Refusal
from attentest.shapes import Embedded


def integrated_gradients(
    model: Model, reading: Reading, *, steps: int = 32, rng: torch.Generator | None = None
) -> PerUnit:
    """What each unit adds to the predicted class's probability on the way from vectors of zeros; signed.

    A unit of several tokens has their sum. Nothing is drawn: `rng` is there because other explainers draw.
    """
    if steps < 1:
        raise Refusal(
            "integrated gradients", got=f"{steps} steps", needs="at least 1", way_out="32 are the default."
        )
    along = torch.zeros(reading.batch.mask.shape, dtype=reading.embeddings.dtype, device=reading.mask.device)
    for texts in _of_alike_length(model, reading, steps):
        some = selected(reading, texts)
        along[texts, : some.batch.mask.shape[1]] = _along(model, some, steps)
    return per_unit(model, reading, along)


def _of_alike_length(model: Model, reading: Reading, steps: int) -> Iterator[Int[Tensor, " some"]]:
    """Texts whose whole way fits into memory together: what stands on padding goes all the way, too."""
    lengths = reading.batch.mask.sum(1).tolist()
    costs = np.array([steps * floats_of_a_step(model, length) for length in lengths])
    for group in buckets(costs, len(costs), tokens=erasure.FLOATS):
        yield torch.from_numpy(group).to(reading.mask.device)


def floats_of_a_step(model: Model, tokens: int) -> int:
    """A pass that goes back keeps what it made on the way, some three times what one that does not holds."""
    return 3 * erasure.ROADS["whole"].floats_per_variant(model, tokens)


def _along(model: Model, reading: Reading, steps: int) -> Float[Tensor, "batch token"]:
    """What each token adds over all steps, as many of them in one pass as memory allows."""
    nodes, shares = (torch.from_numpy(side / 2) for side in np.polynomial.legendre.leggauss(steps))
    vectors = reading.embeddings.detach()
    slope = torch.zeros_like(vectors)
    at_once = erasure.FLOATS // (len(vectors) * floats_of_a_step(model, vectors.shape[1]))
    for some in torch.arange(steps).split(max(1, at_once)):
        slopes = slopes_at(model, reading, (nodes[some] + 0.5).to(vectors))
        slope += torch.einsum("s,sbte->bte", shares[some].to(vectors), slopes)
    return (slope * vectors).sum(-1)


def slopes_at(
    model: Model, reading: Reading, shares: Float[Tensor, " step"]
) -> Float[Tensor, "step batch token emb"]:
    """The gradient of the predicted class's probability at these shares of the way, all in one pass."""
    steps, batch, about = len(shares), len(reading.mask), explained(model, reading)
    texts = torch.arange(batch, device=reading.mask.device).repeat(steps)
    with parameters_at_rest(model), torch.enable_grad():
        on_the_way: Embedded = (shares[:, None, None, None] * reading.embeddings.detach()).flatten(0, 1)
        on_the_way.requires_grad_()
        again = model.read(
            selected_batch(reading.batch, texts, reading.batch.mask.shape[1]), embeddings=on_the_way
        )
        likely = distribution(model.decide(again)).gather(1, about.predicted[texts, None])
        # Texts do not see each other, so the gradient of the sum is every text's own.
        (slopes,) = torch.autograd.grad(likely.sum(), on_the_way)
    return slopes.view(steps, *reading.embeddings.shape)
