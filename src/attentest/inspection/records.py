"""What is measured of one text, as plain records: numbers and their nulls, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, " unit"]


@final
@dataclass(frozen=True, eq=False)
class Prediction:
    """The class that is said, and the probability of every class."""

    label: str
    probability: float
    probabilities: Mapping[str, float]


@final
@dataclass(frozen=True, eq=False)
class Agreement:
    """Kendall's tau-b of attention with an importance, beside the same under permuted attention."""

    tau: float
    null: float  # the mean over permutations
    null_low: float  # their central 95 %
    null_high: float
    recomputed: bool  # whether the importance was computed again under each permutation


@final
@dataclass(frozen=True, eq=False)
class Importance:
    """A number for every unit: positive speaks for the predicted class, negative against it."""

    name: str
    tokens: tuple[str, ...]
    scores: Vector
    magnitude: Vector  # what rankings are of: the unsigned measure of the studies where there is one
    label: str  # of the class that it speaks for
    convergence_delta: float | None = None  # the sum of the scores less what they promise to add up to
    agreement: Agreement | None = None


@final
@dataclass(frozen=True, eq=False)
class Adversary:
    """The furthest attention under which the output changes by at most epsilon."""

    weights: Vector
    divergence: float  # Jensen-Shannon from the own attention, in nats: at most ln 2
    output_change: float  # total variation
    exact: bool  # the divergence is the proven maximum; else it is the best that a search found
    bound: float  # no attention within epsilon diverges more
    epsilon: float
    null: float | None  # the median of the same maximum for permuted attention, where it is exact


@final
@dataclass(frozen=True, eq=False)
class Permuted:
    """What the output does when the text's own weights are laid on other units at random."""

    median_change: float  # total variation
    low: float  # the central 95 % of the changes
    high: float
    flips: float  # the share of permutations under which another class is said
    changes: Float[np.ndarray, " permutation"]


@final
@dataclass(frozen=True, eq=False)
class SmallestFlip:
    """The fewest units without which another class is said, the other weights being renormalised."""

    indices: tuple[int, ...]
    words: tuple[str, ...]
    label: str  # what is said then
    probability: float  # of that
    exact: bool  # nothing smaller flips; else it is the shortest of three rankings that does

    @property
    def count(self) -> int:
        """How many units there are in it."""
        return len(self.indices)


def plain(value: Any) -> Any:
    """A record as dicts, lists and numbers."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
