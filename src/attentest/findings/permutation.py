"""What shuffling attention does to the output: the permutation experiment of Jain & Wallace (2019)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from attentest.findings.interval import bootstrap, over_seeds, weighted_mean
from attentest.findings.record import Finding, ordered

COLUMNS = ("seed", "subject", "id", "predicted", "max_attention", "median_change")
EDGES = (0.0, 0.25, 0.5, 0.75, math.inf)  # a float32 weight may exceed one by its last bit
SPANS = ("[0.00, 0.25)", "[0.25, 0.50)", "[0.50, 0.75)", "[0.75, 1.00]")
UNMOVED = 0.05  # a median change of output below this is called none
ONE_TOKEN = "one token: nothing to permute"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """The mean over texts of the median output change: overall, by predicted class, by largest weight.

    The paper shows the distributions; the means per bin and class are ours, and so is the null, the
    same quantity on untrained models: an output that attention could not move before training either
    says nothing about what training put into attention.
    """
    rows = ordered(rows, COLUMNS)
    changes = rows["median_change"]
    rows["unmoved"] = (changes < UNMOVED).astype(np.float64).where(changes.notna())
    rows["span"] = pd.cut(rows["max_attention"], EDGES, right=False, labels=list(SPANS))
    trained, untrained = (rows[rows["subject"] == subject] for subject in ("trained", "untrained"))
    if trained.empty:
        return []
    nulls = dict(_groups(untrained))
    nothing = untrained.iloc[:0]
    tables = [
        ("median-output-change", group, texts["median_change"], nulls.get(group, nothing)["median_change"])
        for group, texts in _groups(trained)
    ]
    tables.append(("share-unmoved", "overall", trained["unmoved"], untrained["unmoved"]))
    return [
        _mean(measure, group, _by_seed(values, rows), _by_seed(null, rows), mode=mode, rng=rng)
        for measure, group, values, null in tables
    ]


def _groups(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every group that has texts, under its printed name; class means the predicted one, as in the paper."""
    yield "overall", rows
    classes = [(f"predicted={name}", texts) for name, texts in rows.groupby("predicted")]
    yield from classes
    for prefix, texts in [("", rows), *((f"{name}, ", texts) for name, texts in classes)]:
        for span, of_span in texts.groupby("span", observed=True):
            yield f"{prefix}max attention {span}", of_span


def _by_seed(values: pd.Series, rows: pd.DataFrame) -> list[pd.Series]:
    """Each seed's values, named by the ids of their texts: a group holds other texts in other seeds."""
    who = rows.loc[values.index]
    named = values.astype(np.float64).set_axis(pd.Index(who["id"]))
    return [of_seed for _, of_seed in named.groupby(who["seed"].to_numpy())]


def _mean(
    measure: str,
    group: str,
    by_seed: list[pd.Series],
    null: list[pd.Series],
    *,
    mode: str,
    rng: np.random.Generator,
) -> Finding:
    defined = _defined(by_seed)
    samples, ids = [values.to_numpy() for values in defined], [values.index.to_numpy() for values in defined]
    pooled = np.concatenate([*samples, np.empty(0)])
    excluded = sum(map(len, by_seed)) - len(pooled)
    low, high, interval = bootstrap(samples, ids, weighted_mean, rng=rng)
    estimate, seed_std = _mean_of_means(defined)
    return Finding(
        experiment="permutation",
        measure=measure,
        group=group,
        estimate=estimate,
        std=float(pooled.std()) if len(pooled) else math.nan,
        seed_std=seed_std,
        low=low,
        high=high,
        interval=interval,
        n=len(pooled),
        seeds=len(samples),
        excluded=excluded,
        why=ONE_TOKEN if excluded else "",
        null=_mean_of_means(_defined(null))[0],
        mode=mode,
    )


def _defined(by_seed: list[pd.Series]) -> list[pd.Series]:
    kept = [values.dropna() for values in by_seed]
    return [values for values in kept if len(values)]


def _mean_of_means(by_seed: list[pd.Series]) -> tuple[float, float]:
    return over_seeds([float(values.mean()) for values in by_seed])
