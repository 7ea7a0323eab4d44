"""How far a statistic may be trusted that is no mean over texts: AUC, F1, a median, a ratio, a correlation.

A statistic is written as a function of instance weights: one is a plain sample, two is a text drawn
twice. Then a thousand resamples are one matrix product instead of a thousand recomputations, and the
estimate itself is the same function with every weight one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Sized
from typing import TypeAlias, TypeVar

import numpy as np
from jaxtyping import Float, Int

from attentest.statistics.crossed import NO_INTERVAL, Interval, combined, enlarged, matched
from attentest.statistics.estimates import intervals_asked

Sample = TypeVar("Sample", bound=Sized)  # one seed's instances: an array, or a small record of arrays
Weights: TypeAlias = Float[np.ndarray, "draw n"]
PerDraw: TypeAlias = Float[np.ndarray, " draw"]

CELLS = 2**19  # weights held at once, whatever n is: some 4 MB, beyond which caches overflow and it slows


def interval_of_statistic(
    samples: Sequence[Sample],
    ids: Sequence[np.ndarray],
    statistic: Callable[[Sample, Weights], PerDraw],
    *,
    rng: np.random.Generator,
    draws: int = 1000,
) -> Interval:
    """The interval of the mean over seeds of a statistic; `ids` names the text of every instance.

    It is that of a mean (see `crossed`) except that the two variances over texts come from a bootstrap: texts
    are drawn once for all seeds, since every seed answers the same test set. The variance over draws of the
    seeds' mean is `joint`, of every seed alone it adds up to `apart`. How seeds differ is seen in their
    estimates and never resampled: a resample of two seeds shows half of their variance.

    A seed of which a draw picked no text, or where the statistic is undefined (one class only, for AUC), has
    no say in that draw. Deviations from a seed's own estimate are averaged, so a silent seed does not move
    the mean. A single instance of a single seed cannot vary, and an interval of width zero would boast: NaN,
    as for none at all.
    """
    asked = sum(map(len, samples)) > 1 and intervals_asked()
    values = [value_of(sample, statistic) if len(sample) and asked else math.nan for sample in samples]
    used = [number for number, value in enumerate(values) if not math.isnan(value)]
    if not used:
        return NO_INTERVAL
    estimates = np.array([values[number] for number in used])
    samples, ids = [samples[number] for number in used], [ids[number] for number in used]
    numbers, texts = matched(ids)
    deviations = _resampled(samples, numbers, texts, statistic, rng, draws) - estimates
    apart = [
        _variance(own) * enlarged(len(sample)) for own, sample in zip(deviations.T, samples, strict=True)
    ]
    joint = _variance(_mean_of_defined(deviations)) * enlarged(texts)
    if math.isnan(joint):
        return NO_INTERVAL
    together = np.array([joint]), np.array([np.nansum(apart) / len(used) ** 2])
    return combined(estimates[:, None], *together, texts)[0]


def value_of(sample: Sample, statistic: Callable[[Sample, Weights], PerDraw]) -> float:
    """The statistic of the sample as it is, every text once."""
    return float(statistic(sample, np.ones((1, len(sample))))[0])


def weighted_mean(sample: Float[np.ndarray, " n"], weights: Weights) -> PerDraw:
    """The commonest statistic: the mean over instances."""
    return weights @ sample / weights.sum(axis=1)


def over_seeds(estimates: Sequence[float]) -> tuple[float, float]:
    """The mean of the seeds' estimates and their sample standard deviation; NaN where there are too few.

    Seeds count alike, however many texts each of them has; the interval does the same.
    """
    mean = float(np.mean(estimates)) if len(estimates) else math.nan
    return mean, float(np.std(estimates, ddof=1)) if len(estimates) > 1 else math.nan


def _resampled(
    samples: Sequence[Sample],
    numbers: Sequence[Int[np.ndarray, " _"]],
    texts: int,
    statistic: Callable[[Sample, Weights], PerDraw],
    rng: np.random.Generator,
    draws: int,
) -> Float[np.ndarray, "draw seed"]:
    """The statistic of each seed in each draw of texts; NaN where none of its texts came up."""
    values = np.full((draws, len(samples)), np.nan)
    rows = max(1, CELLS // texts)
    for start in range(0, draws, rows):
        part = values[start : start + rows]
        picks = counts(len(part), texts, rng)
        for seed, (sample, own) in enumerate(zip(samples, numbers, strict=True)):
            if np.array_equal(own, np.arange(texts)):  # all texts, as is usual: nothing to choose or to copy
                part[:, seed] = statistic(sample, picks)
                continue
            weights = picks.take(own, axis=1)
            alive = weights.any(axis=1)
            if alive.any():
                part[alive, seed] = statistic(sample, weights[alive])
    return values


def counts(draws: int, n: int, rng: np.random.Generator) -> Weights:
    """Multinomial counts: how often each of n instances comes up in n picks.

    The picks themselves are counted. Numpy's own multinomial visits the n categories one by one, ten
    times slower where there are as many categories as picks.
    """
    picked = rng.integers(n, size=(draws, n))
    picked += n * np.arange(draws)[:, None]
    return np.bincount(picked.ravel(), minlength=draws * n).reshape(draws, n).astype(np.float64)


def _mean_of_defined(deviations: Float[np.ndarray, "draw seed"]) -> PerDraw:
    """The mean over the seeds that have a say in the draw; NaN where none has."""
    says = (~np.isnan(deviations)).sum(axis=1)
    total = np.nansum(deviations, axis=1)
    return np.divide(total, says, out=np.full(len(says), np.nan), where=says > 0)


def _variance(of_draws: PerDraw) -> float:
    """Over the draws where there is a value; NaN where there are fewer than two."""
    defined = of_draws[~np.isnan(of_draws)]
    return float(defined.var(ddof=1)) if len(defined) > 1 else math.nan
