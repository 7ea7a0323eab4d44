"""Mutual information without any clusters: from who is near whom (Ross 2014)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import digamma


def nearest_neighbour(
    alike: Int[np.ndarray, "text rank"],
    within: Int[np.ndarray, "text rank"],
    output: Int[np.ndarray, " text"],
) -> Float[np.ndarray, " rank"]:
    """I(X; Y) = psi(n) - <psi(n_y)> + <psi(alike)> - <psi(within)>, in nats; signed, since it is unbiased.

    Around each text is the ball that just holds its k-th neighbour of the same output: it holds `alike` texts
    of that output and `within` of any. Where the output matters, few of the others are of another one. A text
    whose output nobody shares has no such neighbour and is left out.
    """
    shared = np.bincount(output)[output]
    kept = shared > 1
    if not kept.any():
        return np.full(alike.shape[1], np.nan)
    balls = digamma(alike[kept]) - digamma(within[kept])
    return digamma(kept.sum()) - digamma(shared[kept]).mean() + balls.mean(axis=0)
