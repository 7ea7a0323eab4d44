"""The quantities that rules name, from stored findings: numbers to show and estimates to test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pandas as pd
from scipy import stats

from attentest.claims.rules import BOUNDS, MEASURED, Estimate
from attentest.statistics.named import Named

NAN = math.nan
WIDTH = 2 * float(stats.norm.ppf(0.975))  # of a 95 % interval, in standard errors
# From a statistic (experiment/measure), the deviation of its seeds and how many they are: the deviation to
# use and its degrees of freedom.
Deviation = Callable[[str, float, int], tuple[float, float]]


def plain_deviation(statistic: str, seed_std: float, seeds: int) -> tuple[float, float]:
    """The sample's own."""
    return seed_std, float(seeds - 1)


def numbers(
    row: pd.Series, other: pd.Series | None, deviation: Deviation = plain_deviation
) -> dict[str, float]:
    """Every quantity as it is shown; bounds of differences are those of the 95 % interval."""
    values = {name: float(row[name]) for name in MEASURED}
    gap = difference(row, other, deviation)
    reach = NAN if math.isnan(gap.error) else float(stats.t.ppf(0.975, gap.freedom)) * gap.error
    return {
        **values,
        "excess": values["estimate"] - values["null"],
        "difference": gap.value,
        "difference_low": gap.value - reach,
        "difference_high": gap.value + reach,
        "apart": abs(gap.value),
    }


def estimates(
    row: pd.Series, other: pd.Series | None, deviation: Deviation = plain_deviation
) -> Mapping[str, Estimate]:
    """Every quantity as it is tested: bounds of an interval are tested by what they are bounds of."""
    own, gap, null = estimate_of(row), difference(row, other, deviation), float(row["null"])
    return {
        **dict.fromkeys(BOUNDS, own),
        "excess": replace(own, value=own.value - null, is_p=False),
        "null": Estimate(null, 0.0, math.inf),
        **dict.fromkeys(("difference", "difference_low", "difference_high", "apart"), gap),
    }


def estimate_of(row: pd.Series) -> Estimate:
    """The finding with its stored error and degrees of freedom.

    A table of an older store has neither. There the error is that of a normal 95 % interval as wide as the
    stored one, with one degree of freedom less than there are seeds; of one seed the interval is over texts,
    and the error is taken as known.
    """
    value, seeds = float(row["estimate"]), int(row["seeds"])
    error, freedom = (float(row.get(name, NAN)) for name in ("error", "freedom"))
    if is_p_value(str(row["measure"])):
        return Estimate(value, error, freedom, is_p=True)
    least = 0.5**seeds if _is_one_number_a_seed(row) else 0.0
    if not math.isnan(error) and not math.isnan(freedom):
        return Estimate(value, error, freedom, least)
    width = float(row["high"]) - float(row["low"])
    freedom = float(seeds - 1) if seeds > 1 else math.inf
    return Estimate(value, width / WIDTH, freedom, least, from_interval=not math.isnan(width))


def _is_one_number_a_seed(row: pd.Series) -> bool:
    """Whether each seed gave one number, so that seeds are all that an error of 0 rests on.

    Such a number may be a yes or no, as `not-fallen` is: three seeds say the same in a quarter of all cases
    if yes is as likely as no. Seeds that all lie on one side have the p-value of a sign test, 1 / 2^seeds,
    and those of two models that of a permutation of all their seeds.
    """
    return bool(row.get("interval", "") == "seeds")


def is_p_value(measure: str) -> bool:
    """Whether a measure is itself a p-value: `tau-p`, `sign-p`, `mcnemar-p-attention`.

    Where it is the mean over seeds, the mean is taken as the p-value. That is conservative for p-values of
    trainings that are independent or correlated as normal variables are.
    """
    return "p" in Named.of(measure).name.split("-")


def difference(row: pd.Series, other: pd.Series | None, deviation: Deviation = plain_deviation) -> Estimate:
    """The difference of two models' estimates, its error over seeds, and Welch's degrees of freedom.

    Fewer than two seeds on a side show no spread, and the error is NaN.
    """
    if other is None:
        return Estimate(NAN, NAN, NAN)
    sides = [_squared_error(one, deviation) for one in (row, other)]
    total = sum(error for error, _ in sides)
    weight = sum(error**2 / freedom for error, freedom in sides)
    freedom = total**2 / weight if weight > 0 else math.inf
    orders = math.comb(int(row["seeds"] + other["seeds"]), int(row["seeds"]))
    least = 1 / orders if _is_one_number_a_seed(row) and _is_one_number_a_seed(other) else 0.0
    return Estimate(float(row["estimate"] - other["estimate"]), math.sqrt(total), freedom, least)


def _squared_error(row: pd.Series, deviation: Deviation) -> tuple[float, float]:
    seeds = int(row["seeds"])
    if seeds < 2:
        return NAN, NAN
    std, freedom = deviation(f"{row['experiment']}/{row['measure']}", float(row["seed_std"]), seeds)
    return std**2 / seeds, freedom
