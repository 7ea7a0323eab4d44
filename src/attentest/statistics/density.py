"""The shapes of distributions, ready to draw: shares in bins, smooth densities, violins.

What is not a finite number is left out; whoever draws says how many there were.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from attentest.statistics.group_means import MAX_ATTENTION_EDGES as EDGES
from attentest.statistics.group_means import MAX_ATTENTION_SPANS as SPANS

POINTS = 121  # at which a density is told
CUT = 0.02  # a density ends this far beyond its outermost values, as Jain & Wallace (2019) draw them
SHARPEST = (
    0.005  # the least bandwidth: on axes of length one or two, a sharper spike falls between the points
)
ALIKE = 1e-9  # a spread below this is rounding: such values are one value


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """A density over places in ascending order; its area is one."""

    at: NDArray[np.float64]
    height: NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Violin:
    """The values of one group within one span of largest weights."""

    span: str
    group: str
    n: int
    quartiles: tuple[float, float, float]
    curve: Curve | None  # None where there are fewer than two different values


def finite(values: pd.Series) -> NDArray[np.float64]:
    """The numbers among the values."""
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers[np.isfinite(numbers)]


def shares(values: pd.Series, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the values in each bin; all zeros where there are none.

    The edges span all a measure can be, and rounding may take a tau past one: the last bins catch it.
    """
    numbers = np.clip(finite(values), edges[0], edges[-1])
    counts, _ = np.histogram(numbers, bins=edges)
    return counts / max(len(numbers), 1)


def density(values: pd.Series, *, points: int = POINTS) -> Curve | None:
    """A Gaussian kernel density with Scott's bandwidth, cut off shortly beyond the data."""
    numbers = finite(values)
    spread = float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0
    if spread < ALIKE:
        return None
    scott = len(numbers) ** -0.2
    kernel = stats.gaussian_kde(numbers, bw_method=max(scott, SHARPEST / spread))
    at = np.linspace(numbers.min() - CUT, numbers.max() + CUT, points)
    height = kernel(at)
    return Curve(at=at, height=height / np.trapezoid(height, at))


def violins(rows: pd.DataFrame, column: str, groups: pd.Series) -> Iterator[Violin]:
    """One violin for each span of largest weights and each group that has a number there."""
    span = pd.cut(rows["max_attention"].astype(np.float64), EDGES, right=False, labels=list(SPANS))
    for (name, group), values in rows[column].groupby([span, groups], observed=True):
        numbers = finite(values)
        if len(numbers):
            low, middle, high = np.quantile(numbers, (0.25, 0.5, 0.75)).tolist()
            yield Violin(str(name), str(group), len(numbers), (low, middle, high), density(values))
