"""A finding from a statistic of whole samples, one a seed: what no mean over texts can express."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from attentest.findings.interval import PerDraw, Weights, bootstrap, over_seeds
from attentest.findings.record import Finding


@runtime_checkable
class Sample(Protocol):
    """One seed's texts, each under its id."""

    @property
    def ids(self) -> np.ndarray:
        """Which texts, since other seeds have the same ones."""
        ...

    def __len__(self) -> int: ...


Some = TypeVar("Some", bound=Sample)


def of_samples(
    samples: Sequence[Some],
    statistic: Callable[[Some, Weights], PerDraw],
    *,
    left_out: tuple[int, str],
    undefined: str,
    rng: np.random.Generator,
    **about: Any,
) -> Finding:
    """The mean of the seeds' values, its interval, and what is not in it.

    `left_out` counts the texts that came into no sample, and why; `undefined` says why a seed may have no
    value. `about` are the finding's other fields: experiment, measure, group, null, mode.
    """
    values = [value_of(sample, statistic) for sample in samples]
    used = [sample for sample, value in zip(samples, values, strict=True) if not math.isnan(value)]
    n = sum(map(len, used))
    lost = sum(map(len, samples)) - n
    reasons = [left_out[1]] * (left_out[0] > 0) + [undefined] * (lost > 0)
    low, high, interval = bootstrap(used, [sample.ids for sample in used], statistic, rng=rng)
    estimate, seed_std = over_seeds([value for value in values if not math.isnan(value)])
    return Finding(
        **about,
        estimate=estimate,
        std=math.nan,
        seed_std=seed_std,
        low=low,
        high=high,
        interval=interval,
        n=n,
        seeds=len(used),
        excluded=left_out[0] + lost,
        why="; ".join(reasons),
    )


def value_of(sample: Some, statistic: Callable[[Some, Weights], PerDraw]) -> float:
    """The statistic of the sample as it is, every text once."""
    return float(statistic(sample, np.ones((1, len(sample))))[0])
