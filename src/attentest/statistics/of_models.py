"""Findings from one number a model: what is neither a mean over texts nor to be resampled over them.

A plug-in estimate of information grows with every text drawn twice, so resampling texts would say something
else than the estimate. What is left is how models differ that were trained from other seeds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from attentest.statistics.crossed import Interval, interval_of_seeds
from attentest.statistics.finding import finding
from attentest.statistics.interval import over_seeds
from attentest.statistics.record import TEXTS, Finding

NORMAL = 1.959964  # 95 % of a normal distribution lie within so many standard errors


class Number(NamedTuple):
    """What one model says, the same where there is nothing to find, and the standard error if it is known."""

    value: float
    null: float
    error: float = math.nan


@final
@dataclass(frozen=True, kw_only=True)
class Measured:
    """One model's numbers by their measures, how many texts they are from, and why others are left out.

    `undefined` says why a number may be NaN.
    """

    numbers: Mapping[str, Number]
    texts: int
    left_out: Counter[str] = field(default_factory=Counter)
    undefined: str


def of_models(models: Sequence[Measured], *, absent: str, **about: Any) -> list[Finding]:
    """Every measure that any of the models has; one without it leaves out all its texts, for being `absent`.

    The interval is over seeds; of one model alone, from its standard error over texts, or there is none.
    `about` are the finding's other fields: experiment, group, mode.
    """
    names = dict.fromkeys(name for model in models for name in model.numbers)
    return [_finding(name, models, absent, about) for name in names]


def _finding(name: str, models: Sequence[Measured], absent: str, about: Mapping[str, Any]) -> Finding:
    used, left_out = [], Counter[str]()
    for model in models:
        left_out += model.left_out
        number = model.numbers.get(name)
        if number is not None and not math.isnan(number.value):
            used.append((model, number))
        else:
            left_out[absent if number is None else model.undefined] += model.texts
    numbers = [number for _, number in used]
    return finding(
        [number.value for number in numbers],
        interval=_interval(numbers),
        measure=name,
        n=sum(model.texts for model, _ in used),
        excluded=left_out.total(),
        why=_joined(left_out),
        null=over_seeds([number.null for number in numbers])[0],
        **about,
    )


def _interval(numbers: Sequence[Number]) -> Interval:
    if len(numbers) != 1 or math.isnan(numbers[0].error):
        return interval_of_seeds([number.value for number in numbers])
    value, error = numbers[0].value, numbers[0].error
    return Interval(value - NORMAL * error, value + NORMAL * error, error, math.inf, TEXTS)


def _joined(left_out: Counter[str]) -> str:
    """Each reason once; how often, where the count of all exclusions does not tell."""
    counts = {reason: count for reason, count in sorted(left_out.items()) if count}
    if len(counts) < 2:
        return "".join(counts)
    return "; ".join(f"{reason} ({count})" for reason, count in counts.items())
