"""Whether attention ranks tokens as importance does: the correlations of Jain & Wallace (2019).

Rank correlations of single texts (JW-1, JW-2, and JW-3 from the published code), each beside what it is
where the weights do not match the words. With attention held, the gradient of a token carries its weight
as a factor, so that null is far from 0. There are two, the weights of another text and the text's own in
another order; the excess is over the one whose mean is larger in the group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from attentest.evidence.importances.names import IN_ROWS, column
from attentest.experiments.description import Conclusion
from attentest.experiments.importance import ABOUT, ALSO
from attentest.experiments.importance.cards import CARDS
from attentest.statistics.group_means import Group, Means, Measure, by_class, by_span, of_controls, reasons
from attentest.statistics.rank_agreement import kendalls, significant
from attentest.statistics.record import Finding, ordered

NULLS = ("swapped", "permuted")
HELD = {"gradient": "gradient", "loo": "loo_held"}  # the importance that is computed as its nulls are
QUANTITIES = ("tau", "p", "overlap", "distance")  # of attention and any importance
WHO = ("seed", "subject", "id", "label", "predicted", "length")
NUMBERS = (
    *(
        f"{quantity}_{importance}"
        for importance in IN_ROWS
        for quantity in (
            *(*QUANTITIES, "traded_tau"),
            *(f"{null}_{drawn}" for null in NULLS for drawn in ("tau", "significant")),
        )
    ),
    *(
        "tau_loo_held",
        "p_loo_held",
        "tau_gradient_loo",
        "p_gradient_loo",
        "tau_norm_held",
        "tau_norm_free",
        "k",
    ),
)
COLUMNS = (*WHO, *NUMBERS)
EDGES = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, math.inf)  # tokens: significance depends on them
SPANS = tuple(f"[{low:g}, {high:g})" for low, high in pairwise(EDGES))
UNRANKED = "constant or NaN vector"
NO_PARTNER = "no other text is as long"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts: overall and for the controls, and of correlations by class and by length, too.

    Class means the predicted one, as in the paper's tables, and the gold one beside it.
    """
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    also = [each for each in map(column, ALSO) if f"tau_{each}" in rows]
    more = [f"{quantity}_{name}" for name in also for quantity in QUANTITIES]
    numbers = rows[["length", *NUMBERS, *more]].astype(np.float64)
    why = reasons(rows, UNRANKED)
    others = [*_others(numbers, why, also), *_ceilings(trained, why, also)]
    means = Means(experiment="importance", rows=rows, mode=mode, rng=rng)
    found = []
    for group in [("overall", trained), *of_controls(rows)]:
        found += means.of([*_correlations(numbers, why, means, group[1].index, also), *others], [group])
    for group in _parts(trained):
        found += means.of([*_correlations(numbers, why, means, group[1].index, also)], [group])
    return found


def _parts(rows: pd.DataFrame) -> list[Group]:
    return [
        *by_class(rows, "predicted", "predicted"),
        *by_class(rows, "label", "gold"),
        *by_span(rows, "length", "length", EDGES, SPANS),
    ]


def _correlations(
    numbers: pd.DataFrame, why: pd.Series, means: Means, texts: pd.Index, also: Sequence[str]
) -> Iterator[Measure]:
    for importance, held in HELD.items():
        null = larger_null(numbers, importance, means, texts)
        tau, drawn = numbers[f"tau_{held}"], numbers[f"{null}_tau_{importance}"]
        lent = why.where(drawn.notna() | tau.isna(), NO_PARTNER)
        named = held.replace("_", "-")
        yield Measure(name=f"tau-{named}", values=tau, null=drawn, why=why)
        yield Measure(
            name=f"tau-{named}-significant",
            values=_significant(numbers[f"p_{held}"]),
            null=numbers[f"{null}_significant_{importance}"],
            why=why,
        )
        yield Measure(name=f"tau-{importance}-excess", values=tau - drawn, null=0.0, why=lent)
    yield Measure(name="tau-loo", values=numbers["tau_loo"], null=math.nan, why=why)
    yield Measure(name="tau-loo-significant", values=_significant(numbers["p_loo"]), null=math.nan, why=why)
    yield Measure(name="tau-gradient-loo", values=numbers["tau_gradient_loo"], null=0.0, why=why)
    for attention in ("held", "free"):
        values = numbers[f"tau_norm_{attention}"]
        yield Measure(name=f"tau-norm-{attention}", values=values, null=math.nan, why=why)
    for name in also:
        yield Measure(name=f"tau-{name}", values=numbers[f"tau_{name}"], null=0.0, why=why)


def _others(numbers: pd.DataFrame, why: pd.Series, also: Sequence[str]) -> Iterator[Measure]:
    between = numbers["tau_gradient_loo"]
    for importance in IN_ROWS:
        values = between - numbers[f"tau_{importance}"]
        yield Measure(name=f"gradient-loo-minus-attention-{importance}", values=values, null=0.0, why=why)
    # The mean of the hypergeometric distribution: k tokens drawn blindly from n, of which k are on top.
    by_chance = np.minimum(numbers["k"], numbers["length"]) / numbers["length"]
    for importance in (*IN_ROWS, *also):
        overlap, distance = numbers[f"overlap_{importance}"], numbers[f"distance_{importance}"]
        yield Measure(name=f"top-k-overlap-{importance}", values=overlap, null=by_chance, why=why)
        yield Measure(name=f"top-k-distance-{importance}", values=distance, null=math.nan, why=why)


def ceilings(trained: pd.DataFrame, importance: str) -> pd.Series:
    """For every row with a stored importance and a row of another seed, the mean tau-b with the others'."""
    stored = trained[trained[importance].notna()] if importance in trained else trained[:0]
    if stored["seed"].nunique() < 2:
        return pd.Series(dtype=np.float64)
    found: dict[int, list[float]] = {}
    for _, same in stored.groupby("id"):
        vectors = np.stack(same[importance].to_list()).astype(np.float64)
        for place, row in enumerate(same.index):
            found[row] = _with_others(vectors, place)
    return pd.Series({row: np.mean(taus) for row, taus in found.items() if taus}, dtype=np.float64)


def _with_others(vectors: np.ndarray, place: int) -> list[float]:
    others = np.delete(vectors, place, axis=0)
    if not len(others):
        return []
    return kendalls(vectors[place][None], others[None], np.array([vectors.shape[1]]))[0][0].tolist()


def _ceilings(trained: pd.DataFrame, why: pd.Series, also: Sequence[str]) -> Iterator[Measure]:
    """How well an importance agrees with itself after another training; no more can be asked of attention."""
    for importance in (*IN_ROWS, *also):
        values = ceilings(trained, importance)
        yield Measure(name=f"noise-ceiling-{importance}", values=values, null=0.0, why=why)


def larger_null(numbers: pd.DataFrame, importance: str, means: Means, texts: pd.Index) -> str:
    """The null whose mean is larger over the texts that have both; without any, the permuted one."""
    both = numbers.loc[texts, [f"{null}_tau_{importance}" for null in NULLS]].dropna()
    swapped, permuted = (means.mean(both[column]) for column in both)
    return "swapped" if swapped > permuted else "permuted"


def null_of_texts(texts: pd.DataFrame, importance: str) -> tuple[pd.Series, str]:
    """The null of each text for a figure, the one whose mean is larger, and its name in words.

    Rows of the first edition have its own null, which says so.
    """
    if f"swapped_tau_{importance}" not in texts:
        return texts[f"null_tau_{importance}"], "null: values permuted (first edition)"
    both = {null: texts[f"{null}_tau_{importance}"].astype(np.float64) for null in NULLS}
    larger = max(NULLS, key=lambda null: np.nan_to_num(both[null].mean(), nan=-2.0))
    title = {"swapped": "another text's weights", "permuted": "weights permuted"}[larger]
    return both[larger], f"null: {title}" + (", scores held" if importance == "loo" else "")


def _significant(p_value: pd.Series) -> pd.Series:
    return pd.Series(significant(p_value.to_numpy()), index=p_value.index)


CONCLUSION = Conclusion(conclude, version=4, about=ABOUT, cards=CARDS, columns=COLUMNS)
