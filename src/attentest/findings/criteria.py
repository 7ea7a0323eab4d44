"""What an audit says, criterion by criterion: supported, not supported or undecided. There is no one score.

Every test asks whether a finding lies beyond its null by more than would matter. The margin is fixed here,
the same for every model: with a thousand texts almost any difference from a null is significant, and an
attention that beats chance by a hair explains nothing. A test is *supported* where the effect is surely
larger than the margin, *not supported* where it is surely smaller, and *undecided* else; "surely" after
Holm's correction over all tests of the audit. A criterion is supported if all of its tests are, and not if
one is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy import stats

from attentest.findings.multiplicity import holm

LEVEL = 0.05
FEWEST = 20  # texts: below, a bootstrap over them knows too little of its own spread
WIDTH = 2 * stats.norm.ppf(0.975)  # of a 95 % interval, in standard errors

NAN = math.nan
Found: TypeAlias = Mapping[tuple[str, str], Any]  # the row of every finding, by experiment and measure

SUPPORTED, NOT_SUPPORTED, UNDECIDED = "supported", "not supported", "undecided"


@dataclass(frozen=True)
class Asked:
    """One finding that speaks to a criterion: the side of its null it must lie on, and how far to matter.

    `luck` names a finding that is itself the p-value, where no interval is known.
    """

    experiment: str
    measure: str
    margin: float  # negative where the finding must lie below its null
    otherwise: float = math.nan  # the null where no control stands beside the model
    luck: str = ""
    unlearnt: bool = False  # whether what an untrained model has is a null, too, where it lies further
    required: bool = False  # without its answer the criterion cannot be supported


@dataclass(frozen=True)
class Criterion:
    """What may be asked of an explanation, how it is said, and the tests that answer."""

    name: str
    asks: str
    says: Mapping[str, str]
    tests: Sequence[Asked]


# Tau of 0.1: of all pairs of words, one in twenty that chance would order wrongly is ordered rightly.
AGREE = 0.1
# A change of output by 0.05 is what Jain & Wallace (2019) allow an adversary on texts with a query, and what
# the permutation experiment calls unmoved.
MOVED = 0.05
# A tenth of the largest Jensen-Shannon divergence there is, ln 2.
APART = 0.1 * math.log(2)
# A tenth of a perfect ranking's precision.
FOUND = 0.1


def _says(yes: str, no: str) -> dict[str, str]:
    return {SUPPORTED: yes, NOT_SUPPORTED: no, UNDECIDED: "What was measured does not decide it."}


CRITERIA = (
    Criterion(
        "agrees with importances",
        "Does attention rank words as other importances do, beyond what comes unlearnt?",
        _says(
            "Attention ranks words as the other importances do, beyond what comes unlearnt.",
            "Attention does not rank words as every other importance does, beyond what comes unlearnt.",
        ),
        (
            # Their nulls take off the factor that a weight is of its unit's importance; those of the others
            # do not. What an untrained model has beyond that factor comes unlearnt, too: words that are loud
            # by themselves are attended to and have large gradients. An attention that agrees by its factor
            # alone fails here, and here only: where it is not asked, as of a map that is no weight, the
            # others alone support nothing.
            Asked("importance", "tau-gradient-excess", AGREE, unlearnt=True, required=True),
            Asked("importance", "tau-loo-excess", AGREE, unlearnt=True),
            Asked("agreement", "leave-one-out", AGREE, otherwise=0.0),
            Asked("agreement", "integrated-gradients", AGREE, otherwise=0.0),
            Asked("agreement", "shapley", AGREE, otherwise=0.0),
            Asked("agreement", "lime", AGREE, otherwise=0.0),
        ),
    ),
    Criterion(
        "unique",
        "Would the model answer otherwise under another attention?",
        _says(
            "Another attention gives another answer: the weights are not interchangeable.",
            "Very different weights give the same answer: this attention is not the only explanation.",
        ),
        (
            Asked("permutation", "median-output-change", MOVED, otherwise=0.0),
            # Nearly disjoint weights with the same output almost always exist, so an attention is unique only
            # in so far as it leaves less room than the same weights shuffled. Where a decision is not affine
            # no such null is known, and what a search finds there is shown and not judged. But random orders
            # alone cannot show that no other attention would do: without the optimum nothing is supported.
            Asked("adversary", "emax-jsd-exact-excess@0.01", -APART, required=True),
        ),
    ),
    Criterion(
        "necessary",
        "Does the answer need the words that attention points at?",
        _says(
            "Without the words that attention points at, the answer goes.",
            "Of the words that attention points at and its weights, one or both are hardly needed.",
        ),
        (
            Asked("erasure", "comprehensiveness-excess", MOVED),
            Asked("ablation", "uniform-output-change", MOVED, otherwise=0.0),
        ),
    ),
    Criterion(
        "sufficient",
        "Are the words that attention points at enough for the answer?",
        _says(
            "The words that attention points at are enough for the answer.",
            "The words that attention points at are hardly a better ground for the answer than random words.",
        ),
        (Asked("erasure", "sufficiency-excess", -MOVED),),
    ),
    Criterion(
        "informative",
        "Do words with more attention tell more about the answer?",
        _says(
            "Words with more attention tell more about the answer.",
            "Words with more attention hardly tell more about the answer.",
        ),
        (Asked("information", "tau", AGREE, luck="tau-p"),),
    ),
    Criterion(
        "plausible",
        "Is attention where people marked their reasons?",
        _says(
            "Attention is where people marked their reasons.",
            "Attention is hardly more where people marked their reasons than chance is.",
        ),
        (Asked("plausibility", "auprc-excess", FOUND),),
    ),
)


@dataclass(frozen=True)
class Answer:
    """A test with its numbers; p is that of the effect on its side of the margin, corrected."""

    test: Asked
    verdict: str
    estimate: float
    low: float
    high: float
    null: float
    n: int
    p: float
    reason: str  # why nothing could be decided; empty else


@dataclass(frozen=True)
class Judgement:
    """A criterion, its verdict, and the answers behind it."""

    criterion: Criterion
    verdict: str
    answers: Sequence[Answer]
    lacking: str = ""  # what was not measured, without which it stays undecided, and why

    @property
    def sentence(self) -> str:
        """What may be quoted, with its numbers."""
        told = [_told(answer) for answer in self.answers if math.isfinite(answer.estimate)]
        said = [f"{self.criterion.name.capitalize()}: {self.verdict}."]
        if told:
            said += [self.criterion.says[self.verdict], f"({'; '.join(told)})"]
        else:
            said.append("Nothing that could tell was measured.")
        return " ".join([*said, *([f"Lacking: {self.lacking}"] if self.lacking else [])])


def judged(findings: pd.DataFrame, absent: Mapping[str, str] | None = None) -> list[Judgement]:
    """Every criterion, from an audit's findings; what was not measured does not speak.

    `absent` says why it was not, by experiment or by experiment/measure.
    """
    found, untrained = _by_measure(findings, "overall"), _by_measure(findings, "untrained")
    asked = [(criterion, test) for criterion in CRITERIA for test in criterion.tests]
    raw = [_raw(test, found, untrained) for _, test in asked]
    corrected = holm(np.array([answer.p for answer in raw]))
    answers = [_settled(answer, float(p)) for answer, p in zip(raw, corrected, strict=True)]
    judgements = []
    for criterion in CRITERIA:
        own = [a for (of, _), a in zip(asked, answers, strict=True) if of is criterion and a.n]
        verdict = _verdict(criterion, own)
        lacking = _lacking(criterion, own, absent or {}) if verdict == UNDECIDED else ""
        judgements.append(Judgement(criterion, verdict, own, lacking))
    return judgements


def _by_measure(findings: pd.DataFrame, group: str) -> Found:
    rows = findings[findings["group"] == group]
    return {(str(row.experiment), str(row.measure)): row for row in rows.itertuples()}


def _raw(test: Asked, found: Found, untrained: Found) -> Answer:
    """The test with its verdict as if it were the only one."""
    row = found.get((test.experiment, test.measure))
    if row is None:
        return Answer(test, UNDECIDED, NAN, NAN, NAN, NAN, 0, NAN, "not measured")
    null = test.otherwise if math.isnan(row.null) else row.null
    twin = untrained.get((test.experiment, test.measure))
    if test.unlearnt and twin is not None and twin.estimate > null:
        null = float(twin.estimate)
    numbers = row.estimate, row.low, row.high, null, int(row.n)
    if row.n < FEWEST:
        return Answer(test, UNDECIDED, *numbers, math.nan, f"fewer than {FEWEST} texts")
    sign = math.copysign(1.0, test.margin)
    beyond = sign * (row.estimate - null) - abs(test.margin)
    if test.luck:
        return _by_luck(test, numbers, beyond, found)
    error = (row.high - row.low) / WIDTH
    if not (math.isfinite(beyond) and math.isfinite(error)):
        return Answer(test, UNDECIDED, *numbers, math.nan, "no interval or no null")
    # Where no draw of the bootstrap differed there is no error to divide by: the side is sure.
    z = abs(beyond) / error if error > 0 else math.inf if beyond else 0.0
    return Answer(test, SUPPORTED if beyond > 0 else NOT_SUPPORTED, *numbers, float(2 * stats.norm.sf(z)), "")


def _by_luck(
    test: Asked, numbers: tuple[float, float, float, float, int], beyond: float, found: Found
) -> Answer:
    """How often luck does as well is known, how far the estimate may be off is not: no can not be proven."""
    luck = found.get((test.experiment, test.luck))
    if luck is None or not math.isfinite(luck.estimate) or not beyond > 0:
        return Answer(test, UNDECIDED, *numbers, math.nan, "luck might do as well, and no interval is known")
    return Answer(test, SUPPORTED, *numbers, float(luck.estimate), "")


def _settled(answer: Answer, p: float) -> Answer:
    verdict, reason = answer.verdict, answer.reason
    if not p < LEVEL:
        verdict, reason = UNDECIDED, reason or "too near the margin for so few texts and so many tests"
    return replace(answer, verdict=verdict, p=p, reason=reason)


def _verdict(criterion: Criterion, answers: Sequence[Answer]) -> str:
    verdicts = {answer.verdict for answer in answers}
    if NOT_SUPPORTED in verdicts:
        return NOT_SUPPORTED
    return SUPPORTED if verdicts == {SUPPORTED} and not _unanswered(criterion, answers) else UNDECIDED


def _unanswered(criterion: Criterion, answers: Sequence[Answer]) -> list[Asked]:
    """The tests without which a criterion cannot be supported: any, where none was answered."""
    answered = {answer.test for answer in answers}
    return [test for test in criterion.tests if test not in answered and (test.required or not answered)]


def _lacking(criterion: Criterion, answers: Sequence[Answer], absent: Mapping[str, str]) -> str:
    """The first test that would be needed and has a reason why it was not measured."""
    for test in _unanswered(criterion, answers):
        name = f"{test.experiment}/{test.measure}"
        reason = absent.get(name) or absent.get(test.experiment)
        if reason:
            return f"{name} ({reason})"
    return ""


def _told(answer: Answer) -> str:
    between = f" [{answer.low:.3f}, {answer.high:.3f}]" if math.isfinite(answer.low) else ""
    p = "" if math.isnan(answer.p) else ", p < 0.001" if answer.p < 0.001 else f", p = {answer.p:.3f}"
    against = f"null {answer.null:.3f}, margin {answer.test.margin:+.3f}"
    return f"{answer.test.experiment}/{answer.test.measure} {answer.estimate:.3f}{between}, {against}{p}"
