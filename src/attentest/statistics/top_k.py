"""Whether two scores put the same tokens on top: the agreement a reader of a heat map would see.

Ties are broken by position, the earlier token first, so that a score always has exactly one top k. A text
of no more than k tokens is all top.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attentest.refusal import Refusal
from attentest.statistics.comparison import Numbers
from attentest.statistics.rank_agreement import Measured, Real, Variants, concordance, padded, rankable


def overlap(x: Numbers, y: Numbers, lengths: Numbers, k: int) -> Float[np.ndarray, "text ..."]:
    """The share of the top k that two scores have in common, for every text of a padded batch.

    Unrelated scores of n tokens have k / n in common. NaN below two tokens or where a score is NaN.
    """
    first, second, size = _places(x, y, lengths, k)
    shared = ((first < k) & (second < k)).sum(axis=2)
    return (shared / size).reshape(np.shape(y)[:-1])


def distance(x: Numbers, y: Numbers, lengths: Numbers, k: int) -> Float[np.ndarray, "text ..."]:
    """Kendall's distance between two lists of the top k: 0 for the same list, 1 for disjoint ones.

    Fagin, Kumar & Sivakumar (2003) with p = 1/2, over the pairs of tokens that are in either list. To a
    list, whatever it leaves out is below all it has and otherwise equal. A pair costs 1 if the lists
    order it in opposite ways and 1/2 if it is equal to just one. The sum is divided by what disjoint
    lists cost; a text of fewer than 2k tokens has none, and cannot reach 1. NaN as for `overlap`.
    """
    first, second, size = _places(x, y, lengths, k)
    texts, variants, tokens = second.shape
    lists = [
        np.broadcast_to(one, second.shape).reshape(texts * variants, 1, tokens) for one in (first, second)
    ]
    listed = (lists[0] < k) | (lists[1] < k)
    # Pairs grow with the square of the tokens and only 2k matter: those go first, the rest is cut.
    chosen = np.argsort(~listed, axis=2, kind="stable")[:, :, : 2 * k]
    first, second = (np.take_along_axis(np.minimum(one, k), chosen, axis=2) for one in lists)
    union = listed.sum(axis=2)
    agreement = concordance(first, second, np.arange(chosen.shape[2]) < union)
    cost = (union * (union - 1) / 2 - agreement) / 2
    return (cost.reshape(texts, variants) / (size * (3 * size - 1) / 2)).reshape(np.shape(y)[:-1])


def _places(x: Numbers, y: Numbers, lengths: Numbers, k: int) -> tuple[Variants, Variants, Measured]:
    """Every token's place from the top, 0 first, and how long the lists are: NaN where there is no list."""
    if k < 1:
        raise Refusal("the top k", got=f"k = {k}", needs="at least 1", way_out="The papers use 10 or more.")
    first, second, real = padded(x, y, lengths)
    size = np.minimum(real.sum(axis=1), k)[:, None]
    defined = rankable(first, real) & rankable(second, real)
    return _place(first, real), _place(second, real), np.where(defined, size, np.nan)


def _place(values: Variants, real: Real) -> Variants:
    order = np.argsort(np.where(real[:, None], -values, np.nan), axis=2, kind="stable")
    place = np.empty(values.shape)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(values.shape[2]), order.shape), axis=2)
    return np.where(real[:, None], place, np.inf)
