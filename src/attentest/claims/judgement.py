"""What an audit says of one criterion: the answers of its tests, the verdict, and both in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from attentest.claims.calibrated import UNKNOWN, ErrorRates
from attentest.claims.criterion import (
    Asked,
    Criterion,
)
from attentest.claims.verdict import Verdict

NAN = math.nan
NO_POWER = "it has not been shown to tell models whose answer is yes from models whose answer is no"
NEVER = "It is not judged for any kind of model."
MISSES = "its error rates for models of this kind miss the bar"


@final
@dataclass(frozen=True, kw_only=True)
class Answer:
    """A test with its numbers. Both p-values are corrected, over all judged tests in their direction."""

    test: Asked
    verdict: Verdict
    reason: str = ""  # why nothing was decided; empty else
    margin: float = NAN  # of the effect; NaN where the test has none
    estimate: float = NAN
    low: float = NAN
    high: float = NAN
    null: float = NAN
    null_of_finding: float = NAN  # what the finding itself is compared with, judged or not
    effect: float = NAN
    n: int = 0
    p_at_most: float = NAN  # of the hypothesis that the effect is at most the margin
    p_at_least: float = NAN  # of the hypothesis that it is at least the margin

    @property
    def measured(self) -> bool:
        """Whether there is a number."""
        return self.verdict not in (Verdict.NOT_MEASURED, Verdict.NOT_APPLICABLE)

    @property
    def limit(self) -> float:
        """The margin as a value of the measure."""
        return self.null + self.test.sign * self.margin

    @property
    def p(self) -> float:
        """The p-value of the verdict; where nothing was decided the smaller of both."""
        return self.p_at_least if self._speaks_against else self.p_at_most

    @property
    def p_tests(self) -> str:
        """The hypothesis that `p` is the p-value of; empty where there is none."""
        if math.isnan(self.p):
            return ""
        above = (self.test.sign > 0) == self._speaks_against
        return f"the hypothesis that {self.test.measure} is at {'least' if above else 'most'} {self.limit:g}"

    @property
    def _speaks_against(self) -> bool:
        return self.verdict == Verdict.NOT_SUPPORTED or (
            self.verdict != Verdict.SUPPORTED and self.p_at_least < self.p_at_most
        )

    @property
    def told(self) -> str:
        """The numbers, with what the p-value is of."""
        between = f" [{self.low:.3f}, {self.high:.3f}]" if math.isfinite(self.low) else ""
        null = "" if self.null == 0 or math.isnan(self.null) else f", null {self.null:.3f}"
        p = ""
        if self.p_tests:
            p = f", p {'< 0.001' if self.p < 0.001 else f'= {self.p:.3f}'} for {self.p_tests}"
        return f"{self.test.name} {self.estimate:.3f}{between}{null}{p}"

    @property
    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "experiment": self.test.experiment,
            "measure": self.test.measure,
            "sign": self.test.sign,
            **{name: getattr(self, name) for name in ("margin", "verdict", "estimate", "low", "high")},
            **{name: getattr(self, name) for name in ("null", "effect", "n", "p", "p_tests", "reason")},
        }


@final
@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A criterion, its verdict, the answers of all its tests, and how often such verdicts are right."""

    criterion: Criterion
    verdict: Verdict
    answers: Sequence[Answer]
    error_rates: ErrorRates | None = None

    @property
    def rests_on(self) -> list[Answer]:
        """The answers of the tests with a margin; of all tests where none has one."""
        return resting(self.answers)

    @property
    def lacking(self) -> str:
        """What was not measured of that, and why."""
        reasons: dict[str, list[str]] = {}
        for answer in self.rests_on:
            if not answer.measured:
                reasons.setdefault(answer.reason, []).append(answer.test.name)
        return "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())

    @property
    def rates(self) -> str:
        """How often it is right of models of this kind, in words."""
        if not any(math.isfinite(answer.margin) for answer in self.answers):
            return NEVER
        return UNKNOWN if self.error_rates is None else self.error_rates.sentence

    @property
    def sentence(self) -> str:
        """What may be quoted, with its numbers."""
        said = [f"{self.criterion.name.capitalize()}: {self.verdict}.", self._meaning()]
        told = [answer.told for answer in self.rests_on if math.isfinite(answer.estimate)]
        said += [f"({'; '.join(told)})"] if told else []
        said += [f"Lacking: {self.lacking}"] if self.lacking else []
        return " ".join(part for part in said if part)

    def _meaning(self) -> str:
        if self.verdict == Verdict.NOT_JUDGED:
            reasons = dict.fromkeys(answer.reason for answer in self.rests_on if answer.measured)
            return f"The numbers are shown and not judged: {', '.join(reasons)}."
        return self.criterion.meaning(self.verdict)

    @property
    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "criterion": self.criterion.name,
            "question": self.criterion.question,
            "asks": self.criterion.asks,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "rates": self.rates,
            "tests": [answer.document for answer in self.answers],
        }


def resting(answers: Sequence[Answer]) -> list[Answer]:
    """The answers of the tests with a margin; all of them where none has one."""
    return [answer for answer in answers if math.isfinite(answer.margin)] or list(answers)
