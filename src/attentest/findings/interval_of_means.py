"""The crossed bootstrap for many means of the same texts: one set of draws serves them all.

Most of an interval's time goes into drawing texts. Measures that are defined for the same texts of the
same seeds can share the draws, and then all their resampled means are one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from attentest.findings.estimates import intervals_asked
from attentest.findings.interval import CELLS, counts, matched

Sample: TypeAlias = Float[np.ndarray, "_ measure"]  # one seed's instances
PerMeasure: TypeAlias = Float[np.ndarray, " measure"]


def bootstrap_means(
    samples: Sequence[Sample], ids: Sequence[np.ndarray], *, rng: np.random.Generator, draws: int = 1000
) -> tuple[PerMeasure, PerMeasure, str]:
    """What `bootstrap` with `weighted_mean` says of every column, each from the same draws.

    A seed without texts is no seed: only where there is nothing at all may a sample be empty.
    """
    measures = samples[0].shape[1]
    if sum(map(len, samples)) < 2 or not intervals_asked():
        return np.full(measures, np.nan), np.full(measures, np.nan), "none"
    chosen = counts(draws, len(samples), rng)
    numbers, texts = matched(ids)
    held = _side_by_side(samples, numbers, texts)
    means = []
    rows = max(1, CELLS // texts)
    for start in range(0, draws, rows):
        some = chosen[start : start + rows]
        sums = (counts(len(some), texts, rng) @ held).reshape(len(some), len(samples), measures + 1)
        says = np.where(sums[:, :, -1] > 0, some, 0.0)  # a seed none of whose texts came up is silent
        heard = says.any(axis=1)
        per_seed = sums[heard, :, :-1] / np.maximum(sums[heard, :, -1:], 1.0)
        means.append(np.einsum("ds,dsm->dm", says[heard], per_seed) / says[heard].sum(axis=1)[:, None])
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975], axis=0)
    return low, high, "instances" if len(samples) == 1 else "seeds, instances"


def _side_by_side(
    samples: Sequence[Sample], numbers: Sequence[Int[np.ndarray, " _"]], texts: int
) -> Float[np.ndarray, "text column"]:
    """For every text and seed the measures, and 1 in a last column where the seed has the text at all."""
    held = np.zeros((texts, len(samples), samples[0].shape[1] + 1))
    for seed, (sample, own) in enumerate(zip(samples, numbers, strict=True)):
        held[own, seed, :-1], held[own, seed, -1] = sample, 1.0
    return held.reshape(texts, -1)
