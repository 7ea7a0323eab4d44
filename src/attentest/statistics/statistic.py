"""A finding from a statistic of whole samples, one a seed: what no mean over texts can express."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from attentest.statistics.finding import finding
from attentest.statistics.interval import PerDraw, Weights, interval_of_statistic, value_of
from attentest.statistics.record import Finding


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
    interval = interval_of_statistic(used, [sample.ids for sample in used], statistic, rng=rng)
    of_seeds = [value for value in values if not math.isnan(value)]
    lost += left_out[0]
    return finding(of_seeds, interval=interval, n=n, excluded=lost, why="; ".join(reasons), **about)
