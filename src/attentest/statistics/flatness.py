"""Does flat attention go with little agreement? Spearman's correlation over models or settings (WE-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Shaped

from attentest.statistics.interval import PerDraw, Weights
from attentest.statistics.record import Finding
from attentest.statistics.statistic import of_samples

NO_ORDER = "tau is undefined"
NO_CORRELATION = "fewer than three different models to correlate over"


@final
@dataclass(frozen=True)
class Flatness:
    """One seed's models, each under its name: how flat its attention is, and its tau."""

    ids: Shaped[np.ndarray, " model"]
    entropy: Float[np.ndarray, " model"]
    tau: Float[np.ndarray, " model"]

    def __len__(self) -> int:
        return len(self.ids)


def spearman(sample: Flatness, weights: Weights) -> PerDraw:
    """Pearson's correlation of mid-ranks, a weight of two counting as two models that are alike.

    NaN where fewer than three models are left, since any two are in perfect order, or all are alike.
    """
    x, y = (_mid_ranks(values, weights) for values in (sample.entropy, sample.tau))
    total = weights.sum(axis=1, keepdims=True)
    x, y = (ranks - (weights * ranks).sum(axis=1, keepdims=True) / total for ranks in (x, y))
    covariance, of_x, of_y = ((weights * product).sum(axis=1) for product in (x * y, x * x, y * y))
    spread = np.sqrt(of_x * of_y)
    defined = ((weights > 0).sum(axis=1) > 2) & (spread > 1e-12)
    return np.where(defined, covariance / np.where(defined, spread, 1.0), np.nan)


def _mid_ranks(values: Float[np.ndarray, " model"], weights: Weights) -> Float[np.ndarray, "draw model"]:
    smaller = (values[:, None] < values).astype(np.float64)
    alike = (values[:, None] == values).astype(np.float64)
    return weights @ smaller + (weights @ alike + 1) / 2


def flatness_finding(samples: Sequence[Flatness], *, rng: np.random.Generator, **about: str) -> Finding:
    """The mean over seeds, with an interval over seeds and models; a model without tau is left out."""
    defined = [_only(sample, ~np.isnan(sample.tau) & ~np.isnan(sample.entropy)) for sample in samples]
    missing = sum(map(len, samples)) - sum(map(len, defined))
    return of_samples(
        [sample for sample in defined if len(sample)],
        spearman,
        left_out=(missing, NO_ORDER),
        undefined=NO_CORRELATION,
        rng=rng,
        measure="flatness-tau",
        null=0.0,
        **about,
    )


def _only(sample: Flatness, kept: np.ndarray) -> Flatness:
    return Flatness(sample.ids[kept], sample.entropy[kept], sample.tau[kept])
