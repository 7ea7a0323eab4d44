"""Kendall's tau-b of many texts at once, and of many variants of the same text.

Scipy spends a fifth of a millisecond on a text whatever its length, mostly on its own machinery, and the
nulls ask twenty times as often. For texts of some hundred tokens it is faster to look at every pair: with
ranks in bytes and comparisons packed into bits, one machine word answers sixty-four pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias, final

import numpy as np
from jaxtyping import Bool, Float, Shaped, UInt
from scipy import special

from attentest.refusal import Refusal
from attentest.statistics.comparison import Numbers, kendall

Real: TypeAlias = Bool[np.ndarray, "text token"]  # False where a row is padding
Variants: TypeAlias = Float[np.ndarray, "text #variant token"]
Ranks: TypeAlias = UInt[np.ndarray, "text #variant token"]
Counts: TypeAlias = Float[np.ndarray, "text #variant"]  # whole numbers; exact in a float up to 2^53
Measured: TypeAlias = Float[np.ndarray, "text #variant"]
Defined: TypeAlias = Bool[np.ndarray, "text #variant"]

Count: TypeAlias = Callable[
    [np.ndarray, np.ndarray, np.ndarray], np.ndarray
]  # of ranks, as `concordant` does

SIGNIFICANT = 0.05  # Jain & Wallace (2019), without a correction for the number of texts
EXACT_UP_TO = 33  # tokens: scipy's own border between the exact distribution and the normal one
PAIRS_UP_TO = 1000  # tokens: beyond, sorting in n log n overtakes looking at all pairs
CELLS = 2**20  # comparisons held at once: a megabyte of them stays in the cache


def kendalls(
    x: Numbers, y: Numbers, lengths: Numbers, *, count: Count | None = None
) -> tuple[Float[np.ndarray, "text ..."], Float[np.ndarray, "text ..."]]:
    """Tau-b and its two-sided p-value of every text, as `scipy.stats.kendalltau` gives them.

    Rows are texts; their first `lengths` entries are real, and the rest may hold anything. Where `y` has
    a third axis in the middle, each of these variants is compared with the same `x`. NaN where a vector
    has fewer than two entries, is constant, or holds a NaN. `count` may count the concordant pairs elsewhere.
    """
    first, second, real = padded(x, y, lengths)
    tau, p_value = np.full((2, *second.shape[:2]), np.nan)
    long = real.sum(axis=1) > PAIRS_UP_TO
    tau[~long], p_value[~long] = _by_pairs(first[~long], second[~long], real[~long], count or concordant)
    for text in np.flatnonzero(long):
        kept = real[text]
        for variant, other in enumerate(second[text]):
            tau[text, variant], p_value[text, variant] = kendall(first[text, 0, kept], other[kept])
    shape = np.shape(y)[:-1]
    return tau.reshape(shape), p_value.reshape(shape)


def significant(p_value: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """1 where the agreement is significant, 0 where it is not, NaN where there is none to speak of."""
    return np.where(np.isnan(p_value), np.nan, (p_value <= SIGNIFICANT).astype(np.float64))


def concordance(x: Variants, y: Variants, real: Real) -> Counts:
    """Concordant minus discordant pairs among each text's real entries; a tie is neither."""
    return _balance(_ranked(x, real), _ranked(y, real), real, concordant)


def padded(x: Numbers, y: Numbers, lengths: Numbers) -> tuple[Variants, Variants, Real]:
    """Both with an axis of variants, of which `x` has one, and where their entries are real."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    held = np.asarray(lengths)
    fits = first.ndim == 2 and second.ndim in (2, 3) and second.shape[:: second.ndim - 1] == first.shape
    if not fits or held.shape != first.shape[:1] or (held > first.shape[1]).any():
        raise Refusal(
            "ranking many texts",
            got=f"shapes {first.shape} and {second.shape}, lengths {held.shape} up to {held.max(initial=0)}",
            needs="(text, token), then (text, token) or (text, variant, token), and a length for every text",
            way_out="Pad the texts of a batch to one length.",
        )
    real = np.arange(first.shape[1]) < held[:, None]
    return first[:, None], second if second.ndim == 3 else second[:, None], real


def rankable(values: Variants, real: Real) -> Defined:
    """Whether there are at least two real entries and none of them is NaN."""
    return ~(np.isnan(values) & real[:, None]).any(axis=2) & (real.sum(axis=1) > 1)[:, None]


@final
@dataclass(frozen=True)
class _Ranked:
    """Dense ranks from 1, the smallest, and three sums over the groups of t tied entries."""

    ranks: Ranks
    pairs: Counts  # t (t - 1) / 2
    triples: Counts  # t (t - 1) (t - 2)
    spread: Counts  # t (t - 1) (2 t + 5)


def _by_pairs(x: Variants, y: Variants, real: Real, count: Count) -> tuple[Measured, Measured]:
    first, second = _ranked(x, real), _ranked(y, real)
    n = real.sum(axis=1, dtype=np.float64)[:, None]
    balance = _balance(first, second, real, count)
    defined = rankable(x, real) & rankable(y, real)
    with np.errstate(divide="ignore", invalid="ignore"):  # a constant vector is 0 / 0, and so NaN
        tau = balance / np.sqrt(_pairs(n) - first.pairs) / np.sqrt(_pairs(n) - second.pairs)
        p_value = _p_value(balance, n, first, second)
    undefined = ~defined | np.isnan(tau)
    return np.where(undefined, np.nan, np.clip(tau, -1.0, 1.0)), np.where(undefined, np.nan, p_value)


def _pairs(n: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    return n * (n - 1.0) / 2.0


def _ranked(values: Variants, real: Real) -> _Ranked:
    """Padding is taken for NaN, which sorts behind everything and ties with nothing, not even itself."""
    values = np.where(real[:, None], values, np.nan)
    order = values.argsort(axis=2)
    starts = _starts(np.take_along_axis(values, order, axis=2))
    size = np.min_scalar_type(values.shape[2] + 1)  # with room for a rank above all
    ranks = np.empty(values.shape, dtype=size)
    np.put_along_axis(ranks, order, starts.cumsum(axis=2, dtype=size), axis=2)
    return _Ranked(ranks, *_ties(starts))


def _starts(ascending: Shaped[np.ndarray, "*shape"]) -> Bool[np.ndarray, "*shape"]:
    """Where a new value begins."""
    starts = np.ones(ascending.shape, dtype=bool)
    starts[..., 1:] = ascending[..., 1:] != ascending[..., :-1]
    return starts


def _ties(starts: Bool[np.ndarray, "... token"]) -> Float[np.ndarray, "3 ..."]:
    """The three sums of a `_Ranked` for every row."""
    *rows, tokens = starts.shape
    begun = np.flatnonzero(starts)
    t = np.diff(begun, append=starts.size).astype(np.float64)
    row, t = begun[t > 1] // max(1, tokens), t[t > 1]
    terms = t * (t - 1) / 2, t * (t - 1) * (t - 2), t * (t - 1) * (2 * t + 5)
    sums = [np.bincount(row, term, math.prod(rows)).reshape(rows) for term in terms]
    return np.stack(sums, dtype=np.float64)  # of nothing, bincount makes integers


def _balance(x: _Ranked, y: _Ranked, real: Real, count: Count) -> Counts:
    """All pairs are concordant, discordant, or tied in x, in y or in both: so discordant ones follow."""
    pairs = _pairs(real.sum(axis=1, dtype=np.float64))[:, None]
    untied = pairs - x.pairs - y.pairs + _tied_in_both(x, y, real)
    return 2.0 * count(x.ranks, y.ranks, real) - untied


def _tied_in_both(x: _Ranked, y: _Ranked, real: Real) -> Counts:
    counts = np.zeros(y.pairs.shape)
    text, variant = np.nonzero((x.pairs > 0) & (y.pairs > 0))
    both = x.ranks[text, 0].astype(np.float64) * (real.shape[1] + 2) + y.ranks[text, variant]
    counts[text, variant] = _ties(_starts(np.sort(np.where(real[text], both, np.nan), axis=1)))[0]
    return counts


def concordant(x: Ranks, y: Ranks, real: Real) -> Counts:
    """How many pairs (i, j) have both x_i > x_j and y_i > y_j.

    Padding is below everything in x and above everything in y, so it is larger in both nowhere.
    """
    top = real.shape[1] + 1
    fill = (0, 0), (0, 0), (0, -real.shape[1] % 8)  # rows of whole bytes, squares of whole words
    x = np.pad(np.where(real[:, None], x, x.dtype.type(0)), fill)
    y = np.pad(np.where(real[:, None], y, y.dtype.type(top)), fill, constant_values=top)
    texts, variants, tokens = y.shape
    counts = np.zeros((texts, variants))
    rows = max(1, CELLS // max(1, variants * tokens**2))
    at_once = max(1, CELLS // max(1, rows * tokens**2))
    for text in range(0, texts, rows):
        some = slice(text, text + rows)
        above = _above(x[some])
        for variant in range(0, variants, at_once):
            few = slice(variant, variant + at_once)
            counts[some, few] = np.bitwise_count(above & _above(y[some, few])).sum(axis=2)
    return counts


def _above(ranks: Ranks) -> UInt[np.ndarray, "text variant word"]:
    """Whether rank i exceeds rank j, a bit for every (i, j)."""
    bits = np.packbits(ranks[..., :, None] > ranks[..., None, :], axis=3)
    return bits.reshape(*ranks.shape[:2], -1).view(np.uint64)


def _p_value(balance: Counts, n: Counts, x: _Ranked, y: _Ranked) -> Measured:
    """Scipy's rule: exact without ties for few tokens or at most one pair out of order, else normal."""
    fewer = (_pairs(n) - np.abs(balance)) / 2.0
    exact = (x.pairs == 0) & (y.pairs == 0) & ((n <= EXACT_UP_TO) | (fewer <= 1))
    from_table = _exact(np.broadcast_to(n, fewer.shape), np.where(exact, fewer, 0.0))
    return np.where(exact, from_table, _normal(balance, n, x, y))


def _normal(balance: Counts, n: Counts, x: _Ranked, y: _Ranked) -> Measured:
    """Kendall's variance of concordant minus discordant pairs, which ties make smaller."""
    ordered = n * (n - 1.0)
    variance = (
        (ordered * (2.0 * n + 5.0) - x.spread - y.spread) / 18.0
        + 2.0 * x.pairs * y.pairs / ordered
        + x.triples * y.triples / (9.0 * ordered * (n - 2.0))
    )
    return 2.0 * special.ndtr(-np.abs(balance) / np.sqrt(variance))


def _exact(n: Counts, fewer: Counts) -> Measured:
    """The chance, among all orders of n tokens, of no more than `fewer` pairs out of order, or in order."""
    few = n <= EXACT_UP_TO
    table = _inversions()
    looked_up = table[np.where(few, n, 0).astype(np.intp), np.where(few, fewer, 0).astype(np.intp)]
    # One order in n! has no pair out of order; n have at most one, since it can be any two neighbours.
    return np.where(few, looked_up, 2.0 / special.gamma(n - fewer + 1.0))


@lru_cache(maxsize=1)
def _inversions() -> Float[np.ndarray, "n inversions"]:
    """Two-sided p-values by number of tokens and of pairs out of order, exactly rounded.

    One more token adds from none to all of the others to an order's inversions, each equally often.
    """
    most = EXACT_UP_TO * (EXACT_UP_TO - 1) // 2
    table = np.ones((EXACT_UP_TO + 1, most // 2 + 1))
    counts = [1] + [0] * most
    for n in range(1, EXACT_UP_TO + 1):
        below = [*accumulate(counts)]
        counts = [at - (below[i - n] if i >= n else 0) for i, at in enumerate(below)]
        orders = math.factorial(n)
        for i, at_most in enumerate(accumulate(counts[: table.shape[1]])):
            table[n, i] = min(1.0, 2 * at_most / orders)
    return table
