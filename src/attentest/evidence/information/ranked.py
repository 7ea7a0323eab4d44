"""A text's units in the order of their attention, and its output as a symbol (Wen et al. 2022)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.information.quantisation import k_means
from attentest.model.seam import Reading

NAN = float("nan")


class Ranked(NamedTuple):
    """The largest weight first; `vectors` hold the first ranks' hidden states."""

    weights: Float[Tensor, "batch unit"]  # NaN beyond the text's own units
    vectors: Float[Tensor, "batch rank hidden"]


def ranked(reading: Reading, most: int) -> Ranked:
    """Every text's units by attention, ties in the order of the text; vectors of at most `most` ranks."""
    weights = reading.weights.masked_fill(~reading.mask, -1.0)  # behind every real unit, also one of weight 0
    order = weights.argsort(dim=1, descending=True, stable=True)
    places = order[:, :most, None].expand(-1, -1, reading.hidden.shape[2])
    in_order = reading.weights.masked_fill(~reading.mask, NAN).gather(1, order)
    return Ranked(in_order, reading.hidden.gather(1, places))


def output_symbols(
    logits: Float[Tensor, "text class"], number: int, *, rng: torch.Generator, restarts: int = 10
) -> Int[Tensor, " text"]:
    """What the model said, as one of few symbols: of two classes the clustered logit, of more the predicted.

    Two logits are one by their difference, unless an answer was impossible.
    """
    if logits.shape[1] > 2 or not logits.isfinite().all():
        return logits.argmax(1)
    logit = logits[:, -1:] - logits[:, :1] if logits.shape[1] == 2 else logits
    return k_means(logit.double(), number, rng=rng, restarts=restarts).symbols
