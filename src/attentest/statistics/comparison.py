"""How far apart two distributions or two rankings are: the kernels every experiment shares.

Natural logarithms throughout. What is undefined is NaN, silently: whoever averages must exclude it
and say how many there were, and a warning per instance would hide that count rather than give it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from attentest.refusal import Refusal


@runtime_checkable
class Arrayable(Protocol):
    """Whatever offers itself to numpy as an array."""

    def __array__(self) -> np.ndarray: ...


Numbers: TypeAlias = Sequence[Any] | Arrayable
Measured: TypeAlias = np.float64 | NDArray[np.float64]  # a number where there were no leading axes
Defined: TypeAlias = np.bool_ | NDArray[np.bool_]

# Half-precision softmax misses one by up to 2^-9 (bfloat16 keeps eight bits), so that much must pass.
# Beyond it the vector is no distribution: a divergence "clipped" from there would be invented.
MASS_TOLERANCE = 4e-3


def total_variation(p: Numbers, q: Numbers) -> Measured:
    """Half the summed absolute differences: the most any event's probability can differ, in [0, 1].

    For a binary output written as (1 - y, y) this is |y1 - y2|, as Jain & Wallace (2019) use it.
    """
    p, q, defined = _distributions(p, q)
    distance = 0.5 * np.abs(p - q).sum(axis=-1)
    return _where(defined, np.minimum(distance, 1.0))


def jensen_shannon(p: Numbers, q: Numbers) -> Measured:
    """The mean divergence of p and q from their midpoint, in [0, ln 2].

    Jain & Wallace (2019). Departure: the published code adds 1e-10 inside the logarithms; here a zero
    contributes exactly nothing, so disjoint supports give ln 2 and equal vectors 0.
    """
    p, q, defined = _distributions(p, q)
    divergence = 0.5 * (_from_midpoint(p, p + q) + _from_midpoint(q, p + q)).sum(axis=-1)
    return _where(defined, np.clip(divergence, 0.0, math.log(2)))


def normalised_entropy(p: Numbers, mask: Numbers | None = None) -> Measured:
    """Entropy divided by its largest possible value ln n: 0 is one-hot, 1 is uniform.

    n counts the real tokens (`mask`, or all), not the support: a sparse attention over a long text
    is meant to score low. A text of one token has no spread to speak of, so it is NaN.
    """
    p = np.atleast_1d(np.asarray(p, dtype=np.float64))
    real = np.ones(p.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    p, real = np.broadcast_arrays(p, real)
    p = np.where(real, p, 0.0)  # padding may hold anything, even NaN
    n = real.sum(axis=-1)
    defined = _is_distribution(p) & (n > 1)
    positive = np.where(np.expand_dims(defined, -1) & (p > 0), p, 1.0)  # 1 ln 1 contributes nothing
    entropy = 0.0 - (positive * np.log(positive)).sum(axis=-1)  # never -0.0
    return _where(defined, np.clip(entropy / np.log(np.maximum(n, 2)), 0.0, 1.0))


def kendall(x: Numbers, y: Numbers) -> tuple[float, float]:
    """Kendall's tau-b and its p-value, as `scipy.stats.kendalltau` gives them.

    Tau-b because sparse attention ties many tokens at zero: tau-a could never reach one there,
    however well the rankings agree. Constant vectors have no ranking, hence NaN.
    """
    x, y = _vectors(x, y)
    if not (_is_rankable(x) and _is_rankable(y)) or (x == x[0]).all() or (y == y[0]).all():
        return math.nan, math.nan
    found = stats.kendalltau(x, y)
    return float(found.statistic), float(found.pvalue)


def weighted_kendall(x: Numbers, y: Numbers, weights: Numbers) -> float:
    """Rank agreement in which a pair counts by the product of its weights, in [-1, 1].

    Wen et al. (2022) after Shieh (1998). Ties count nothing above the line and fully below it, so a
    constant vector gives 0, unlike tau-b. This is not `scipy.stats.weightedtau`, whose weights come
    from ranks and add.
    """
    x, y, weights = _vectors(x, y, weights)
    scaled = _scaled(weights)
    if (scaled > 0).sum() < 2 or not (_is_rankable(x) and _is_rankable(y)):
        return math.nan
    pairs = np.outer(scaled, scaled)
    np.fill_diagonal(pairs, 0.0)
    return float((pairs * (_order(x) * _order(y))).sum() / pairs.sum())


def mutual_information(x_labels: Numbers, y_labels: Numbers) -> float:
    """The plug-in estimate of I(X; Y) from paired symbols, in nats.

    It is biased upwards: independent symbols give about (N_x - 1)(N_y - 1) / 2n, so it is to be read
    against a permutation floor. A missing label makes it NaN.
    """
    x_labels, y_labels = _vectors(x_labels, y_labels, dtype=None)
    x, _ = pd.factorize(x_labels)
    y, _ = pd.factorize(y_labels)
    n = len(x)
    if n == 0 or min(x.min(), y.min()) < 0:
        return math.nan
    # Only pairs that occur are listed: the full table of two fine codebooks need not fit in memory.
    cells, counts = np.unique(x.astype(np.int64) * (y.max() + 1) + y, return_counts=True)
    in_row = np.bincount(x)[cells // (y.max() + 1)]
    in_column = np.bincount(y)[cells % (y.max() + 1)]
    terms = counts / n * np.log(counts * float(n) / (in_row * in_column.astype(np.float64)))
    return max(0.0, math.fsum(terms))  # exactly rounded, so neither order nor names matter


def _distributions(p: Numbers, q: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64], Defined]:
    """Both as arrays of one shape, and where both are distributions; elsewhere they are zeroed.

    Zeroing first keeps infinities and negative entries from raising warnings on their way to NaN.
    """
    first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if first.ndim == 0 or second.ndim == 0 or first.shape[-1] != second.shape[-1]:
        raise Refusal(
            "comparing two distributions",
            got=f"shapes {first.shape} and {second.shape}",
            needs="a last axis of the same length in both",
            way_out="Compare distributions over the same tokens or classes.",
        )
    first, second = np.broadcast_arrays(first, second)
    defined = _is_distribution(first) & _is_distribution(second)
    kept = np.expand_dims(defined, -1)
    return np.where(kept, first, 0.0), np.where(kept, second, 0.0), defined


def _is_distribution(p: NDArray[np.float64]) -> Defined:
    proper = (p >= 0) & (p <= 1 + MASS_TOLERANCE)  # False for NaN
    mass = np.where(proper, p, 0.0).sum(axis=-1)
    return proper.all(axis=-1) & (np.abs(mass - 1.0) <= MASS_TOLERANCE)


def _where(defined: Defined, value: Measured) -> Measured:
    return np.where(defined, value, np.nan)[()]


def _from_midpoint(p: NDArray[np.float64], both: NDArray[np.float64]) -> NDArray[np.float64]:
    """p ln(p / m) for the midpoint m, given as p + q: halving a denormal would make it zero."""
    return p * np.log(np.divide(2.0 * p, both, out=np.ones_like(both), where=p > 0))


def _vectors(*given: Numbers, dtype: type | None = np.float64) -> list[np.ndarray]:
    arrays = [np.asarray(one, dtype=dtype) for one in given]
    if any(array.ndim != 1 or array.shape != arrays[0].shape for array in arrays):
        raise Refusal(
            "comparing rankings or labels",
            got=f"shapes {', '.join(str(array.shape) for array in arrays)}",
            needs="flat vectors of one length",
            way_out="Pass one instance at a time, without its padding.",
        )
    return arrays


def _is_rankable(x: np.ndarray) -> bool:
    return len(x) > 1 and not np.isnan(x).any()


def _scaled(weights: np.ndarray) -> np.ndarray:
    """Weights relative to the largest, whose products then do not underflow; zeros if they are no weights."""
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
        return np.zeros(weights.shape)
    return weights / weights.max()


def _order(x: np.ndarray) -> NDArray[np.int8]:
    """sgn(x_i - x_j) for all pairs, by comparing: a difference of infinities would be NaN."""
    return np.greater.outer(x, x).astype(np.int8) - np.less.outer(x, x).astype(np.int8)
