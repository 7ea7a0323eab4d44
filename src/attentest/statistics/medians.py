"""Medians beside means: what a box plot shows, with the same texts, and exclusions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float

from attentest.statistics.group_means import Group, Means, Measure
from attentest.statistics.interval import PerDraw, Weights, interval_of_statistic, over_seeds
from attentest.statistics.record import Finding, seeds_as_json


def weighted_median(sample: Float[np.ndarray, " n"], weights: Weights) -> PerDraw:
    """The middle of a (re)sample; of an even number the mean of the middle two."""
    order = np.argsort(sample, kind="stable")
    below = weights[:, order].cumsum(axis=1)
    half = below[:, -1:] / 2.0
    lower, upper = (below >= half).argmax(axis=1), (below > half).argmax(axis=1)
    return 0.5 * (sample[order][lower] + sample[order][upper])


def means_and_medians(means: Means, measures: Sequence[Measure], groups: Iterable[Group]) -> list[Finding]:
    """Every measure in every group as a mean, and as the mean over seeds of its median."""
    named = {measure.name: measure for measure in measures}
    found = []
    for group, texts in groups:
        for mean in means.of(measures, [(group, texts)]):
            found += [mean, _median(means, named[mean.measure], texts, mean)]
    return found


def _median(means: Means, measure: Measure, texts: pd.DataFrame, mean: Finding) -> Finding:
    defined = measure.values.loc[texts.index.intersection(measure.values.index)].dropna()
    seeds, ids = (means.rows.loc[defined.index, name] for name in ("seed", "id"))
    samples = [part.to_numpy(dtype=np.float64) for _, part in defined.groupby(seeds)]
    names = [part.to_numpy() for _, part in ids.groupby(seeds)]
    of_seeds = [_middle(sample) for sample in samples]
    estimate, seed_std = over_seeds(of_seeds)
    interval = interval_of_statistic(samples, names, weighted_median, rng=means.rng)
    null = measure.null
    if isinstance(null, pd.Series):
        beside = null.loc[defined.index].dropna()
        null = over_seeds([_middle(part.to_numpy()) for _, part in beside.groupby(seeds)])[0]
    return replace(
        mean,
        measure=f"median-{mean.measure}",
        estimate=estimate,
        std=math.nan,
        seed_std=seed_std,
        null=null,
        by_seed=seeds_as_json(of_seeds),
        **interval._asdict(),
    )


def _middle(sample: Float[np.ndarray, " n"]) -> float:
    return float(np.median(sample))
