"""Means over the texts of a group: what most conclusions are made of.

A measure has a value for every observed row. Its finding in a group is the mean over each seed's texts,
then over the seeds, beside the same mean of its null; texts without a value are left out and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
import pandas as pd

from attentest.statistics.crossed import Interval, intervals_of_means
from attentest.statistics.estimates import group_asked
from attentest.statistics.finding import finding
from attentest.statistics.interval import over_seeds
from attentest.statistics.record import Finding

Group: TypeAlias = tuple[str, pd.DataFrame]  # its printed name, and the rows of its texts

MAX_ATTENTION_EDGES = (0.0, 0.25, 0.5, 0.75, math.inf)  # a float32 weight may exceed one by its last bit
MAX_ATTENTION_SPANS = ("[0.00, 0.25)", "[0.25, 0.50)", "[0.50, 0.75)", "[0.75, 1.00]")
CONTROLS = ("untrained", "shuffled labels")  # without training, and with nothing to learn
# Beyond so many names a label is an answer, as in question answering, and not a class: each would hold a
# handful of texts, and Jain & Wallace (2019) pool them, too.
MOST_CLASSES = 20
ONE_TOKEN = "one token"


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Measure:
    """A value of every row it is about, its null there, and why a value may be missing.

    The null is a number for each of these rows or one for all, NaN where none is known.
    """

    name: str
    values: pd.Series
    null: pd.Series | float
    why: pd.Series


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Means:
    """Makes findings of an experiment's rows, as `ordered` left them: in one order, numbered from 0."""

    experiment: str
    rows: pd.DataFrame
    mode: str
    rng: np.random.Generator

    def of(self, measures: Sequence[Measure], groups: Iterable[Group]) -> list[Finding]:
        """Every measure in every group, unless it is about none of the group's texts."""
        found = []
        for group, texts in groups:
            if not group_asked(group):
                continue
            about = [(m, m.values.loc[texts.index.intersection(m.values.index)]) for m in measures]
            asked = [(measure, values) for measure, values in about if len(values)]
            intervals = self._intervals([values for _, values in asked])
            for (measure, values), interval in zip(asked, intervals, strict=True):
                found.append(self._finding(measure, group, values, interval))
        return found

    def mean(self, values: pd.Series) -> float:
        """The mean of some rows' values, as a finding would have it; NaN where there is none."""
        return over_seeds(self._seed_means(values))[0]

    def _finding(self, measure: Measure, group: str, values: pd.Series, interval: Interval) -> Finding:
        defined = values.dropna().to_numpy(dtype=np.float64)
        left_out = values.index[values.isna()] if len(defined) < len(values) else values.index[:0]
        return finding(
            self._seed_means(values),
            interval=interval,
            std=float(defined.std()) if len(defined) else math.nan,
            experiment=self.experiment,
            measure=measure.name,
            group=group,
            n=len(defined),
            excluded=len(left_out),
            why=_joined(measure.why.loc[left_out]) if len(left_out) else "",
            null=self._null(measure, values),
            mode=self.mode,
        )

    def _null(self, measure: Measure, values: pd.Series) -> float:
        if not isinstance(measure.null, pd.Series):
            return measure.null
        # Beside the same texts: a null of others would differ from the estimate by which texts they are.
        return self.mean(measure.null.loc[values.index].where(values.notna()))

    def _intervals(self, columns: Sequence[pd.Series]) -> list[Interval]:
        """Columns that are defined for the same rows share one table of seeds and texts."""
        alike: dict[bytes, list[int]] = {}
        for number, values in enumerate(columns):
            alike.setdefault(values.index[values.notna()].to_numpy().tobytes(), []).append(number)
        found: dict[int, Interval] = {}
        for numbers in alike.values():
            together = pd.concat([columns[number].dropna() for number in numbers], axis=1)
            intervals = intervals_of_means(
                self._by_seed(together.to_numpy(dtype=np.float64), together.index),
                self._by_seed(self._text[together.index], together.index),
            )
            found |= dict(zip(numbers, intervals, strict=True))
        return [found[number] for number in range(len(columns))]

    def _seed_means(self, values: pd.Series) -> list[float]:
        defined = values.dropna()
        parts = self._by_seed(defined.to_numpy(dtype=np.float64), defined.index)
        return [float(part.mean()) for part in parts if len(part)]

    def _by_seed(self, array: np.ndarray, rows: pd.Index) -> list[np.ndarray]:
        """The entries, one for each of these rows, seed by seed: rows are in the order of seeds."""
        seeds = self.rows["seed"].to_numpy()[rows]
        return np.split(array, np.flatnonzero(seeds[1:] != seeds[:-1]) + 1)

    @cached_property
    def _text(self) -> np.ndarray:
        """Ids as numbers in the order of the ids, which are quicker to match than strings."""
        return pd.factorize(self.rows["id"], sort=True, use_na_sentinel=False)[0]


def by_class(rows: pd.DataFrame, column: str, title: str) -> list[Group]:
    """The texts of each class; none where there are too many names for classes."""
    if rows[column].nunique() > MOST_CLASSES:
        return []
    return [(f"{title}={name}", texts) for name, texts in rows.groupby(column)]


def by_span(
    rows: pd.DataFrame, column: str, title: str, edges: Sequence[float], names: Sequence[str]
) -> list[Group]:
    """The texts between each two edges, the lower one included, where there are any."""
    spans = pd.cut(rows[column], list(edges), right=False, labels=list(names))
    return [(f"{title} {span}", texts) for span, texts in rows.groupby(spans, observed=True)]


def of_controls(rows: pd.DataFrame) -> list[Group]:
    """All texts of each control that was observed, under the name of the control."""
    return [(name, rows[rows["subject"] == name]) for name in CONTROLS if (rows["subject"] == name).any()]


def reasons(rows: pd.DataFrame, otherwise: str) -> pd.Series:
    """Why a row would have no value: one token leaves nothing to compare, and else what is given."""
    return pd.Series(np.where(rows["length"] < 2, ONE_TOKEN, otherwise), index=rows.index)


def _joined(given: pd.Series) -> str:
    """Each reason once; how often, where the count of all exclusions does not tell."""
    counts = given.value_counts().sort_index()
    if len(counts) < 2:
        return "".join(counts.index)
    return "; ".join(f"{reason} ({count})" for reason, count in counts.items())
