"""Gradient importance (JW-1): how much the output would move with each word's vector.

The probability is differentiated, not the logit. With attention *held*, a word counts only through the
hidden states that attention sums up; *free*, also through the weights it brings about. Jain & Wallace hold
it, Meister et al. do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.evidence.removal.decisions import predicted
from attentest.model.batch import Batch
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading
from attentest.shapes import Embedded, Logits

PerUnit = Float[Tensor, "batch unit"]


@final
@dataclass(frozen=True, kw_only=True)
class Gradients:
    """One text a row, one unit a column, zero on padding; a unit of several words has their sum."""

    reading: Reading  # of the same pass, without its graph
    times_input: PerUnit  # |sum over dimensions of gradient x input|, attention held: JW-1
    signed: PerUnit  # the same sum with its sign: positive speaks for the explained class
    norm_held: PerUnit
    norm_free: PerUnit | None = None
    under: Float[Tensor, "batch draw unit"] | None = None  # `times_input` under each attention that was given


def gradients(
    model: Model,
    batch: Batch,
    *,
    free: bool = False,
    given: Float[Tensor, "batch draw *head unit"] | None = None,
) -> Gradients:
    """Read the batch once and go back once; `free` goes back a second time, through the weights too.

    Under `given` attention it goes back once more for each draw, on the same graph: `gradients_under` has
    faster ways where they are known.
    """
    with parameters_at_rest(model), torch.enable_grad():
        embeddings = model.embedding(batch.tokens).detach().requires_grad_()
        reading = model.read(batch, embeddings=embeddings)
        logits = model.decide(reading, reading.weights.detach())
        drawn = [] if given is None else [each.detach() for each in given.unbind(1)]
        held = _slope(logits, embeddings, again=free or bool(drawn))
        loose = _slope(model.decide(reading), embeddings, again=bool(drawn)) if free else None
        slopes = [_slope(model.decide(reading, each), embeddings, again=True) for each in drawn]
    at_rest = reading.detached()
    times_input = (held * at_rest.embeddings).sum(-1)
    under = [per_unit(model, at_rest, (each * at_rest.embeddings).sum(-1).abs()) for each in slopes]
    return Gradients(
        reading=at_rest,
        times_input=per_unit(model, at_rest, times_input.abs()),
        signed=per_unit(model, at_rest, times_input * _towards_explained(at_rest, logits.detach())),
        norm_held=per_unit(model, at_rest, held.norm(dim=-1)),
        norm_free=None if loose is None else per_unit(model, at_rest, loose.norm(dim=-1)),
        under=torch.stack(under, dim=1) if under else None,
    )


def _slope(logits: Logits, embeddings: Embedded, *, again: bool = False) -> Embedded:
    """The gradient of each text's probability: texts do not see each other, so the sum has each one's own."""
    return torch.autograd.grad(likeliest(logits).sum(), embeddings, retain_graph=again)[0]


def likeliest(logits: Logits) -> Float[Tensor, " batch"]:
    """The probability that gradients are of: of class 1 where there is one logit, else of the likeliest."""
    return distribution(logits).amax(-1) if logits.shape[-1] > 1 else torch.sigmoid(logits[:, 0])


def _towards_explained(reading: Reading, logits: Logits) -> Float[Tensor, "batch 1"]:
    """-1 where the gradient is of the other class: of one logit, it is always class 1's.

    A reading that names the class to explain has two, of which the gradient is the likelier one's.
    """
    ones = logits.new_ones(len(logits), 1)
    if reading.explained is not None:
        return ones.where((reading.explained == predicted(logits))[:, None], -1.0)
    return ones if logits.shape[-1] > 1 else ones.where(logits > 0, -1.0)


@contextmanager
def parameters_at_rest(model: Model) -> Iterator[None]:
    """While this holds, going back skips the gradients of the parameters, which is most of the work."""
    moving = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in moving:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in moving:
            parameter.requires_grad_(True)


def per_unit(model: Model, reading: Reading, of_tokens: Float[Tensor, "batch token"]) -> PerUnit:
    """A unit of several tokens has their sum: the sentence of a hierarchy, or the one last state."""
    of_tokens = of_tokens.masked_fill(~reading.batch.mask, 0.0)
    if model.gathers:
        units = of_tokens.new_zeros(reading.mask.shape)
        numbers = reading.batch.sentences
        if numbers is None:
            numbers = torch.zeros_like(reading.batch.tokens)
        return units.scatter_add(1, numbers.clamp(0, units.shape[1] - 1), of_tokens)
    return of_tokens if reading.mask.shape == of_tokens.shape else of_tokens.sum(1, keepdim=True)
