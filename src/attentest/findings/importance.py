"""Whether attention ranks tokens as importance does: the correlations of Jain & Wallace (2019).

Rank correlations of single texts (JW-1, JW-2, and JW-3 from the published code), each beside what it would
be if attention and importance had nothing to do with each other. With attention held, the gradient of a
token carries its weight as a factor, so that null is far from 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd

from attentest.findings.group_means import Group, Means, Measure, by_class, by_span, of_controls, reasons
from attentest.findings.rank_agreement import SIGNIFICANT, significant
from attentest.findings.record import Finding, ordered

IMPORTANCES = ("gradient", "loo")
WHO = ("seed", "subject", "id", "label", "predicted", "length")
NUMBERS = (
    *(
        f"{quantity}_{importance}"
        for importance in IMPORTANCES
        for quantity in ("tau", "p", "null_tau", "null_significant", "overlap", "distance", "ceiling")
    ),
    *("tau_gradient_loo", "p_gradient_loo", "tau_norm_held", "tau_norm_free", "k"),
)
COLUMNS = (*WHO, *NUMBERS)
EDGES = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, math.inf)  # tokens: significance depends on them
SPANS = tuple(f"[{low:g}, {high:g})" for low, high in pairwise(EDGES))
UNRANKED = "constant or NaN vector"
REFERENCE = 0  # the seed with whose importances those of the others are compared


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts: overall and for the controls, and of correlations by class and by length, too.

    Class means the predicted one, as in the paper's tables, and the gold one beside it.
    """
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    numbers = rows[["length", *NUMBERS]].astype(np.float64)
    why = reasons(rows, UNRANKED)
    correlations = [*_correlations(numbers, why)]
    others = [*_others(numbers, why), *_ceilings(trained, why)]
    means = Means(experiment="importance", rows=rows, mode=mode, rng=rng)
    return [
        *means.of([*correlations, *others], [("overall", trained), *of_controls(rows)]),
        *means.of(correlations, _parts(trained)),
    ]


def _parts(rows: pd.DataFrame) -> list[Group]:
    return [
        *by_class(rows, "predicted", "predicted"),
        *by_class(rows, "label", "gold"),
        *by_span(rows, "length", "length", EDGES, SPANS),
    ]


def _correlations(numbers: pd.DataFrame, why: pd.Series) -> Iterator[Measure]:
    for importance in IMPORTANCES:
        tau, null = numbers[f"tau_{importance}"], numbers[f"null_tau_{importance}"]
        yield Measure(name=f"tau-{importance}", values=tau, null=null, why=why)
        yield Measure(
            name=f"tau-{importance}-significant",
            values=_significant(numbers[f"p_{importance}"]),
            null=numbers[f"null_significant_{importance}"],
            why=why,
        )
        yield Measure(name=f"tau-{importance}-excess", values=tau - null, null=0.0, why=why)
    yield Measure(name="tau-gradient-loo", values=numbers["tau_gradient_loo"], null=0.0, why=why)
    yield Measure(
        name="tau-gradient-loo-significant",
        values=_significant(numbers["p_gradient_loo"]),
        null=SIGNIFICANT,
        why=why,
    )
    for attention in ("held", "free"):
        values = numbers[f"tau_norm_{attention}"]
        yield Measure(name=f"tau-norm-{attention}", values=values, null=math.nan, why=why)


def _others(numbers: pd.DataFrame, why: pd.Series) -> Iterator[Measure]:
    between = numbers["tau_gradient_loo"]
    for importance in IMPORTANCES:
        values = between - numbers[f"tau_{importance}"]
        yield Measure(name=f"gradient-loo-minus-attention-{importance}", values=values, null=0.0, why=why)
    # The mean of the hypergeometric distribution: k tokens drawn blindly from n, of which k are on top.
    by_chance = np.minimum(numbers["k"], numbers["length"]) / numbers["length"]
    for importance in IMPORTANCES:
        overlap, distance = numbers[f"overlap_{importance}"], numbers[f"distance_{importance}"]
        yield Measure(name=f"top-k-overlap-{importance}", values=overlap, null=by_chance, why=why)
        yield Measure(name=f"top-k-distance-{importance}", values=distance, null=math.nan, why=why)


def _ceilings(trained: pd.DataFrame, why: pd.Series) -> Iterator[Measure]:
    """What importances agree with their own kind after another training; nothing can ask more of attention.

    The reference seed has nobody to be compared with, so its texts are not asked rather than excluded.
    """
    compared = trained[trained["seed"] != REFERENCE]
    for importance in IMPORTANCES:
        values = compared[f"ceiling_{importance}"].astype(np.float64)
        yield Measure(name=f"noise-ceiling-{importance}", values=values, null=0.0, why=why)


def _significant(p_value: pd.Series) -> pd.Series:
    return pd.Series(significant(p_value.to_numpy()), index=p_value.index)
