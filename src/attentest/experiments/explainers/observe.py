"""Do attention and the usual explainers agree, and which of them is faithful or finds what people marked?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from attentest.evidence.concordance import count_on
from attentest.evidence.erasure.parts import units_of_tokens
from attentest.evidence.importances.catalogue import Effort, attention_of, explain
from attentest.evidence.importances.faithfulness import faithfulness, random_scores
from attentest.evidence.importances.names import asked_also
from attentest.evidence.importances.presence import PerUnit
from attentest.experiments.contract import Row, Subject
from attentest.experiments.explainers import ABOUT, ALSO, ATTENTION, OWN, RANDOM, pairs
from attentest.experiments.explainers.conclude import FAITHFUL, PLAUSIBLE
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.experiments.shared.shown import shown
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal
from attentest.statistics.plausibility import plausibility, shuffled_plausibility
from attentest.statistics.rank_agreement import kendalls

Columns = dict[str, np.ndarray]
Said = dict[str, PerUnit]


@final
@dataclass(frozen=True, kw_only=True)
class Explainers(AbstractBesideControls):
    """Attention beside other explainers: agreement, faithfulness (ER) and plausibility, each with its null.

    Agreement is of magnitudes, since attention has no direction. For the other two an explainer that knows
    for which class a unit speaks may say so: what speaks against the predicted class is at the bottom.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1
    later: ClassVar[Mapping[str, Any]] = {"also": ""}

    sample: int = 200  # texts, spread over the split: the Shapley values of one take thousands of readings
    steps: int = 32
    permutations: int = 10
    parts: int = 200
    orders: int = 5
    draws: int = 10
    also: str = " ".join(ALSO)  # further importances of the catalogue

    def __post_init__(self) -> None:
        least = min(self.sample, self.steps, self.parts, self.orders, self.draws)
        if least < 1 or self.permutations < 2 or self.permutations % 2:
            raise Refusal(
                "experiment explainers",
                got=f"{self.permutations} permutations, and {least} as the smallest other number",
                needs="an even number of permutations, at least 2, and at least 1 of everything else",
                way_out="Leave a parameter out to have its default.",
            )
        asked_also(self.also, OWN, "experiment explainers, further importance")

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text of the sample."""
        model = subject.model
        effort = Effort(steps=self.steps, permutations=self.permutations, samples=self.parts)
        names = (*OWN, *asked_also(self.also, OWN, "further importance"))
        for rows, reading in readings(model, subject.texts, shown(subject, self.sample)):
            with torch.no_grad():
                found = explain(model, reading, rng=rng, effort=effort, names=names)
                said = {ATTENTION: attention_of(reading), **found}
                columns = agreement(reading, said) | self._faithful(model, reading, said, rng)
            people = rationales(subject, rows, reading)
            columns |= self._plausible(said, people, rng)
            for place, row in enumerate(common_columns(subject, rows, reading)):
                yield {**row, **{name: column[place].item() for name, column in columns.items()}}

    def _faithful(self, model: Model, reading: Reading, said: Said, rng: torch.Generator) -> Columns:
        """The area over the curve of every ranking, and its mean over random ones."""
        drawn = random_scores(reading.mask, self.orders, rng=rng).to(reading.embeddings)
        found = faithfulness(model, reading, torch.cat([torch.stack([*said.values()], dim=1), drawn], dim=1))
        columns: Columns = {}
        # The paper's formula has a bin of no words; its code, like the corrected mode, has not (A15).
        areas = found.aopc(with_none=self.mode == "as-published")
        for measure, area in zip(FAITHFUL, map(_numpy, areas), strict=True):
            columns |= {f"{measure}_{name}": area[:, place] for place, name in enumerate(said)}
            columns[f"{measure}_{RANDOM}"] = area[:, len(said) :].mean(1)
        return columns

    def _plausible(self, said: Said, people: list[np.ndarray | None], rng: torch.Generator) -> Columns:
        """How well each ranking finds what people marked, and how well it would with its scores shuffled."""
        chance = np.random.default_rng(int(torch.randint(2**31, (), generator=rng)))
        columns = {"marked": np.array([0 if marks is None else marks.sum() for marks in people])}
        for name, values in said.items():
            found = np.full((len(people), 2, len(PLAUSIBLE)), np.nan)
            for place, marks in enumerate(people):
                if marks is not None:
                    scores = _numpy(values)[place, : len(marks)]
                    null = shuffled_plausibility(scores, marks, draws=self.draws, rng=chance)
                    found[place] = plausibility(scores, marks), null
            for number, measure in enumerate(PLAUSIBLE):
                columns[f"{measure}_{name}"] = found[:, 0, number]
                columns[f"null_{measure}_{name}"] = found[:, 1, number]
        return columns


def agreement(reading: Reading, said: Said) -> Columns:
    """Tau-b of every two, of magnitudes."""
    lengths, count = _numpy(reading.mask.sum(1)), count_on(reading.mask.device)
    sizes = {name: np.abs(_numpy(values)) for name, values in said.items()}
    return {
        f"tau_{one}_{other}": kendalls(sizes[one], sizes[other], lengths, count=count)[0]
        for one, other in pairs(said)
    }


def rationales(subject: Subject, rows: np.ndarray, reading: Reading) -> list[np.ndarray | None]:
    """Which units of each text hold a word that people marked; None where nobody marked any."""
    units = _numpy(units_of_tokens(subject.model, reading))
    lengths = _numpy(reading.mask.sum(1))
    found: list[np.ndarray | None] = []
    for place, row in enumerate(rows):
        words = subject.texts.examples[row].rationale
        marks = np.zeros(lengths[place], dtype=bool)
        marks[units[place, list(words or ())]] = True
        found.append(marks if words else None)
    return found


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
