"""What an audit says, criterion by criterion. There is no one score.

Every test asks whether an effect is larger than a margin. With a thousand texts almost any difference from a
null is significant, and an attention that beats chance by a hair explains nothing. The margins come from
models whose truth is known (`calibrated`): at its margin a test is rarely supported where the answer is no
and, where that is possible, mostly where it is yes. A test is *supported* where the hypothesis "the effect is
at most the margin" is rejected, *not supported* where "the effect is at least the margin" is, by the t
distribution of the finding's own error, one-sided, at 5 % after Holm's correction over all judged tests in
that direction; else it is *undecided*.

A criterion rests on its tests with a margin: supported if all are, not supported if one is not. What has no
shown power, or misses the bar of calibration for this kind of model, is *not judged*: its numbers are shown.
What the budget left out is *not measured*, and what the model does not allow is *not applicable*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pandas as pd
from scipy import stats

from attentest.claims import calibrated
from attentest.claims.criterion import (
    CRITERIA,
    Asked,
    Criterion,
)
from attentest.claims.judgement import MISSES, NO_POWER, Answer, Judgement, resting
from attentest.claims.verdict import Verdict, decided, over_tests
from attentest.statistics.multiplicity import LEVEL, holm

__all__ = [
    "CRITERIA",
    "FEWEST",
    "Answer",
    "Asked",
    "Criterion",
    "Judgement",
    "judged",
]

FEWEST = 20  # texts: below, the mean over texts need not follow a t distribution
NEAR = "too near the margin for so few texts and so many tests"


def judged(
    findings: pd.DataFrame,
    *,
    absent: Mapping[str, str] | None = None,
    skipped: Mapping[str, str] | None = None,
    kind: str | None = None,
    margins: Mapping[str, float] | None = None,
) -> list[Judgement]:
    """Every criterion, from an audit's findings.

    `absent` says why something is not there, by experiment or by experiment/measure; `skipped` says it of
    what could have been measured. `kind` is that of the model: a criterion that misses the bar for it is
    not judged; without a kind nothing is known of error rates, and margins alone decide. `margins` by the
    name of the test stand in for the committed ones.
    """
    rows = findings[findings["group"] == "overall"].itertuples()
    found = {(str(row.experiment), str(row.measure)): row for row in rows}
    rates = {criterion.name: calibrated.error_rates(criterion.name, kind) for criterion in CRITERIA}
    reading = _Reading(
        found, absent or {}, skipped or {}, calibrated.margins() if margins is None else margins
    )
    answers = [
        [reading.answer(test, misses=_misses(rates[criterion.name])) for test in criterion.tests]
        for criterion in CRITERIA
    ]
    settled = iter(_settled([answer for own in answers for answer in own]))
    judgements = []
    for criterion in CRITERIA:
        own = [next(settled) for _ in criterion.tests]
        judgements.append(
            Judgement(
                criterion=criterion,
                verdict=over_tests([answer.verdict for answer in resting(own)]),
                answers=own,
                error_rates=rates[criterion.name],
            )
        )
    return judgements


def _misses(rates: calibrated.ErrorRates | None) -> bool:
    return rates is not None and not rates.judged


@final
@dataclass(frozen=True)
class _Reading:
    """The findings of one audit, and what is known about those that are not there."""

    found: Mapping[tuple[str, str], Any]
    absent: Mapping[str, str]
    skipped: Mapping[str, str]
    margins: Mapping[str, float]

    def answer(self, test: Asked, *, misses: bool) -> Answer:
        """The test with its p-values as if it were the only one; its verdict is still open."""
        row = self.found.get((test.experiment, test.measure))
        margin = math.nan if test.shown else self.margins.get(test.name, math.nan)
        if row is None or not row.n:
            verdict, reason = self._why_not(test)
            return Answer(test=test, verdict=verdict, reason=reason, margin=margin)
        answer = Answer(
            test=test,
            verdict=Verdict.UNDECIDED,
            margin=margin,
            estimate=float(row.estimate),
            low=float(row.low),
            high=float(row.high),
            null=test.null_of(row),
            null_of_finding=float(row.null),
            effect=test.effect(row),
            n=int(row.n),
        )
        if misses or math.isnan(margin):
            reason = NO_POWER if math.isnan(margin) else MISSES
            return replace(answer, verdict=Verdict.NOT_JUDGED, reason=reason)
        if row.n < FEWEST:
            return replace(answer, reason=f"fewer than {FEWEST} texts")
        at_most, at_least = one_sided(answer.effect - margin, float(row.error), float(row.freedom))
        if math.isnan(at_most):
            return replace(answer, reason="no standard error or no null")
        return replace(answer, p_at_most=at_most, p_at_least=at_least)

    def _why_not(self, test: Asked) -> tuple[Verdict, str]:
        skipped = self.skipped.get(test.experiment)
        if skipped:
            return Verdict.NOT_MEASURED, skipped
        reason = self.absent.get(test.name) or self.absent.get(test.experiment)
        return (Verdict.NOT_APPLICABLE, reason) if reason else (Verdict.NOT_MEASURED, "it was not asked")


def one_sided(beyond: float, error: float, freedom: float) -> tuple[float, float]:
    """The p-values of "at most the margin" and "at least the margin"; without an error the side is sure."""
    if not (math.isfinite(beyond) and math.isfinite(error)):
        return math.nan, math.nan
    if error == 0:
        return float(beyond <= 0), float(beyond >= 0)
    return float(stats.t.sf(beyond / error, freedom)), float(stats.t.cdf(beyond / error, freedom))


def _settled(answers: Sequence[Answer]) -> list[Answer]:
    """The answers with corrected p-values and their verdicts."""
    at_most = holm(np.array([answer.p_at_most for answer in answers]))
    at_least = holm(np.array([answer.p_at_least for answer in answers]))
    settled = []
    for answer, most, least in zip(answers, at_most.tolist(), at_least.tolist(), strict=True):
        if not math.isnan(most):
            verdict = decided(most < LEVEL, least < LEVEL)
            reason = NEAR if verdict == Verdict.UNDECIDED else ""
            answer = replace(
                answer, verdict=verdict, reason=reason, p_at_most=float(most), p_at_least=float(least)
            )
        settled.append(answer)
    return settled
