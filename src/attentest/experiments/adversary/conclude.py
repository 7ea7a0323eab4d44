"""How different attention could have been at the same output: the adversary of Jain & Wallace (2019).

Where the exact optimum is known it is printed beside the published search. How far attention can be moved
depends on the number of tokens and on their states as well, so each optimum stands beside the one for the
same weights shuffled over the same tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from attentest.experiments.adversary import ABOUT
from attentest.experiments.adversary.cards import CARDS
from attentest.experiments.description import Conclusion
from attentest.experiments.permutation.conclude import max_attention_spans
from attentest.statistics.group_means import Means, Measure, by_class, of_controls, reasons
from attentest.statistics.named import Named
from attentest.statistics.record import Finding, ordered

MAIN = (0.01, 0.05)  # the change of output allowed: the paper's without a query and with one
CURVE = (0.001, 0.005, 0.02, 0.1)  # how the optimum grows with it
SEARCHES = ("last", "best", "unpaired")
VARIANTS = ("exact", "bound", "shuffled", "swapped", "uniform", "permuted", "capped", *SEARCHES)
SATURATED = 0.6  # of at most ln 2 = 0.69: hardly any token keeps its weight
WHO = ("seed", "subject", "id", "label", "predicted", "length", "max_attention", "proved")
NUMBERS = (
    "attainable",
    *(f"{variant}@{epsilon:g}" for epsilon in MAIN for variant in VARIANTS),
    *(f"exact@{epsilon:g}" for epsilon in CURVE),
)
COLUMNS = (*WHO, *NUMBERS)
NOT_AFFINE = "no exact optimum: the decision is not affine"
NOT_SWAPPED = "no other text is as long, or the decision is not affine with two classes"
NOT_SEARCHED = "not searched"
NOT_BOTH = "no exact optimum or not searched"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts at both allowed changes of output: overall, by class, by largest weight, controls.

    Class means the predicted one, as in the paper, and the gold one beside it.
    """
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    rows[list(NUMBERS)] = rows[list(NUMBERS)].astype(np.float64)
    for epsilon in MAIN:
        _pool(rows, f"@{epsilon:g}")
    measures = [measure for epsilon in MAIN for measure in _measures(rows, f"@{epsilon:g}")]
    by_weight = [m for m in measures if Named.of(m.name).name in ("emax-jsd-exact", "emax-jsd-last")]
    classes = [*by_class(trained, "predicted", "predicted"), *by_class(trained, "label", "gold")]
    means = Means(experiment="adversary", rows=rows, mode=mode, rng=rng)
    return [
        *means.of(measures, [("overall", trained), *of_controls(rows), *classes]),
        *means.of(by_weight, max_attention_spans(trained)),
        *means.of([*_curve(rows)], [("overall", trained)]),
    ]


def _pool(rows: pd.DataFrame, at: str) -> None:
    """What one search found is found, whichever was to find it.

    A permutation has no weight above the largest either, so it is a capped attention. And where the optimum
    is not proven, as with several classes, the best of all searches stands for it.
    """
    rows[f"capped{at}"] = rows[[f"capped{at}", f"permuted{at}"]].max(axis=1)
    found = rows[[f"exact{at}", *(f"{search}{at}" for search in SEARCHES)]].max(axis=1)
    sought = rows[f"exact{at}"].notna() & ~rows["proved"].astype(bool)
    rows[f"exact{at}"] = found.where(sought, rows[f"exact{at}"])


def _measures(rows: pd.DataFrame, at: str) -> Iterator[Measure]:
    yield from _optimum(rows, at)
    yield from _searched(rows, at)
    exact, found = rows[f"exact{at}"], rows[[f"{search}{at}" for search in SEARCHES]].max(axis=1)
    why = reasons(rows, NOT_BOTH)
    yield Measure(name=f"search-shortfall{at}", values=exact - found, null=0.0, why=why)


def _optimum(rows: pd.DataFrame, at: str) -> Iterator[Measure]:
    """The exact optimum in four readings, its upper bound, and the optimum against other attention."""
    why = reasons(rows, NOT_AFFINE)
    exact, shuffled = rows[f"exact{at}"], rows[f"shuffled{at}"]
    attainable = rows["attainable"].where(rows["attainable"] > 0)
    readings: dict[str, tuple[pd.Series, pd.Series | float]] = {
        "": (exact, shuffled),
        "-share": (_saturated(exact), _saturated(shuffled)),
        "-ratio": (exact / attainable, shuffled / attainable),
        "-excess": (exact - shuffled, 0.0),
    }
    for reading, (values, null) in readings.items():
        yield Measure(name=f"emax-jsd-exact{reading}{at}", values=values, null=null, why=why)
    yield Measure(name=f"bound-gap{at}", values=rows[f"bound{at}"] - exact, null=0.0, why=why)
    lent = reasons(rows, NOT_SWAPPED)
    yield Measure(name=f"emax-jsd-swapped{at}", values=rows[f"swapped{at}"], null=math.nan, why=lent)


def _searched(rows: pd.DataFrame, at: str) -> Iterator[Measure]:
    """What searches found: lower bounds, for which no null was searched."""
    why = reasons(rows, NOT_SEARCHED)
    for variant in (*SEARCHES, "permuted", "capped"):
        values = rows[f"{variant}{at}"]
        yield Measure(name=f"emax-jsd-{variant}{at}", values=values, null=math.nan, why=why)
        if variant in SEARCHES:
            share = _saturated(values)
            yield Measure(name=f"emax-jsd-{variant}-share{at}", values=share, null=math.nan, why=why)


def _curve(rows: pd.DataFrame) -> Iterator[Measure]:
    why = reasons(rows, NOT_AFFINE)
    for epsilon in CURVE:
        values = rows[f"exact@{epsilon:g}"]
        yield Measure(name=f"emax-jsd-exact@{epsilon:g}", values=values, null=math.nan, why=why)


def _saturated(values: pd.Series) -> pd.Series:
    return (values > SATURATED).astype(np.float64).where(values.notna())


CONCLUSION = Conclusion(conclude, version=5, about=ABOUT, cards=CARDS, columns=COLUMNS)
