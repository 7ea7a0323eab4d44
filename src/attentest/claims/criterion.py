"""What may be asked of an attention that is to explain, and the tests that answer each question.

A criterion asks one of two questions. *Pointer*: does attention point at the words that the output comes
from? *Mechanism*: does the output depend on the weights? Which tests a criterion has was fixed before the
first calibration run. That run showed which of them do not tell models whose answer is yes from models whose
answer is no: these are shown and not judged. The margins of the others come from models whose truth is known
(`calibrated`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

from attentest.claims.verdict import Verdict

JUDGED = (Verdict.SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.UNDECIDED)
VERDICTS = (
    *JUDGED,
    *(Verdict.NOT_MEASURED, Verdict.NOT_APPLICABLE, Verdict.NOT_JUDGED),
)
Question = Literal["pointer", "mechanism"]
QUESTIONS: dict[str, str] = {
    "pointer": "Does attention point at the words that the output comes from?",
    "mechanism": "Does the output depend on the attention weights?",
}
SCOPE = "All verdicts are of this one trained model and texts like these, not of retraining."


@final
@dataclass(frozen=True)
class Asked:
    """One finding that speaks to a criterion. Its effect is `sign * (estimate - null)`."""

    experiment: str
    measure: str
    sign: float = 1.0  # -1 where the finding must lie below its null
    null: float | None = 0.0  # None: the finding's own
    shown: bool = False  # and not judged, whatever its margin

    @property
    def name(self) -> str:
        """As in findings and in the tables of calibration."""
        return f"{self.experiment}/{self.measure}"

    def null_of(self, row: Any) -> float:
        """What the estimate is compared with."""
        return float(row.null) if self.null is None else self.null

    def effect(self, row: Any) -> float:
        """How far the finding lies on the side that supports the criterion."""
        return float(self.sign * (row.estimate - self.null_of(row)))


@final
@dataclass(frozen=True)
class Criterion:
    """What is asked in plain words, which of the two questions that is, and what each answer means."""

    name: str
    question: Question
    asks: str
    says: tuple[str, str]  # if supported, and if not
    tests: Sequence[Asked]

    def meaning(self, verdict: Verdict) -> str:
        """The verdict in words, where there is one."""
        yes, no = self.says
        meanings = {
            Verdict.SUPPORTED: yes,
            Verdict.NOT_SUPPORTED: no,
            Verdict.UNDECIDED: "What was measured does not decide it.",
        }
        return meanings.get(verdict, "")


CRITERIA = (
    Criterion(
        "agrees with importances",
        "pointer",
        "Does attention rank words as other importances do?",
        (
            "Attention ranks words as their importances do.",
            "Attention does not rank words as their importances do.",
        ),
        (
            Asked("importance", "tau-gradient"),
            # Without a word the rest is rescaled by its weight, so that leave-one-out follows any weights.
            # The excess over permuted weights is 0 by arithmetic where all words are equally loud.
            Asked("importance", "tau-gradient-excess", shown=True),
            Asked("importance", "tau-loo", shown=True),
            Asked("importance", "tau-loo-excess", shown=True),
        ),
    ),
    Criterion(
        "necessary",
        "pointer",
        "Does the output need the words that attention points at?",
        (
            "Without the words that attention points at, the output changes.",
            "Without the words that attention points at, the output hardly changes more than without random"
            " words.",
        ),
        (Asked("erasure", "comprehensiveness-excess"),),
    ),
    Criterion(
        "sufficient",
        "pointer",
        "Are the words that attention points at enough for the output?",
        (
            "The words that attention points at are enough for the output.",
            "The words that attention points at are hardly a better ground for the output than random words.",
        ),
        (Asked("erasure", "sufficiency-excess", sign=-1.0),),
    ),
    Criterion(
        "plausible",
        "pointer",
        "Is attention where people marked their reasons?",
        (
            "Attention is where people marked their reasons.",
            "Attention is hardly more where people marked their reasons than random weights are.",
        ),
        (Asked("plausibility", "auprc-excess"),),
    ),
    Criterion(
        "informative",
        "pointer",
        "Do words with more attention tell more about the output?",
        (
            "Words with more attention tell more about the output.",
            "Words with more attention hardly tell more about the output.",
        ),
        # Its tau is over ranks, of which there are few, and random weights reach it as often as weights that
        # point at the right words.
        (Asked("information", "tau", null=None, shown=True),),
    ),
    Criterion(
        "used",
        "mechanism",
        "Does the output change if the weights do?",
        (
            "Other weights over the same words give another output.",
            "Other weights over the same words give nearly the same output.",
        ),
        (Asked("permutation", "median-output-change"), Asked("ablation", "uniform-output-change")),
    ),
    Criterion(
        "unique",
        "mechanism",
        "Would only similar weights give the same output?",
        (
            "Weights that give the same output are similar to these.",
            "Very different weights give the same output: this attention is not the only explanation.",
        ),
        # Of a model that selects among words that are all loud, the excess is 0, as it is where weights are
        # idle.
        (Asked("adversary", "emax-jsd-exact-excess@0.01", sign=-1.0, shown=True),),
    ),
)
