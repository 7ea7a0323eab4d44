"""Does it matter which token has which weight?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch

from attentest.evidence.permutation import output_changes
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.model.config import ModelConfig
from attentest.model.decoder import distribution
from attentest.model.reader import readings
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class Permutation(AbstractExperiment):
    """The median output change over random permutations of attention (JW-4), beside an untrained model's."""

    name: ClassVar[str] = "permutation"
    cite: ClassVar[str] = "jain2019attention"
    version: ClassVar[int] = 1

    permutations: int = 100

    def __post_init__(self) -> None:
        if self.permutations < 1:
            raise Refusal(
                "experiment permutation",
                got=f"{self.permutations} permutations",
                needs="at least 1",
                way_out="The paper uses 100.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The same model without training: what the geometry alone would show."""
        return {"untrained": replace(config, epochs=0)}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model."""
        for each in (subject, *subject.sibling.values()):
            yield from self._observe(each, torch.Generator().manual_seed(int(rng.integers(2**63))))

    def _observe(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        labels, examples = subject.corpus.labels, subject.texts.examples
        for rows, reading in readings(subject.model, subject.texts):
            changes = output_changes(subject.model, reading, self.permutations, rng=rng)
            # The median of an even number of draws is the mean of the middle two, as numpy has it.
            medians = changes.to(torch.float64).quantile(0.5, dim=1)
            predicted = distribution(subject.model.decide(reading)).argmax(-1)
            alone = reading.mask.sum(1) < 2
            medians = medians.masked_fill(alone.to(medians.device), float("nan"))
            for place, row in enumerate(rows):
                yield {
                    "subject": subject.name,
                    "id": examples[row].id,
                    "label": examples[row].label,
                    "predicted": labels[int(predicted[place])],
                    "length": len(examples[row].tokens),
                    "max_attention": float(reading.weights[place].max()),
                    "median_change": float(medians[place]),
                    "mean_change": float(changes[place].mean()),
                }
