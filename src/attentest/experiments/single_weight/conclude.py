"""Whether the item on top matters more than another: single weights of Serrano & Smith (2019, SS-1, SS-2).

A large weight does more when it is removed than a small one, wherever it lies. So every number stands beside
the same where hidden states have changed places beneath the weights, which stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from attentest.experiments.description import Conclusion
from attentest.experiments.single_weight import ABOUT
from attentest.experiments.single_weight.cards import CARDS
from attentest.statistics.finding import finding
from attentest.statistics.group_means import Group, Means, Measure, by_class, by_span, of_controls
from attentest.statistics.record import Finding, ordered

RANKINGS = ("attention", "gradient", "product")
MEASURED = tuple(f"{what}_{by}" for by in RANKINGS for what in ("djs", "top_flips", "random_flips"))
NUMBERS = ("items", "gap_attention", *MEASURED, *(f"null_{name}" for name in MEASURED))
COLUMNS = ("seed", "subject", "id", "label", "predicted", "length", *NUMBERS)
EDGES = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, math.inf)  # of the weight on top minus the other's
SPANS = (*(f"[{low:.2f}, {high:.2f})" for low, high in pairwise(EDGES[:-1])), "[0.80, 1.00]")
# Rounding alone moves the divergence of two equal outputs by less; below it, neither item did anything.
NOISE = 1e-12
ONE_ITEM = "one item: no other to compare with"
UNDEFINED = "attention or output is not a number"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Decisions flipped in percent, as the paper's table has them; by attention the divergences, too.

    Overall and for the controls; by predicted class; divergences also by weight gap.
    """
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    numbers = rows[list(NUMBERS)].astype(np.float64)
    why = pd.Series(np.where(numbers["items"] < 2, ONE_ITEM, UNDEFINED), index=rows.index)
    means = Means(experiment="single-weight", rows=rows, mode=mode, rng=rng)
    flips = [measure for by in RANKINGS for measure in _flips(numbers, by, why)]
    flips.append(_discordant(numbers, why))
    divergences = [*_divergences(numbers, why)]
    groups = [("overall", trained), *of_controls(rows)]
    gaps = by_span(trained, "gap_attention", "weight gap", EDGES, SPANS)
    return [
        *means.of([*flips, *divergences], groups),
        *_tests(means, numbers, groups, why),
        *means.of([*flips, *divergences], by_class(trained, "predicted", "predicted")),
        *means.of(divergences, gaps),
    ]


def _flips(numbers: pd.DataFrame, by: str, why: pd.Series) -> Iterator[Measure]:
    """The four cells."""
    cells, nulls = _cells(numbers, by), _cells(numbers, by, "null_")
    for name, values in cells.items():
        yield Measure(name=f"{name}-{by}", values=100.0 * values, null=100.0 * nulls[name], why=why)


def _discordant(numbers: pd.DataFrame, why: pd.Series) -> Measure:
    """Of the texts that only one of the two items flips, the share of the one on top by attention."""
    cells = _cells(numbers, "attention")
    discordant = cells["only-top-flips"] + cells["only-random-flips"] == 1
    top = cells["only-top-flips"][discordant]
    return Measure(name="discordant-top-attention", values=top, null=0.5, why=why)


def _cells(numbers: pd.DataFrame, by: str, null: str = "") -> dict[str, pd.Series]:
    top, other = numbers[f"{null}top_flips_{by}"], numbers[f"{null}random_flips_{by}"]
    return {
        "both-flip": top * other,
        "only-top-flips": top * (1 - other),
        "only-random-flips": (1 - top) * other,
        "neither-flips": (1 - top) * (1 - other),
    }


def _divergences(numbers: pd.DataFrame, why: pd.Series) -> Iterator[Measure]:
    own, null = numbers["djs_attention"], numbers["null_djs_attention"]
    yield Measure(name="djs-attention", values=own, null=null, why=why)
    yield Measure(name="djs-attention-excess", values=own - null, null=0.0, why=why)
    below, null_below = ((djs < -NOISE).astype(np.float64).where(djs.notna()) for djs in (own, null))
    yield Measure(name="negative-djs-attention", values=below, null=null_below, why=why)


def _tests(means: Means, numbers: pd.DataFrame, groups: Iterable[Group], why: pd.Series) -> Iterator[Finding]:
    """McNemar's exact test: are the discordant texts split like tosses of a coin?

    Every seed is tested by itself and the largest p-value told: seeds answer the same texts, so to pool them
    would count each text several times.
    """
    for group, texts in groups:
        for by in RANKINGS:
            cells = pd.DataFrame(_cells(numbers.loc[texts.index], by))
            undefined = cells.index[cells.isna().any(axis=1)]
            by_seed = cells.drop(undefined).groupby(texts["seed"])
            counts = by_seed[["only-top-flips", "only-random-flips"]].sum().astype(int).to_numpy()
            found = [mcnemar(*pair) for pair in counts.tolist()]
            yield finding(
                found,
                estimate=max(found, default=math.nan),
                experiment=means.experiment,
                measure=f"mcnemar-p-{by}",
                group=group,
                n=int(counts.sum()),
                excluded=len(undefined),
                why="; ".join(sorted(set(why.loc[undefined]))),
                null=0.5,
                mode=means.mode,
            )


def mcnemar(only_first: int, only_second: int) -> float:
    """The two-sided exact p-value of so many discordant pairs on either side; 1 where there are none."""
    pairs = only_first + only_second
    return float(stats.binomtest(only_first, pairs, 0.5).pvalue) if pairs else 1.0


CONCLUSION = Conclusion(conclude, version=3, about=ABOUT, cards=CARDS, columns=COLUMNS)
