"""Does another seed move attention as far as an adversary does?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from attentest.evidence.permutation import permuted
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.seed_variance import ABOUT
from attentest.experiments.shared.controls import controls
from attentest.experiments.shared.distance_to_base import NAN, Base, other_seeds
from attentest.experiments.shared.shown import places, shown
from attentest.experiments.trained_adversary.conclude import SEED
from attentest.model.config import ModelConfig
from attentest.model.divergence import attainable
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class SeedVariance(AbstractExperiment):
    """The attention of other seeds beside the base's (WP-2), and the exact adversary beside both.

    In either mode every model is chosen on dev: the published code chose it on the test split (A16), which
    is not copied. Of several classes, where an adversary takes linear programmes, `programmed` texts get one.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    others: int = 8
    nulls: int = 20
    programmed: int = 200

    def __post_init__(self) -> None:
        if self.others < 1 or self.nulls < 1 or self.programmed < 0:
            raise Refusal(
                "experiment seed-variance",
                got=f"{self.others} other seeds, {self.nulls} draws of the null,"
                f" {self.programmed} texts to solve",
                needs="at least 1 other seed and 1 draw, and 0 texts or more",
                way_out="The paper has 8 other seeds.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The other seeds, and the controls: how far attention is that never learnt, or learnt nothing."""
        return {**other_seeds(config, self.others), **controls(config)}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model.

        `jsd` and `tvd` are of a model's attention and output against the base's. The row of the base itself,
        `trained`, has their median and mean over the other seeds. It alone has `exact`, the jsd of the
        strongest adversary within `epsilon`; `attainable`, that of the furthest attention there is; and
        `permuted`, the mean of the base's own weights in random orders.
        """
        draw = torch.Generator().manual_seed(int(rng.integers(2**63)))
        solved = shown(subject, self.programmed)
        for base in Base.each(subject):
            others = {
                name: base.told(name, other, base.read_by(other)) for name, other in subject.sibling.items()
            }
            seeds = [rows for name, rows in others.items() if name.startswith(SEED)]
            for row, columns in zip(_own(base, seeds), self._alone(base, solved, draw), strict=True):
                yield {**row, **columns}
            for rows in others.values():
                yield from ({**row, **dict.fromkeys(ALONE, NAN)} for row in rows)

    def _alone(self, base: Base, solved: set[int], rng: torch.Generator) -> Iterator[Row]:
        reading = base.reading
        exact = np.full(len(base.rows), NAN)
        there = torch.arange(len(exact)) if base.solvable else places(base.rows, solved)
        if len(there):
            part = base.only(there)
            exact[there.numpy()] = part.jsd(part.strongest())
        furthest = attainable(reading.weights.double(), reading.mask)
        furthest = furthest.masked_fill(reading.mask.sum(1) < 2, NAN)  # as every divergence of one token
        shuffled = base.jsd(permuted(reading.weights, reading.mask, self.nulls, rng=rng)).mean(1)
        columns = (exact.tolist(), furthest.tolist(), shuffled.tolist())
        for optimum, most, null in zip(*columns, strict=True):
            yield {"exact": optimum, "epsilon": base.epsilon, "attainable": most, "permuted": null}


ALONE = ("exact", "epsilon", "attainable", "permuted")


def _own(base: Base, seeds: list[list[Row]]) -> Iterator[Row]:
    own = base.told("trained", base.subject, base.reading)
    for row, of_seeds in zip(own, zip(*seeds, strict=True), strict=True):
        yield {
            **row,
            "jsd": float(np.median([other["jsd"] for other in of_seeds])),
            "tvd": float(np.mean([other["tvd"] for other in of_seeds])),
        }
