"""Agrees, differs, or cannot tell: the rule for a published number and ours, as plain arithmetic.

The published number counts as one more run. With d = ours - published, s the deviation over seeds and n
seeds, d has the standard error s * sqrt(1 + 1/n). Two numbers agree if they are shown to be equivalent within
a margin (two one-sided tests at 5 %, which is the 90 % interval). They differ if they are shown to be
different and the difference is larger than the margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from attentest.statistics.moderated import Deviation

AGREES, DIFFERS, CANNOT_TELL = "agrees", "differs", "cannot tell"
TAU_MARGIN, SCORE_MARGIN, SHARE_MARGIN = 0.15, 0.03, 0.15
SCORES = {"accuracy", "f1", "auc"}
TIE = 1e-9  # decimals have no exact floats: 0.49 - 0.34 is a little more than 0.15

Numbers = Any  # a float, or an array of floats


def margin_of(statistic: str) -> float | None:
    """How far a number may be off and still be the same for a reader; None where nothing says how far.

    Fixed before the models were trained again; docs/decisions.md has the reasons.
    """
    measure = statistic.rpartition("/")[2]
    words = measure.split("-")
    if words[-1] == "significant":
        return SHARE_MARGIN
    if words[-1] in ("p", "95"):
        return None  # p-values and points of a null distribution
    if SCORES & set(words):
        return SCORE_MARGIN
    return TAU_MARGIN if words[0] in ("tau", "kendall") else None


def standard_error(deviation: Numbers, seeds: Numbers) -> Numbers:
    """Of the difference between a mean over seeds and one more run."""
    return deviation * np.sqrt(1 + 1 / np.asarray(seeds, dtype=np.float64))


def half_width(deviation: Numbers, freedom: Numbers, seeds: Numbers, level: float) -> Numbers:
    """Half of the interval of the difference at this level."""
    return stdtrit(freedom, 0.5 + level / 2) * standard_error(deviation, seeds)


def is_equivalent(
    difference: Numbers, deviation: Numbers, freedom: Numbers, seeds: Numbers, margin: float, rounding: float
) -> Numbers:
    """Whether the 90 % interval, widened by half the last printed digit, lies inside (-margin, margin)."""
    reach = np.abs(difference) + half_width(deviation, freedom, seeds, 0.90) + rounding
    return reach < margin - TIE


def is_different(
    difference: Numbers, deviation: Numbers, freedom: Numbers, seeds: Numbers, margin: float
) -> Numbers:
    """Whether the 95 % interval excludes 0 and the difference is larger than the margin."""
    apart = np.abs(difference)
    return (apart > half_width(deviation, freedom, seeds, 0.95)) & (apart > margin + TIE)


def verdict(
    difference: float, deviation: Deviation, seeds: int, margin: float | None, rounding: float
) -> str:
    """One of the three; without a margin a number can differ, or else one cannot tell."""
    if margin is not None and is_equivalent(difference, *deviation, seeds, margin, rounding):
        return AGREES
    least = rounding if margin is None else margin
    return DIFFERS if is_different(difference, *deviation, seeds, least) else CANNOT_TELL


def probability_of_agreeing(
    deviation: Numbers, freedom: Numbers, seeds: Numbers, margin: float | None, rounding: float
) -> Numbers:
    """P(agrees | the true means are equal), given the deviation and the number of seeds.

    The difference of equal means, over its standard error e, follows Student's t. So with q = t(.95) it is
    P(|T| < (margin - rounding) / e - q), and 0 where the interval alone is wider than the margin.
    """
    if margin is None:
        return np.zeros_like(np.asarray(deviation, dtype=np.float64))
    error = standard_error(deviation, seeds)
    with np.errstate(divide="ignore"):
        room = np.divide(margin - rounding, error) - stdtrit(freedom, 0.95)
    return np.maximum(2 * stdtr(freedom, room) - 1, 0.0)
