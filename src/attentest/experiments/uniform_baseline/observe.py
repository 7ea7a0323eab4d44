"""Does the task need attention at all?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.shared.answers import answered
from attentest.experiments.shared.controls import controls
from attentest.experiments.uniform_baseline import ABOUT
from attentest.model.config import ModelConfig
from attentest.model.reader import readings

UNIFORM = "uniform"


@final
@dataclass(frozen=True, kw_only=True)
class UniformBaseline(AbstractExperiment):
    """The same model trained and tested with all weights alike (WP-1), beside the controls.

    Models are chosen on dev in either mode: the published code chose them on the test split (A16), and a
    score that was chosen on the texts it is reported of is not one to compare.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The model whose attention is frozen to 1/T, and the controls."""
        return {UNIFORM: frozen_uniform(config), **controls(config)}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model: subject (trained, uniform or a control), answer and probabilities."""
        for each in (subject, *subject.sibling.values()):
            for rows, reading in readings(each.model, each.texts):
                yield from answered(each, rows, reading)


def frozen_uniform(config: ModelConfig) -> ModelConfig:
    """The same model with uniform attention; what belonged to its own attention does not fit."""
    return replace(config, projection="uniform", loss="task", guide=None, start_from=None)
