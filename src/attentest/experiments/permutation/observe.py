"""Does it matter which token has which weight?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from attentest.evidence.permutation import medians, output_changes
from attentest.experiments.contract import Row, Subject
from attentest.experiments.permutation import ABOUT
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.model.reader import readings
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class Permutation(AbstractBesideControls):
    """The median output change over random permutations of attention (JW-4), beside the controls'."""

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 3

    permutations: int = 100

    def __post_init__(self) -> None:
        if self.permutations < 1:
            raise Refusal(
                "experiment permutation",
                got=f"{self.permutations} permutations",
                needs="at least 1",
                way_out="The paper uses 100.",
            )

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text."""
        for rows, reading in readings(subject.model, subject.texts):
            with torch.no_grad():
                changes = output_changes(subject.model, reading, self.permutations, rng=rng)
            middle = medians(changes)
            middle[(reading.mask.sum(1) < 2).cpu().numpy()] = np.nan  # one token: nothing to permute
            for place, row in enumerate(common_columns(subject, rows, reading)):
                yield {
                    **row,
                    "median_change": float(middle[place]),
                    "mean_change": float(changes[place].mean()),
                }
