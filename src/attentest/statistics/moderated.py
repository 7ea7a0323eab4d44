"""The moderated deviation over seeds: few seeds estimate a spread badly, many cells estimate it well.

The model is that of limma (Smyth 2004, "Linear models and empirical Bayes methods", section 6.2). The true
variance of a cell is drawn from a scaled inverse chi-square distribution with scale s0 and d0 degrees of
freedom, so that d0 * s0**2 / variance is chi-square with d0 degrees of freedom. A cell of n seeds whose
sample deviation is s then has the moderated variance (d0 * s0**2 + (n - 1) * s**2) / (d0 + n - 1), and an
error divided by the moderated deviation follows Student's t with d0 + n - 1 degrees of freedom.

Stored findings keep the plain deviation. Only comparisons with published numbers and claims use this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import digamma, polygamma

LEAST_CELLS = 10  # fewer give no prior
FLOOR = 1e-5  # of the median variance, as in limma: the logarithm of a variance of 0 is not finite
INPUTS = ("study", "cell", "statistic", "group", "seeds", "seed_std")
TABLE = ("version", "measure", "s0", "d0", "cells")

Prior = tuple[float, float, int]  # s0, d0 (may be infinite), and how many cells it was fitted to


class Deviation(NamedTuple):
    """A standard deviation over seeds, and the degrees of freedom of the t distribution that it goes with."""

    value: float
    freedom: float


def moderated(seed_std: float, seeds: int, prior: Prior | None) -> Deviation:
    """The deviation of one cell moderated towards its prior; without a prior, the plain one."""
    if prior is None:
        return Deviation(float(seed_std), float(seeds - 1))
    s0, d0, _ = prior
    if math.isinf(d0):
        return Deviation(float(s0), math.inf)
    freedom = d0 + seeds - 1
    return Deviation(math.sqrt((d0 * s0**2 + (seeds - 1) * seed_std**2) / freedom), float(freedom))


def by_priors(priors: Mapping[str, Prior]) -> Callable[[str, float, int], Deviation]:
    """The deviation of any cell by its statistic, experiment/measure; plain where it has no prior."""
    return lambda statistic, seed_std, seeds: moderated(seed_std, seeds, priors.get(statistic))


def fit_prior(deviations: Sequence[float], seeds: Sequence[int]) -> tuple[float, float]:
    """s0 and d0 by the moments of log s**2: its mean gives s0, its variance beyond chance gives d0.

    With f = n - 1, log s**2 has the mean log(variance) + digamma(f/2) - log(f/2) and the variance
    trigamma(f/2). What the cells vary beyond that is trigamma(d0/2); if nothing is left, d0 is infinite.
    """
    freedom = np.asarray(seeds, dtype=np.float64) - 1
    variances = np.asarray(deviations, dtype=np.float64) ** 2
    variances = np.maximum(variances, FLOOR * np.median(variances))
    centred = np.log(variances) - digamma(freedom / 2) + np.log(freedom / 2)
    beyond = float(np.var(centred, ddof=1) - np.mean(polygamma(1, freedom / 2)))
    mean = float(np.mean(centred))
    if beyond <= 0:
        return math.exp(mean / 2), math.inf
    d0 = 2 * inverse_trigamma(beyond)
    return math.exp((mean + float(digamma(d0 / 2)) - math.log(d0 / 2)) / 2), d0


def inverse_trigamma(value: float) -> float:
    """The x > 0 of trigamma(x) = value, by Newton's method on 1 / trigamma, which is nearly linear."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x


def prior_table(inputs: pd.DataFrame, version: int) -> pd.DataFrame:
    """The priors of all measures that enough cells tell something about, one row for each measure.

    Of a measure, the cells with the most seeds are used if they are enough by themselves, otherwise all of
    them. Classes of one cell are rows of their own; only cells count towards the number that is needed. A
    measure whose deviation is 0 in half of the rows has no prior: the model has no such variances.
    """
    found = []
    for measure, rows in inputs.groupby("statistic"):
        used = rows[rows["seeds"] == rows["seeds"].max()]
        if used["cell"].nunique() < LEAST_CELLS:
            used = rows
        if used["cell"].nunique() < LEAST_CELLS or not (used["seed_std"] > 0).mean() > 0.5:
            continue
        s0, d0 = fit_prior(used["seed_std"].tolist(), used["seeds"].tolist())
        found.append((version, measure, float(f"{s0:.4g}"), float(f"{d0:.4g}"), used["cell"].nunique()))
    return pd.DataFrame(found, columns=list(TABLE))
