"""In which order items are removed: by attention, by its gradient, by their product, or at random (SS-3)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.removal.decisions import as_classes, explained_class
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading

PerUnit = Float[Tensor, "batch unit"]


def rankings(model: Model, reading: Reading) -> dict[str, PerUnit]:
    """What each ranking says of every unit; the largest is removed first. Signs count, as published.

    With one logit the product is `a_t v_t` in the direction of the decision, up to a factor, while an item's
    share in the lead is `a_t (v_t + b)`: it differs from the exact smallest flip only through the bias.
    """
    weights, slope = reading.weights.detach(), slopes(model, reading)
    return {"attention": weights, "gradient": slope, "product": weights * slope}


def slopes(model: Model, reading: Reading) -> PerUnit:
    """How the probability of the predicted class moves with each weight, the weights taken as free.

    `d p_y / d a_t`, hidden states held; signed, since a large negative slope speaks for another class.
    """
    if reading.values is None or reading.bias is None:
        return by_differentiating(model, reading)
    return in_closed_form(model, reading)


def in_closed_form(model: Model, reading: Reading) -> PerUnit:
    """`p_y (v_ty - sum of p_c v_tc)`: a softmax differentiated, of logits that are linear in attention."""
    assert reading.values is not None
    values = reading.values.detach()
    if reading.batch.answers is not None:  # what an impossible answer would say may be NaN
        values = values.masked_fill(~reading.batch.answers[:, None], 0.0)
    with torch.no_grad():
        logits = model.decide(reading)
    probabilities, own, said = distribution(logits), explained_class(reading, logits), as_classes(values)
    of_own = said.gather(2, own[:, None, None].expand(-1, said.shape[1], 1))[:, :, 0]
    expected = (said @ probabilities[:, :, None])[:, :, 0]
    slope = probabilities.gather(1, own[:, None]) * (of_own - expected)
    return slope.masked_fill(~reading.mask, 0.0)


def by_differentiating(model: Model, reading: Reading) -> PerUnit:
    """The same through `decide`, whatever stands behind it."""
    with torch.enable_grad():
        free = reading.weights.detach().clone().requires_grad_()
        logits = model.decide(reading, free)
        likeliest = distribution(logits).gather(1, explained_class(reading, logits)[:, None])
        # Texts do not see each other, so the gradient of the sum is every text's own.
        (slope,) = torch.autograd.grad(likeliest.sum(), free)
    return slope.masked_fill(~reading.mask, 0.0)


def largest_first(scores: PerUnit, items: Bool[Tensor, "batch unit"]) -> Int[Tensor, "batch unit"]:
    """Items by falling score, of equals the first in the text; units that are no items come last."""
    return scores.masked_fill(~items, float("-inf")).argsort(dim=1, descending=True, stable=True)
