"""Attention beside other explainers: how they agree, how faithful each is, and what people would say of it.

Faithfulness stands beside random rankings of the same texts, plausibility beside the same scores shuffled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.explainers import ABOUT, ALSO, ATTENTION, RANDOM, RANKINGS, pairs
from attentest.experiments.explainers.cards import CARDS
from attentest.statistics.group_means import Means, Measure, by_class, of_controls, reasons
from attentest.statistics.record import Finding, ordered

FAITHFUL = ("comprehensiveness", "sufficiency")
PLAUSIBLE = ("token_f1", "iou_f1", "auprc")

WHO = ("seed", "subject", "id", "predicted", "length")
UNRANKED = "constant or NaN vector"
ALL_MARKED = "all of the text is marked, or NaN vector"


def _numbers(rankings: Sequence[str]) -> tuple[str, ...]:
    """The columns of rows that have these rankings."""
    of_marks = (f"{null}{measure}" for null in ("", "null_") for measure in PLAUSIBLE)
    return (
        *(f"tau_{one}_{other}" for one, other in pairs(rankings)),
        *(f"{measure}_{ranking}" for measure in FAITHFUL for ranking in (*rankings, RANDOM)),
        *(f"{measure}_{ranking}" for measure in of_marks for ranking in rankings),
    )


NUMBERS = _numbers(RANKINGS)
COLUMNS = (*WHO, "marked", *NUMBERS)


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts: overall, by predicted class, and for the controls."""
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    rankings = (*RANKINGS, *(name for name in ALSO if f"tau_{ATTENTION}_{name}" in rows))
    numbers = rows[list(_numbers(rankings))].astype(np.float64)
    why = reasons(rows, UNRANKED)
    measures = [*_agreement(numbers, rankings, why), *_faithfulness(numbers, rankings, why)]
    marked = rows["marked"] > 0
    measures += [*_plausibility(numbers[marked], rankings, reasons(rows, ALL_MARKED))]
    groups = [("overall", trained), *by_class(trained, "predicted", "predicted"), *of_controls(rows)]
    return Means(experiment="explainers", rows=rows, mode=mode, rng=rng).of(measures, groups)


def _agreement(numbers: pd.DataFrame, rankings: Sequence[str], why: pd.Series) -> Iterator[Measure]:
    for one, other in pairs(rankings):
        yield Measure(name=f"tau-{one}-{other}", values=numbers[f"tau_{one}_{other}"], null=0.0, why=why)


def _faithfulness(numbers: pd.DataFrame, rankings: Sequence[str], why: pd.Series) -> Iterator[Measure]:
    for measure in FAITHFUL:
        null = numbers[f"{measure}_{RANDOM}"]
        for ranking in rankings:
            values = numbers[f"{measure}_{ranking}"]
            yield Measure(name=f"{measure}-{ranking}", values=values, null=null, why=why)
            yield Measure(name=f"{measure}-{ranking}-excess", values=values - null, null=0.0, why=why)


def _plausibility(numbers: pd.DataFrame, rankings: Sequence[str], why: pd.Series) -> Iterator[Measure]:
    """Of the texts in which people marked words; of others it is not asked."""
    for measure in PLAUSIBLE:
        for ranking in rankings:
            yield Measure(
                name=f"{measure.replace('_', '-')}-{ranking}",
                values=numbers[f"{measure}_{ranking}"],
                null=numbers[f"null_{measure}_{ranking}"],
                why=why,
            )


CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
