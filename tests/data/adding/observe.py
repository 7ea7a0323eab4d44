"""How long the text is that a model reads, as an experiment that a test adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from attentest.experiments.word_count import ABOUT

from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.model.reader import readings


@final
@dataclass(frozen=True, kw_only=True)
class WordCount(AbstractBesideControls):
    """One row a text, with the number of its units."""

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text."""
        for rows, reading in readings(subject.model, subject.texts):
            counts = reading.mask.sum(1).tolist()
            for row, count in zip(common_columns(subject, rows, reading), counts, strict=True):
                yield {**row, "units": float(count)}
