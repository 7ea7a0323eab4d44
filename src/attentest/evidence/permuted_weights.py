"""The same weights on other units: a null for models whose states nobody can move.

Where a decision sums up states by weights, states that change places beneath the weights and weights that are
dealt to other states are one and the same. A model made elsewhere keeps its states to itself, but answers
under any weights: so there, weights are dealt.
"""

from __future__ import annotations

from dataclasses import replace

from jaxtyping import Int
from torch import Tensor

from attentest.model.seam import Reading

Order = Int[Tensor, "batch unit"]


def permuted_weights(reading: Reading, order: Order) -> Reading:
    """Each weight at the unit that `order` has at its place; the rest of the reading stays.

    The model's own weights are no longer the reading's, so it must be asked with the reading's given to it.
    """
    return replace(
        reading,
        weights=reading.weights.scatter(1, order, reading.weights),
        scores=reading.scores.scatter(1, order, reading.scores),
    )
