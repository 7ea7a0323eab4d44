"""What an audit asks, each as rows: the studies' own experiments, and three that need no training.

One of the three is what becomes of the output under an attention that knows nothing of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import final

import numpy as np
import torch

from attentest.auditing import means as audit_means
from attentest.auditing.map_rows import NOT_OF_MAPS, map_dispersion, map_importance
from attentest.auditing.means import ABLATED
from attentest.auditing.rankings import agreed, erased, marked
from attentest.corpus.example import UNLABELLED
from attentest.evidence.ablation import moved, moved_by_uniform
from attentest.evidence.importances.sampled import Precision
from attentest.experiments.adversary.observe import Adversary
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.contract import Row, Subject
from attentest.experiments.description import Conclude
from attentest.experiments.dispersion.observe import Dispersion
from attentest.experiments.importance.observe import Importance
from attentest.experiments.information.observe import Information
from attentest.experiments.permutation.observe import Permutation
from attentest.experiments.removal.observe import Removal
from attentest.experiments.shared.answers import answered
from attentest.experiments.shared.common_columns import common_columns
from attentest.foreign.prompt import NEXT_LABELS
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal


def ablated(subject: Subject, twin: Model | None) -> Iterator[Row]:
    """One row a text: how far the output moves under uniform weights, and under an untrained twin's.

    NaN for one unit, which leaves attention no choice, and where there is no twin.
    """
    model = subject.model
    others: Iterable[Reading | None] = repeat(None)
    if twin is not None:
        others = (reading for _, reading in readings(twin, subject.texts))
    for (rows, reading), theirs in zip(readings(model, subject.texts), others, strict=False):
        even = moved_by_uniform(model, reading).change
        frozen = torch.full_like(even, float("nan"))
        if theirs is not None:
            frozen = moved(model, reading, theirs.weights.to(reading.weights)).change
        for place, row in enumerate(common_columns(subject, rows, reading)):
            changes = dict(zip(ABLATED, (float(even[place]), float(frozen[place])), strict=True))
            yield {**row, **changes}


@final
class NothingGiven(Exception):
    """A question that the model allows, if the user gives what it is measured with."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"These are {refusal.got}. {refusal.way_out}")


NO_NULL = (
    "the gradient of the states that a layer weighs has no null here; that of leave-one-out is importance's"
)


@final
@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much is asked: texts, draws of each kind, and the questions that are left out."""

    texts: int
    permutations: int
    draws: int
    searched: int
    steps: int
    precision: Precision
    units: int | None = None  # that are ranked of a longer text of a model made elsewhere; None: all
    without: tuple[str, ...] = ()


BUDGETS = {
    "quick": Budget(
        texts=100,
        permutations=30,
        draws=2,
        searched=20,
        steps=100,
        precision=Precision(error=0.3, first=6, most=32, steps=7, reach=1.0),
        units=48,
        without=("removal", "dispersion", "information"),
    ),
    "standard": Budget(
        texts=500,
        permutations=100,
        draws=5,
        searched=100,
        steps=300,
        precision=Precision(error=0.2, most=128, steps=15),
        without=("information",),
    ),
    "full": Budget(
        texts=1_000_000, permutations=100, draws=10, searched=500, steps=500, precision=Precision()
    ),
}


@final
@dataclass(frozen=True, eq=False)
class Auditing:
    """One model before the questions: itself, its untrained twin where there is one, and the budget."""

    subject: Subject
    twin: Subject | None
    budget: Budget

    @property
    def both(self) -> tuple[Subject, ...]:
        """The model and its control."""
        return (self.subject,) if self.twin is None else (self.subject, self.twin)

    @property
    def foreign(self) -> bool:
        """Whether the model was made elsewhere."""
        return self.subject.model.network is None

    @property
    def of_map(self) -> bool:
        """Whether the attention is a map that the model cannot be given."""
        return self.subject.model.capabilities.answered_by is not None

    def lacks(self, name: str) -> str:
        """Why some measures of a question are empty, where their findings cannot know."""
        if self.of_map:
            return NOT_OF_MAPS.get(name, "")
        return NO_NULL if self.foreign and name == "dispersion" else ""


def _performance(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    examples = audit.subject.texts.examples
    labelled = {row for row, example in enumerate(examples) if example.label != UNLABELLED}
    if audit.subject.labels == NEXT_LABELS:
        raise Refusal(
            "performance",
            got="the task next-token, whose answer is the probability of one token",
            needs="classes that texts belong to",
            way_out="Nothing else that is asked needs them; task='prompt' has its labels for classes.",
        )
    if not labelled:
        lacking = Refusal(
            "performance",
            got="texts without labels",
            needs="the label of each text",
            way_out="Name their column with label='...'; nothing else that is asked needs labels.",
        )
        raise NothingGiven(lacking)
    for rows, reading in readings(audit.subject.model, audit.subject.texts, labelled):
        yield from answered(audit.subject, rows, reading)


def _importance(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    # Under each draw a transformer goes back once, and once more through every shortened text.
    draws = audit.budget.draws * (4 if audit.subject.model.with_heads is audit.subject.model else 1)
    for each in audit.both:
        if audit.of_map:
            yield from map_importance(each)
        else:
            yield from Importance(nulls=draws, shown=0, also="").ask(each, drawing(rng))


def _permutation(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    for each in audit.both:
        yield from Permutation(permutations=audit.budget.permutations).ask(each, drawing(rng))


def _adversary(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    budget = audit.budget
    asked = Adversary(searched=budget.searched, matched=0, programmed=200, steps=budget.steps, shown=0)
    for each in audit.both:
        yield from asked.ask(each, drawing(rng))


def _removal(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    for each in audit.both:
        yield from Removal(orders=audit.budget.draws).ask(each, drawing(rng))


def _dispersion(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    asked = Dispersion(frobenius=0, nulls=4 * audit.budget.draws)
    for each in audit.both:
        yield from map_dispersion(each) if audit.of_map else asked.ask(each, drawing(rng))


def _information(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    for each in audit.both:
        yield from Information().ask(each, drawing(rng))


def _ablation(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    yield from ablated(audit.subject, None if audit.twin is None else audit.twin.model)
    if audit.twin is not None:
        yield from ablated(audit.twin, None)


def _agreement(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    for each in audit.both:
        yield from agreed(each, audit.budget.precision, drawing(rng))


def _erasure(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    for each in audit.both:
        yield from erased(each, audit.budget.draws, drawing(rng))


def _plausibility(audit: Auditing, rng: np.random.Generator) -> Iterator[Row]:
    if not any(example.rationale for example in audit.subject.texts.examples):
        lacking = Refusal(
            "plausibility",
            got="texts without rationales",
            needs="the positions of the words that people marked (Example.rationale)",
            way_out="Name their column, --rationale or read_table(rationale=); the corpus movies has them.",
        )
        raise NothingGiven(lacking)
    for each in audit.both:
        yield from marked(each, rng)


def drawing(rng: np.random.Generator) -> torch.Generator:
    """Draws of its own for each model, as the studies have it."""
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


@final
@dataclass(frozen=True)
class Question:
    """How rows are made, and how they become findings."""

    observe: Callable[[Auditing, np.random.Generator], Iterator[Row]]
    conclude: Conclude
    gives: bool = False  # puts other weights into the model

    def check(self, name: str, audit: Auditing) -> None:
        """Refuse what cannot be asked of this attention."""
        answered_by = audit.subject.model.capabilities.answered_by
        if self.gives and answered_by is not None:
            raise answered_by.refuses(name)


def _studied(name: str) -> Conclude:
    return CONCLUSIONS[name].conclude


QUESTIONS: dict[str, Question] = {
    "performance": Question(_performance, _studied("performance")),
    "importance": Question(_importance, _studied("importance")),
    "agreement": Question(_agreement, audit_means.conclude_agreement),
    "permutation": Question(_permutation, _studied("permutation"), gives=True),
    "ablation": Question(_ablation, audit_means.conclude_ablation, gives=True),
    "erasure": Question(_erasure, audit_means.conclude_erasure),
    "plausibility": Question(_plausibility, audit_means.conclude_plausibility),
    "adversary": Question(_adversary, _studied("adversary"), gives=True),
    "removal": Question(_removal, _studied("removal"), gives=True),
    "dispersion": Question(_dispersion, _studied("dispersion")),
    "information": Question(_information, _studied("information")),
}
