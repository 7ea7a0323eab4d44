"""What becomes of the agreement of attention and information in models that were trained otherwise?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from attentest.experiments.contract import Row, Subject
from attentest.experiments.information_ablation import ABOUT
from attentest.experiments.information_ablation.conclude import TRAINED
from attentest.experiments.shared.ablated import (
    at_temperature,
    check_plain,
    fixed_attention,
    fixed_representation,
)
from attentest.experiments.shared.by_rank import AbstractByRank
from attentest.experiments.shared.controls import controls
from attentest.experiments.shared.distance_to_base import Base
from attentest.experiments.trained_adversary.conclude import LAMBDA
from attentest.experiments.trained_adversary.observe import imitating, sweep
from attentest.model.config import ModelConfig
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class InformationAblation(AbstractByRank):
    """Tau of the normal model and of its siblings, each from the same seed (WE-2, WE-3, WE-4).

    A sibling has its representations fixed, or its attention; is an adversary, one for each of `lambdas`
    (none where that is empty); or was trained with Gumbel-softmax at a `temperature`, beside the same at 1
    and the temperature without noise. Noise is off when they are asked (A24).
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    lambdas: str = "5e-4"
    temperature: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        self._strengths()
        if not 0 < self.temperature < float("inf") or self.temperature == 1:
            raise Refusal(
                "experiment information-ablation",
                got=f"the temperature {self.temperature:g}",
                needs="a number above 0 other than 1, which stands beside it anyway",
                way_out="The paper's is 0.8.",
            )

    def _strengths(self) -> list[float]:
        return sweep(self.lambdas) if self.lambdas.split() else []

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """A part fixed, adversaries, other projections, and the controls."""
        check_plain(config, self.name)
        return {
            **fixed_representation(config),
            **fixed_attention(config),
            **{f"{LAMBDA}{strength:g}": imitating(config, strength) for strength in self._strengths()},
            **at_temperature(config, self.temperature),
            **controls(config),
        }

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model: its symbols, its answer, and how far both are from the normal model's.

        `jsd` and `tvd` are of attention and output against the normal model's.
        """
        models = {TRAINED: subject, **subject.sibling}
        answers = _answers(subject, models)
        for name, each in models.items():
            draw = torch.Generator().manual_seed(int(rng.integers(2**63)))
            for row in self.measured(self.read(each), draw, or_none=name != TRAINED):
                yield {**answers[name, row["id"]], **row}


def _answers(subject: Subject, models: dict[str, Subject]) -> dict[tuple[str, str], Row]:
    """What every model answers to every text, and how far that is from the normal model."""
    found = {}
    for base in Base.each(subject):
        for name, other in models.items():
            reading = base.reading if other is subject else base.read_by(other)
            found.update({(name, row["id"]): row for row in base.told(name, other, reading)})
    return found
