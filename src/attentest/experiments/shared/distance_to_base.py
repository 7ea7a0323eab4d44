"""How far another attention lies from the base model's, and how far its answer: the axes of WP-2 and WP-4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.experiments.adversary.conclude import MAIN
from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.answers import answered
from attentest.experiments.trained_adversary.conclude import SEED
from attentest.model.config import ModelConfig
from attentest.model.divergence import jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.reader import readings
from attentest.model.seam import Reading
from attentest.model.subset import selected

NAN = float("nan")
PerText: TypeAlias = Float[np.ndarray, " text"]
Divergences: TypeAlias = Float[np.ndarray, "text *variant"]


@final
@dataclass(frozen=True, eq=False)
class Base:
    """Some texts as the base model reads them; everything else is measured from here."""

    subject: Subject
    rows: np.ndarray
    reading: Reading

    @classmethod
    def each(cls, subject: Subject) -> Iterator[Base]:
        """The whole test split, batch by batch."""
        for rows, reading in readings(subject.model, subject.texts):
            yield cls(subject, rows, reading)

    def only(self, places: Tensor) -> Base:
        """Some of these texts."""
        part = selected(self.reading, places.to(self.reading.mask.device))
        return Base(self.subject, self.rows[places.numpy()], part)

    @torch.no_grad()
    def read_by(self, other: Subject) -> Reading:
        """The same texts, as another model reads them."""
        return other.model.read_distinct(self.reading.batch)

    def under(self, weights: Float[Tensor, "text unit"]) -> Reading:
        """The same reading, as if these had been the base model's weights."""
        return replace(self.reading, weights=weights.to(self.reading.weights))

    @cached_property
    def answers(self) -> list[Row]:
        """The base model's own rows."""
        return answered(self.subject, self.rows, self.reading)

    @property
    def epsilon(self) -> float:
        """The change of output that an adversary is allowed: more where there is a query (A2)."""
        return MAIN[self.reading.query is not None]

    @torch.no_grad()
    def jsd(self, weights: Float[Tensor, "text *variant unit"]) -> Divergences:
        """Of each text, between these weights and the base's; one token leaves no choice, hence NaN."""
        own = self.reading.weights.double()
        own = own[:, None] if weights.ndim == 3 else own
        apart = jensen_shannon(weights.double(), own).cpu().numpy()
        apart[(self.reading.mask.sum(1) < 2).cpu().numpy()] = NAN
        return apart

    @torch.no_grad()
    def tvd(self, other: Subject, reading: Reading) -> PerText:
        """Of each text, between the other's answer and the base's: |y1 - y2| of two classes."""
        own, theirs = (
            distribution(model.decide(read).double())
            for model, read in ((self.subject.model, self.reading), (other.model, reading))
        )
        return total_variation(theirs, own).cpu().numpy()

    def told(self, name: str, other: Subject, reading: Reading) -> list[Row]:
        """A row a text of what the other answers, under a name of its own, and how far that is from here."""
        columns = zip(
            answered(other, self.rows, reading),
            self.answers,
            self.jsd(reading.weights).tolist(),
            self.tvd(other, reading).tolist(),
            strict=True,
        )
        return [
            {
                **row,
                "subject": name,
                "base_predicted": own["predicted"],
                "base_max_attention": own["max_attention"],
                "jsd": jsd,
                "tvd": tvd,
            }
            for row, own, jsd, tvd in columns
        ]

    @torch.no_grad()
    def strongest(self) -> Float[Tensor, "text unit"]:
        """The weights furthest from the base's at its own answer; NaN where the decision is not affine."""
        reading = self.reading
        if reading.values is None or reading.bias is None:
            return torch.full_like(reading.weights, NAN)
        found = strongest_adversary(
            reading.weights,
            reading.values,
            reading.bias,
            reading.mask,
            self.epsilon,
            answers=reading.batch.answers,
        )
        return found.weights

    @property
    def solvable(self) -> bool:
        """Whether the strongest adversary is enumerated; several classes take linear programmes."""
        return self.reading.values is not None and self.reading.values.shape[2] <= 2


def other_seeds(config: ModelConfig, count: int) -> dict[str, ModelConfig]:
    """The same model from the first seeds that are not its own, so that the bases of a study share them."""
    seeds = [seed for seed in range(count + 1) if seed != config.seed][:count]
    return {f"{SEED}{seed}": replace(config, seed=seed) for seed in seeds}
