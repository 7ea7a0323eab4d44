"""Mutual information of many pairs of symbols at once, from their tables of counts, in nats.

The plug-in estimate is that of `comparison.mutual_information`; a null needs it for every rank of every draw.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int
from scipy.special import xlogy

Symbols: TypeAlias = Int[np.ndarray, "text rank"]
Output: TypeAlias = Int[np.ndarray, " text"]
Tables: TypeAlias = Int[np.ndarray, "rank symbol output"]
PerRank: TypeAlias = Float[np.ndarray, " rank"]


def tables(symbols: Symbols, output: Output) -> Tables:
    """For every rank, how often each of its symbols meets each output; symbols are small numbers from 0."""
    ranks, of_rank, of_output = symbols.shape[1], _count(symbols), _count(output)
    cells = (np.arange(ranks) * of_rank + symbols) * of_output + output[:, None]
    counted = np.bincount(cells.ravel(), minlength=ranks * of_rank * of_output)
    return counted.reshape(ranks, of_rank, of_output)


def plug_in(counts: Tables) -> PerRank:
    """I(X; Y) of the shares as they are: biased upwards, the more so the more cells there are."""
    rows, columns, n = counts.sum(2), counts.sum(1), counts.sum((1, 2))
    joint = xlogy(counts, counts).sum((1, 2)) - xlogy(rows, rows).sum(1) - xlogy(columns, columns).sum(1)
    return np.maximum(0.0, joint / n + np.log(n))


def miller_madow(counts: Tables) -> PerRank:
    """The plug-in estimate less its bias of first order: every entropy gains (occupied cells - 1) / 2n.

    It may be negative, as an unbiased estimate of nothing must be half of the time.
    """
    return plug_in(counts) + _correction(counts)


def standard_error(counts: Tables) -> PerRank:
    """Of either estimate over texts, by the delta method.

    I(X; Y) is the mean over texts of ln p(x,y) / p(x)p(y), so it varies as a mean does. Where X and Y are
    independent the true error is smaller.
    """
    n = counts.sum((1, 2), keepdims=True)
    expected = counts.sum(1, keepdims=True) * counts.sum(2, keepdims=True) / n
    pointwise = np.log(np.divide(counts, expected, out=np.ones(counts.shape), where=counts > 0))
    share = counts / n
    mean = (share * pointwise).sum((1, 2), keepdims=True)
    return np.sqrt((share * (pointwise - mean) ** 2).sum((1, 2)) / n[:, 0, 0])


def floors(symbols: Symbols, output: Output, draws: int, rng: np.random.Generator) -> tuple[PerRank, PerRank]:
    """Both estimates, plug-in and corrected, on average where outputs are dealt to the texts at random.

    The closed form (symbols - 1)(outputs - 1) / 2n is too high where texts are too few to fill the cells.
    """
    shuffled = [tables(symbols, rng.permutation(output)) for _ in range(draws)]
    plain = [plug_in(one) for one in shuffled]
    corrected = [own + _correction(one) for own, one in zip(plain, shuffled, strict=True)]
    return np.mean(plain, axis=0), np.mean(corrected, axis=0)


def entropy(output: Output) -> float:
    """Of the output alone: no symbol can tell more about it."""
    share = np.bincount(output) / len(output)
    return float(0.0 - xlogy(share, share).sum())


def _correction(counts: Tables) -> PerRank:
    """What the plug-in estimate lacks of the corrected one."""
    occupied = (counts > 0).sum((1, 2))
    of_x, of_y = (counts.any(2)).sum(1), (counts.any(1)).sum(1)
    return (of_x + of_y - occupied - 1) / (2 * counts.sum((1, 2)))


def _count(symbols: np.ndarray) -> int:
    return int(symbols.max(initial=-1)) + 1
