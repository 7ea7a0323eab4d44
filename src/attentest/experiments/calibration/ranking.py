"""How well each test ranks models by their truth: AUC with intervals that resample constructions.

The AUC is the probability that an audit of a model whose answer is yes has a larger effect than one whose
answer is no; every construction weighs the same, however many audits it has. Audits of one construction are
alike, so an interval over audits would say that the constructions we thought of are all there are. The
bootstrap draws constructions first, within yes and within no, and then audits within each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from attentest.experiments.calibration import QUESTIONS, Question
from attentest.experiments.calibration.known_tests import KNOWN, KnownTest
from attentest.experiments.calibration.rows import OTHER_KNOBS, TRAINED, at_reference
from attentest.model.constructions import CONSTRUCTIONS

DRAWS = 1000
SEED = 22
LEVEL = 0.95
PLACES = 3  # decimals of every committed number
Effects = Float[np.ndarray, " audit"]
Answers = Bool[np.ndarray, " audit"]
Weights = Float[np.ndarray, "draw audit"]


def weighted_auc(effects: Effects, answers: Answers, weights: Weights) -> Float[np.ndarray, " draw"]:
    """The AUC under each row of weights; ties count half."""
    _, tied = np.unique(effects, return_inverse=True)
    order = np.argsort(tied, kind="stable")
    begins = np.flatnonzero(np.diff(tied[order], prepend=-1))
    sorted_weights = weights[:, order]
    yes = np.add.reduceat(np.where(answers[order], sorted_weights, 0.0), begins, axis=1)
    no = np.add.reduceat(np.where(answers[order], 0.0, sorted_weights), begins, axis=1)
    below = np.cumsum(no, axis=1) - 0.5 * no
    with np.errstate(invalid="ignore"):
        return np.asarray((yes * below).sum(1) / (yes.sum(1) * no.sum(1)))


def equal_weights(constructions: Int[np.ndarray, " audit"]) -> Weights:
    """One row of weights in which each construction has the same share."""
    return 1.0 / np.bincount(constructions)[constructions][None]


def resampled(
    constructions: Int[np.ndarray, " audit"],
    answers: Answers,
    rng: np.random.Generator,
    *,
    draws: int = DRAWS,
) -> Weights:
    """Weights of audits in each draw: constructions with replacement, then audits within each drawn one."""
    weights = np.zeros((draws, len(constructions)))
    for answer in (True, False):
        own = np.unique(constructions[answers == answer])
        if not len(own):
            continue
        times = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=draws)
        for place, construction in enumerate(own):
            audits = np.flatnonzero(constructions == construction)
            drawn = rng.multinomial(times[:, place] * len(audits), np.full(len(audits), 1 / len(audits)))
            weights[:, audits] = drawn / len(audits)
    return weights


@final
@dataclass(frozen=True)
class Area:
    """An AUC with its interval; NaN where no construction has one of the two answers."""

    auc: float
    low: float
    high: float


@final
@dataclass
class Ranking:
    """AUCs of many tests on one question; tests that were measured in the same audits share their draws."""

    question: Question
    draws: int = DRAWS
    _known: dict[bytes, Weights] = field(default_factory=dict)

    def area(self, rows: pd.DataFrame, test: KnownTest) -> Area:
        """Of the rows of one test."""
        effects = test.effect(rows).to_numpy()
        defined = np.isfinite(effects) & rows[self.question].notna().to_numpy()
        own, effects = rows[defined], effects[defined]
        answers = own[self.question].to_numpy(dtype=bool)
        # A trained model may answer yes with one seed and no with another: then it is two constructions.
        codes, _ = pd.factorize(own["construction"] + np.where(answers, " yes", " no"), sort=True)
        if answers.all() or not answers.any():
            return Area(np.nan, np.nan, np.nan)
        auc = float(weighted_auc(effects, answers, equal_weights(codes))[0])
        drawn = weighted_auc(effects, answers, self._weights(codes, answers))
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return Area(auc, float(low), float(high))

    def _weights(self, codes: np.ndarray, answers: np.ndarray) -> Weights:
        key = codes.tobytes() + answers.tobytes()
        if key not in self._known:
            rng = np.random.default_rng([SEED, QUESTIONS.index(self.question)])
            self._known[key] = resampled(codes, answers, rng, draws=self.draws)
        return self._known[key]


def ranks(areas: Sequence[Area]) -> list[str]:
    """The ranks that each may have: intervals that overlap do not rank one test above another."""
    lows, highs = np.array([area.low for area in areas]), np.array([area.high for area in areas])
    found = []
    for area in areas:
        first = 1 + int((lows > area.high).sum())
        last = int(len(areas) - (highs < area.low).sum())
        found.append(str(first) if first == last else f"{first}-{last}")
    return found


def reference_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The audits of constructions at the reference settings, of all budgets.

    Trained models are left out: what they are labelled by, leave-one-out, is itself one of the tests.
    """
    return rows[at_reference(rows) & ~rows["study"].isin((OTHER_KNOBS, TRAINED))]


def about(rows: pd.DataFrame, test: str) -> pd.DataFrame:
    """Without the constructions that a test is not about."""
    held = {name: is_about(test, name) for name in rows["construction"].unique()}
    return rows[rows["construction"].map(held).astype(bool)]


def is_about(test: str, construction: str) -> bool:
    """Whether a test is held against a construction.

    Words are marked where people see evidence. Plausibility is therefore held only against constructions in
    which the words that contribute are the marked ones.
    """
    if not test.startswith("plausibility/"):
        return True
    made = CONSTRUCTIONS.get(construction)
    return made is not None and made.values in ("graded", "alike", "loud") and made.states != "strongest"


def areas(rows: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """One line per known test with rows: AUC, interval and possible ranks on both questions.

    `audits` is how many there are of the construction with the fewest.
    """
    reference = reference_rows(rows)
    by_test = dict(iter(reference[reference["test"].isin(KNOWN)].groupby("test")))
    rankings = {question: Ranking(question, draws) for question in QUESTIONS}
    lines = []
    for name, test in KNOWN.items():
        own = about(by_test[name], name) if name in by_test else reference[:0]
        own = own[np.isfinite(test.effect(own))]
        if own.empty:
            continue
        line: dict[str, Any] = {
            "test": name,
            "group": test.group,
            "title": test.title,
            "by_definition": test.restates,
        }
        line |= {"constructions": own["construction"].nunique()}
        line |= {"audits": int(own.groupby("construction").size().min())}
        for question, ranking in rankings.items():
            line |= _columns(question, ranking.area(own, test))
        lines.append(line)
    return with_ranks(pd.DataFrame(lines)) if lines else pd.DataFrame()


def with_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """The table of AUCs with the ranks that each test may have on either question."""
    return table.assign(**{f"rank_{question}": _ranked(table, question) for question in QUESTIONS})


def _columns(question: str, area: Area) -> dict[str, float]:
    """Rounded before they are ranked, so that the ranks follow from what is printed."""
    numbers = {"": area.auc, "_low": area.low, "_high": area.high}
    return {f"auc_{question}{end}": round(number, PLACES) for end, number in numbers.items()}


def _ranked(table: pd.DataFrame, question: str) -> pd.Series:
    """Ranks among the tests that have an AUC and do not restate the question."""
    ranked = (table["by_definition"] != question) & table[f"auc_{question}"].notna()
    numbers = table.loc[ranked, [f"auc_{question}{end}" for end in ("", "_low", "_high")]]
    found = ranks([Area(*line) for line in numbers.itertuples(index=False)])
    return pd.Series(found, index=numbers.index, dtype=object).reindex(table.index).fillna("")
