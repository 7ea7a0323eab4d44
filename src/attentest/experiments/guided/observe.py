"""Are a model's weights good for anything outside the model?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.guided import ABOUT
from attentest.experiments.guided.conclude import GUIDED_BY
from attentest.experiments.shared.answers import answered
from attentest.experiments.shared.controls import SHUFFLED, UNTRAINED, controls
from attentest.experiments.trained_adversary.observe import imitating
from attentest.experiments.uniform_baseline.observe import frozen_uniform
from attentest.model.config import ModelConfig
from attentest.model.reader import readings
from attentest.refusal import Refusal

IMITATOR = "trained adversary"


@final
@dataclass(frozen=True, kw_only=True)
class Guided(AbstractExperiment):
    """A token-wise MLP under the weights of another model (WP-3): which weights say most without context?

    Guides are uniform weights, the MLP's own attention (the only one it learns), the base model's weights,
    those of a trained adversary, and, as the null, those of the controls. Weights are matched by text. The
    models are chosen on dev in either mode, which the published code did on the test split (A16).
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    adversary: float = 0.001  # the adversary's lambda, in the units of the published code

    def __post_init__(self) -> None:
        if not 0 <= self.adversary < float("inf"):
            raise Refusal(
                "experiment guided",
                got=f"an adversary's lambda of {self.adversary}",
                needs="a number, 0 or more",
                way_out="The paper uses 0.001.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The models whose weights are borrowed, then the MLPs under them."""
        mlp = replace(config, encoder="average", loss="task", guide=None, start_from=None)
        stored = replace(mlp, projection="stored")
        guides = {
            "uniform": frozen_uniform(mlp),
            "own": mlp,
            "base": replace(stored, guide="subject"),
            "adversary": replace(stored, guide=IMITATOR),
            **{name: replace(stored, guide=name) for name in (UNTRAINED, SHUFFLED)},
        }
        return {
            **controls(config),
            IMITATOR: imitating(config, self.adversary),
            **{GUIDED_BY + name: guided for name, guided in guides.items()},
        }

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model: the base (`trained`), the adversary, and each MLP, with its answer."""
        mlps = [model for name, model in subject.sibling.items() if name.startswith(GUIDED_BY)]
        for each in (subject, subject.sibling[IMITATOR], *mlps):
            for rows, reading in readings(each.model, each.texts):
                yield from answered(each, rows, reading)
