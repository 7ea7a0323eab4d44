"""How far a mean over seeds and texts may be trusted, both being random and crossed.

Another training would have another seed, and another test set other texts. Every seed answers the same texts,
so an observation is y = mean + seed + text + residual, and the mean of S seeds over N texts has the variance

    var(seed) / S + var(text) / N + var(residual) / (S N).

Three numbers estimate it, in the words of an analysis of variance with one observation in each cell:

    seeds     variance of the seeds' means / S               MS_seed / (S N)      it holds the residual, too
    texts     variance of the texts' means / N               MS_text / (S N)      it holds the residual, too
    residual  which seeds + texts have counted twice         MS_residual / (S N)

The squared standard error is seeds + texts - residual, and never less than the larger of the first two.

Texts that are missing in some seeds, or a group that holds other texts in every seed, need no other formula.
Seeds count alike, so a text weighs 1 / (S n) in a seed of n texts, and `texts` is the sum over texts of the
squared sum of its weighted deviations from the mean of each seed: deviations, since else a text that is only
in a good seed would seem a good text. With `apart` = the sum over seeds of var(texts of the seed) / n / S^2,
what the error would be if every seed had texts of its own, the residual is (S apart - texts) / (S - 1). In
expectation the three parts add up to the variance whatever is missing; where seeds share no text, texts and
residual cancel; and where nothing is missing they are the mean squares above.

Degrees of freedom are Satterthwaite's, with the seeds' part put at the upper end of its 80 % confidence
interval. As it is, it would fail just where it matters: two seeds that happen to lie close to each other hide
that they could have lain apart, and the interval is short with many degrees of freedom (coverage .87 where
seeds cause four fifths of the variance; simulated in the tests, .94 and more as it is done here).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import chdtri, stdtrit

from attentest.statistics.estimates import intervals_asked
from attentest.statistics.record import TEXTS, seed_estimates

Sample: TypeAlias = Float[np.ndarray, "_ measure"]  # one seed's instances
PerMeasure: TypeAlias = Float[np.ndarray, " measure"]

CONFIDENCE = 0.8  # that the seeds differ no more than the degrees of freedom take into account
SEEDS_AND_TEXTS, SEEDS, NONE = "seeds, instances", "seeds", "none"


class Interval(NamedTuple):
    """A 95 % interval; the fields are columns of a finding, `interval` says over what it is."""

    low: float
    high: float
    error: float
    freedom: float
    interval: str


NO_INTERVAL = Interval(math.nan, math.nan, math.nan, math.nan, NONE)


def intervals_of_means(samples: Sequence[Sample], ids: Sequence[np.ndarray]) -> list[Interval]:
    """The interval of the mean over seeds of every column; `ids` names the text of each row of a sample.

    A text is at most once in a seed. A seed without texts is no seed; one instance of one seed cannot vary.
    """
    if sum(map(len, samples)) < 2 or not intervals_asked():
        return [NO_INTERVAL] * samples[0].shape[1]
    numbers, texts = matched(ids)
    with np.errstate(invalid="ignore"):  # infinite values have a mean and no variance
        means = np.stack([sample.mean(axis=0) for sample in samples])
        by_text = np.zeros((texts, means.shape[1]))
        apart = np.zeros(means.shape[1])
        for sample, own, mean in zip(samples, numbers, means, strict=True):
            deviations = (sample - mean) / (len(samples) * len(sample))
            by_text[own] += deviations
            apart += (deviations**2).sum(axis=0) * enlarged(len(sample))
        joint = (by_text**2).sum(axis=0) * enlarged(texts)
        return combined(means, joint, apart, texts)


def combined(
    of_seeds: Float[np.ndarray, "seed measure"], joint: PerMeasure, apart: PerMeasure, texts: int
) -> list[Interval]:
    """Intervals around the mean of the seeds' estimates.

    `joint` is the variance of that mean over texts which all seeds share, `apart` the one it would have if
    every seed had texts of its own.
    """
    seeds, estimates = len(of_seeds), of_seeds.mean(axis=0)
    if seeds == 1:
        error, freedom = np.sqrt(joint), np.full(len(joint), texts - 1.0)
    else:
        between = of_seeds.var(axis=0, ddof=1) / seeds
        residual = np.maximum(seeds * apart - joint, 0.0) / (seeds - 1)
        error = np.sqrt(np.maximum(between + joint - residual, np.maximum(between, joint)))
        freedom = _freedom(between, joint, seeds, texts)
    reach = stdtrit(freedom, 0.975) * error
    kind = TEXTS if seeds == 1 else SEEDS if texts == 1 else SEEDS_AND_TEXTS
    columns = [each.tolist() for each in (estimates - reach, estimates + reach, error, freedom)]
    return [Interval(low, high, of, free, kind) for low, high, of, free in zip(*columns, strict=True)]


def _freedom(between: PerMeasure, joint: PerMeasure, seeds: int, texts: int) -> PerMeasure:
    """Satterthwaite's, of the largest seed part that is still likely, and the text part as it is."""
    upper = between * (seeds - 1) / chdtri(seeds - 1, CONFIDENCE)
    weight = upper**2 / (seeds - 1) + joint**2 / max(texts - 1, 1)
    varies = weight > 0
    return np.where(varies, (upper + joint) ** 2 / np.where(varies, weight, 1.0), seeds - 1.0)


def interval_of_seeds(estimates: Sequence[float]) -> Interval:
    """Student's t over the seeds' estimates, taken as they are: nothing is said of other texts."""
    if len(estimates) < 2 or not intervals_asked():
        return NO_INTERVAL
    estimate, error, freedom = over_seeds_only(estimates)
    reach = float(stdtrit(freedom, 0.975)) * error
    return Interval(estimate - reach, estimate + reach, error, freedom, SEEDS)


def over_seeds_only(by_seed: str | Sequence[float]) -> tuple[float, float, float]:
    """Estimate, standard error and degrees of freedom against a number on the same test set.

    Both share the texts, so that only seeds make a difference. `by_seed` is the column of a finding, or the
    seeds' estimates. Fewer than two seeds have no error.
    """
    estimates = seed_estimates(by_seed) if isinstance(by_seed, str) else list(by_seed)
    if not estimates:
        return math.nan, math.nan, math.nan
    seeds, mean = len(estimates), float(np.mean(estimates))
    if seeds == 1:
        return mean, math.nan, math.nan
    return mean, float(np.std(estimates, ddof=1)) / math.sqrt(seeds), seeds - 1.0


def enlarged(n: int) -> float:
    """What makes the mean square of n deviations from their own mean a variance; one instance has none."""
    return n / (n - 1) if n > 1 else 0.0


def matched(ids: Sequence[np.ndarray]) -> tuple[list[Int[np.ndarray, " _"]], int]:
    """The number of every instance's text, and how many texts there are.

    Texts are numbered in the order of their ids, so that the order of rows cannot matter.
    """
    numbers, texts = pd.factorize(np.concatenate(ids), sort=True, use_na_sentinel=False)
    return np.split(numbers, np.cumsum([len(some) for some in ids])[:-1]), len(texts)
