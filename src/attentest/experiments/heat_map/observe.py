"""What do other attentions look like on one text?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from attentest.corpus.example import Example
from attentest.evidence.adversary.search import PublishedSearch
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.permutation import medians, output_changes
from attentest.experiments.adversary import conclude as adversary
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.heat_map import ABOUT
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall


@final
@dataclass(frozen=True, kw_only=True)
class HeatMap(AbstractExperiment):
    """The papers' own pictures on the very texts: the model's attention, the search's, and the furthest one.

    A text that neither the corpus nor its source holds is left out. A review outside IMDB's sample is read
    from the publisher's files while the cell is planned, and is then part of its key.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 2

    texts: str = ""  # as corpus:id, separated by spaces
    permutations: int = 100

    def __post_init__(self) -> None:
        if self.permutations < 1:
            raise Refusal(
                "experiment heat-map",
                got=f"{self.permutations} permutations",
                needs="at least 1",
                way_out="The paper uses 100.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """None: a picture is no measurement."""
        return {}

    def outside(self, corpus: str) -> tuple[str, ...]:
        """The texts of this corpus, wherever they are."""
        named = (text.partition(":") for text in self.texts.split())
        return tuple(name for of, _, name in named if of == corpus)

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text."""
        draw = torch.Generator().manual_seed(int(rng.integers(2**63)))
        held = {example.id: example for example in subject.outside}
        held |= {example.id: example for split in subject.corpus.splits().values() for example in split}
        for name in self.outside(subject.corpus.name):
            if name in held:
                yield self._row(subject, held[name], draw)

    def _row(self, subject: Subject, example: Example, rng: torch.Generator) -> Row:
        model, labels = subject.model, subject.labels
        batch = IndexedSplit([example], subject.vocabulary, labels).batch([0]).to(model.device)
        found = gradients(model, batch)
        reading = found.reading
        own = distribution(model.decide(reading))[0].tolist()
        changes = output_changes(model, reading, self.permutations, rng=rng)
        weights = reading.weights[0].tolist()
        return {
            "subject": subject.name,
            "id": example.id,
            "label": example.label,
            "predicted": labels[int(np.argmax(own))],
            "output": own[1] if len(own) == 2 else max(own),
            "tau_gradient": kendall(weights, found.times_input[0].tolist())[0],
            "median_change": float(medians(changes)[0]),
            **_opponents(model, reading, rng),
            "weights": weights,
            "tokens": list(example.tokens),
            "query": list(example.query or ()),
        }


def _opponents(model: Model, reading: Reading, rng: torch.Generator) -> Row:
    """The search's best attention and the exact optimum, with what they do to the output."""
    tolerance = adversary.MAIN[reading.query is not None]
    searched = PublishedSearch(epsilons=(tolerance,)).run(model, reading, rng=rng)
    row = _opponent("search", model, reading, searched.weights[0], float(searched.best[0, 0]))
    weights, divergence = torch.full_like(reading.weights, torch.nan), torch.nan
    if reading.values is not None and reading.bias is not None:
        these = (reading.weights, reading.values, reading.bias, reading.mask, tolerance)
        best = strongest_adversary(*these, answers=reading.batch.answers)
        weights, divergence = best.weights, float(best.divergence[0])
    return row | _opponent("exact", model, reading, weights, divergence)


def _opponent(name: str, model: Model, reading: Reading, weights: torch.Tensor, jsd: float) -> Row:
    weights = weights.to(reading.weights)
    own, other = (distribution(model.decide(reading, given))[0] for given in (reading.weights, weights))
    change = float(0.5 * (own - other).abs().sum())
    return {f"{name}_jsd": jsd, f"{name}_change": change, f"{name}_weights": weights[0].tolist()}
