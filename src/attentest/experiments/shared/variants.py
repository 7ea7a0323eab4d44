"""Scores of several models on the same texts, and what one scores beyond others.

Differences are paired: within a seed all models answer the same texts, so an interval of the difference is
drawn from texts and seeds that both share, and luck that both share cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import final

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from attentest.experiments.performance import conclude as performance
from attentest.statistics.interval import PerDraw, Weights, value_of
from attentest.statistics.record import Finding
from attentest.statistics.scores import MEASURES, NOT_A_NUMBER, UNDEFINED, Predictions
from attentest.statistics.statistic import of_samples


def scored(
    experiment: str,
    rows: pd.DataFrame,
    subjects: Iterable[str],
    *,
    mode: str,
    rng: np.random.Generator,
    measures: Sequence[str] = tuple(MEASURES),
) -> list[Finding]:
    """Each subject's scores, in a group of its name, as if performance were about it."""
    found = []
    for subject in subjects:
        texts = rows[rows["subject"] == subject].assign(subject="trained")
        for finding in performance.conclude(texts, mode=mode, rng=rng):
            if finding.group == "overall" and finding.measure in measures:
                found.append(replace(finding, experiment=experiment, group=subject))
    return found


@final
@dataclass(frozen=True)
class Together:
    """One seed's answers to the same texts by several models, in one order."""

    ids: Shaped[np.ndarray, " n"]
    answers: tuple[Predictions, ...]

    def __len__(self) -> int:
        return len(self.ids)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Contest:
    """Compares subjects of an experiment's rows, as `ordered` left them."""

    experiment: str
    rows: pd.DataFrame
    mode: str
    rng: np.random.Generator

    def beyond(
        self, measure: str, subject: str, rivals: Sequence[str], *, name: str, group: str, null: float
    ) -> list[Finding]:
        """What a subject scores beyond the best of its rivals: the mean over seeds; none where none met."""
        seeds, excluded = self._together((subject, *rivals))
        if not seeds and not excluded:
            return []
        finding = of_samples(
            seeds,
            _beyond(measure),
            left_out=(excluded, NOT_A_NUMBER),
            undefined=UNDEFINED[measure],
            rng=self.rng,
            experiment=self.experiment,
            measure=name,
            group=group,
            null=null,
            mode=self.mode,
        )
        return [finding]

    def of_seeds(self, measure: str, subject: str) -> list[float]:
        """The subject's score in each seed where it has one."""
        seeds, _ = self._together((subject,))
        values = [value_of(each.answers[0], MEASURES[measure]) for each in seeds]
        return [value for value in values if not math.isnan(value)]

    def _together(self, subjects: Sequence[str]) -> tuple[list[Together], int]:
        """The seeds in which all of them answered with numbers, and how many texts some did not."""
        found, excluded = [], 0
        for _, of_seed in self.rows.groupby("seed"):
            tables = [of_seed[of_seed["subject"] == subject].set_index("id") for subject in subjects]
            shared = reduce(pd.Index.intersection, (table.index for table in tables))
            if len(shared):
                every = [_predictions(table.loc[shared]) for table in tables]
                kept = np.all([np.isfinite(each.probabilities).all(axis=1) for each in every], axis=0)
                excluded += int((~kept).sum())
                if kept.any():
                    numeric = tuple(each.only(kept) for each in every)
                    found.append(Together(numeric[0].ids, numeric))
        return found, excluded


def _predictions(rows: pd.DataFrame) -> Predictions:
    probabilities = np.array(rows["probabilities"].tolist(), dtype=np.float64)
    return Predictions(
        ids=rows.index.to_numpy(),
        gold=rows["gold"].to_numpy(dtype=np.int64),
        predicted=probabilities.argmax(axis=1),
        probabilities=probabilities,
    )


def _beyond(measure: str) -> Callable[[Together, Weights], PerDraw]:
    score = MEASURES[measure]

    def statistic(sample: Together, weights: Weights) -> PerDraw:
        own, *others = (score(answers, weights) for answers in sample.answers)
        return own - np.max(others, axis=0)

    return statistic


def seed_difference(scores: Sequence[float]) -> float:
    """How much the scores of two seeds differ on average: what a difference that means nothing comes to."""
    pairs = [abs(one - other) for place, one in enumerate(scores) for other in scores[:place]]
    return float(np.mean(pairs)) if pairs else math.nan
