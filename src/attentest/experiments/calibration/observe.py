"""One audit of a model whose truth is known: every finding of it, beside the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from attentest.auditing.questions import QUESTIONS
from attentest.auditing.run import audited, check_budget
from attentest.corpus.example import Example
from attentest.experiments.calibration import ABOUT, NUMBERS
from attentest.experiments.calibration.trained import rows_of_training, siblings_that_train
from attentest.experiments.calibration.truth import truth_of
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.model.config import ModelConfig
from attentest.refusal import Refusal, look_up


@final
@dataclass(frozen=True, kw_only=True)
class Calibration(AbstractExperiment):
    """An audit of `texts` texts of the test split, drawn by the seed, with an audit's budget.

    One row per finding over all texts: `estimate`, its standard `error` and degrees of `freedom`, its `null`
    and `n`; and in every row the truth, `points` and `depends`. `questions` names some of the audit's
    questions, separated by blanks; empty means all that the budget has. Without `searches` adversaries are
    exact or not there. With `trains` there are three rows more, of tests that train other models
    (`calibration.trained`).
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 2
    reads: ClassVar[bool] = False
    later: ClassVar[Mapping[str, Any]] = {"trains": False}

    texts: int = 200
    budget: str = "standard"
    questions: str = ""
    searches: bool = True
    trains: bool = False

    def __post_init__(self) -> None:
        check_budget(self.budget)
        for name in self.questions.split():
            look_up(name, QUESTIONS, "question of an audit")
        if self.texts < 2:
            raise Refusal(
                "experiment calibration",
                got=f"{self.texts} texts",
                needs="at least 2",
                way_out="200 are the default.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """None unless it `trains`: an audit makes its own untrained twin where there can be one."""
        return siblings_that_train(config) if self.trains else {}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row per finding of the audit."""
        examples = self._drawn(subject, rng)
        truth = truth_of(subject.model, examples)  # refused before the audit, which takes longer
        for row in self._tested(subject, examples, int(rng.integers(2**31))):
            yield {"subject": subject.name, **row, "points": truth.points, "depends": truth.depends}

    def _tested(self, subject: Subject, examples: Sequence[Example], seed: int) -> Iterator[Row]:
        asked = tuple(self.questions.split()) or tuple(QUESTIONS)
        found = audited(
            subject.model, examples, self.budget, questions=asked, searches=self.searches, seed=seed
        )
        for finding in found.findings:
            if finding.group == "overall":
                name = f"{finding.experiment}/{finding.measure}"
                yield {"id": name, **{column: getattr(finding, column) for column in NUMBERS}}
        if self.trains:
            yield from rows_of_training(subject, examples)

    def _drawn(self, subject: Subject, rng: np.random.Generator) -> Sequence[Example]:
        there = subject.corpus.test
        if len(there) < self.texts:
            raise Refusal(
                "experiment calibration",
                got=f"{self.texts} texts of a test split of {len(there)}",
                needs="as many texts as are asked about",
                way_out="Ask for fewer, or name the corpus planted-reviews(test=...) with more.",
            )
        return [there[place] for place in np.sort(rng.choice(len(there), self.texts, replace=False))]
