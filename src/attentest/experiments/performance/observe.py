"""How well does it predict?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.performance import ABOUT
from attentest.model.config import ModelConfig
from attentest.model.networks.decoder import distribution


@final
@dataclass(frozen=True, kw_only=True)
class Performance(AbstractExperiment):
    """Accuracy, F1 and AUC on the test split, from the stored readings alone (JW Table 1)."""

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """None: the null is a constant answer."""
        return {}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text: its label, the predicted one, and all probabilities."""
        labels = subject.labels
        for row in subject.readings.itertuples():
            logits = torch.tensor(np.asarray(row.logits, dtype=np.float64))[None]
            probabilities = distribution(logits)[0].numpy()
            yield {
                "subject": subject.name,
                "id": row.id,
                "label": row.label,
                "gold": labels.index(str(row.label)),
                "predicted": labels[int(probabilities.argmax())],
                "probabilities": probabilities.tolist(),
            }
