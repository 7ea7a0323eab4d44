"""How many ranks of attention are compared: as many as most texts have, and most weights reach (A9)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

FEWEST = 3  # of fewer ranks an order says next to nothing


class Depth(NamedTuple):
    """How far down the ranks go: by the texts' lengths, and by the attention that is left there."""

    by_length: int
    by_attention: int

    @property
    def k(self) -> int:
        """The number of ranks."""
        return min(self)


def depth(
    attention: Float[np.ndarray, "text unit"],
    lengths: Int[np.ndarray, " text"],
    *,
    percentile: float = 10.0,
    share: float = 0.8,
    least: float = 1e-5,
) -> Depth:
    """The length that all but `percentile` of the texts reach, and the last rank with attention to speak of.

    `attention` is sorted, the largest first. The last rank is the largest k at which, of the texts that are
    so long, at least `share` have more than `least` there.
    """
    if not len(lengths):
        return Depth(0, 0)
    ranks = np.arange(1, attention.shape[1] + 1)
    reaching = lengths[:, None] >= ranks
    heavy = (reaching & (attention > least)).sum(axis=0)
    enough = (heavy > 0) & (heavy >= share * reaching.sum(axis=0))
    return Depth(int(np.percentile(lengths, percentile)), int(ranks[enough].max(initial=0)))
