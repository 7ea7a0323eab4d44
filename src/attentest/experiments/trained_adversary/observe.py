"""Can a whole model be trained to answer the same while it attends elsewhere?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch

from attentest.evidence.adversary.search import PublishedSearch
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.shared.controls import controls
from attentest.experiments.shared.distance_to_base import Base, other_seeds
from attentest.experiments.shared.numbered import number_in
from attentest.experiments.shared.shown import places, shown
from attentest.experiments.trained_adversary import ABOUT
from attentest.experiments.trained_adversary.conclude import EXACT, LAMBDA, SEARCH
from attentest.experiments.uniform_baseline.observe import UNIFORM, frozen_uniform
from attentest.model.config import ModelConfig
from attentest.refusal import Refusal

EPOCHS, PATIENCE = 80, 10  # of the published code, which keeps the epoch of the lowest training loss


@final
@dataclass(frozen=True, kw_only=True)
class TrainedAdversary(AbstractExperiment):
    """Adversaries with parameters of their own, one for each lambda (WP-4), among points to compare.

    On the same two axes lie other seeds, uniform attention, the controls, and the per-text adversaries of
    Jain & Wallace: the exact one for every text (of several classes, for `programmed` texts) and the search
    for `searched`. Models are chosen without the test split in either mode (A16); `as-published` only gives
    the search its published pair term (A3). The halved distance of the published code (A6) is in the loss,
    where it belongs to the meaning of lambda; what is observed is the true one.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    lambdas: str = "0 1e-4 2e-4 5e-4 5.25e-4 8e-4 1e-3 2e-3 5e-3 1e-2"
    others: int = 8
    searched: int = 200
    programmed: int = 200
    candidates: int = 5
    steps: int = 500

    def __post_init__(self) -> None:
        sweep(self.lambdas)
        PublishedSearch(candidates=self.candidates, steps=self.steps)
        if self.others < 1 or min(self.searched, self.programmed) < 0:
            raise Refusal(
                "experiment trained-adversary",
                got=f"{self.others} other seeds, {self.searched} texts to search, {self.programmed} to solve",
                needs="at least 1 other seed, and 0 texts or more",
                way_out="Leave them out for the defaults.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The adversaries, the other seeds, uniform attention and the controls."""
        return {
            **{f"{LAMBDA}{strength:g}": imitating(config, strength) for strength in sweep(self.lambdas)},
            **other_seeds(config, self.others),
            UNIFORM: frozen_uniform(config),
            **controls(config),
        }

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and point.

        `subject` is `trained` (the base), `lambda X`, `seed N`, `uniform`, a control, `exact` or `search`;
        `lambda` its number, NaN for others; `jsd` and `tvd` are of attention and output against the base's.
        """
        draw = torch.Generator().manual_seed(int(rng.integers(2**63)))
        searched, solved = (shown(subject, count) for count in (self.searched, self.programmed))
        for base in Base.each(subject):
            yield from _numbered("trained", base.told("trained", subject, base.reading))
            for name, other in subject.sibling.items():
                yield from _numbered(name, base.told(name, other, base.read_by(other)))
            yield from _numbered(EXACT, _exact(base, solved))
            yield from _numbered(SEARCH, self._search(base, searched, draw))

    @torch.no_grad()
    def _search(self, base: Base, wanted: set[int], rng: torch.Generator) -> list[Row]:
        """The best step of the published search, for the texts it is run on."""
        there = places(base.rows, wanted)
        if not len(there):
            return []
        part = base.only(there)
        pair = "distinct" if self.mode == "corrected" else "as-published"
        settings = {"candidates": self.candidates, "steps": self.steps}
        search = PublishedSearch(epsilons=(base.epsilon,), pair=pair, **settings)
        found = search.run(base.subject.model, part.reading, rng=rng).weights[0]
        return part.told(SEARCH, base.subject, part.under(found))


def _exact(base: Base, wanted: set[int]) -> list[Row]:
    """The strongest adversary where it is known."""
    if base.reading.values is None:
        return []
    there = torch.arange(len(base.rows)) if base.solvable else places(base.rows, wanted)
    if not len(there):
        return []
    part = base.only(there)
    return part.told(EXACT, base.subject, part.under(part.strongest()))


def _numbered(name: str, rows: list[Row]) -> Iterator[Row]:
    yield from ({**row, "lambda": number_in(name, LAMBDA)} for row in rows)


def imitating(config: ModelConfig, strength: float) -> ModelConfig:
    """The same model, trained from scratch to answer as the subject and attend elsewhere.

    `strength` is lambda in the published code's units, where the distance of outputs is halved (A31).
    """
    loss = f"imitate(subject, {strength:g})"
    return replace(config, loss=loss, guide=None, start_from=None, epochs=EPOCHS, patience=PATIENCE)


def sweep(written: str) -> list[float]:
    """The lambdas of a sweep, in the order written; what is no such list is refused."""
    try:
        found = [float(word) for word in written.split()]
    except ValueError:
        found = [math.nan]
    alike = len({f"{number:g}" for number in found}) < len(found)
    if not found or alike or not all(0 <= number < math.inf for number in found):
        raise Refusal(
            "experiment trained-adversary, parameter 'lambdas'",
            got=repr(written),
            needs="different numbers of at least 0, separated by spaces",
            way_out='Write for example "0 1e-4 1e-3".',
        )
    return found
