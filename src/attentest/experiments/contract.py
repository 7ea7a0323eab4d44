"""What every experiment is, and the subject it is about.

Two of the three verbs are here; the third, `conclude`, is a numpy function of `findings`, so that it can be
done again anywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from attentest.corpus.anonymised import anonymised
from attentest.corpus.example import Corpus, Example
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.seam import AttentionModel

Row = dict[str, Any]


class Subject:
    """A trained model with the texts it is asked about, and its siblings.

    `model` loads on first use: an experiment that works on stored readings runs without the weights. A model
    that omits words has a corpus of its own, without them. `outside` are the texts that the experiment asked
    for beyond its corpus.
    """

    def __init__(
        self,
        corpus: Corpus,
        config: ModelConfig,
        sources: Sources,
        name: str = "trained",
        *,
        outside: Sequence[Example] = (),
    ) -> None:
        self.corpus, self.config, self.name = anonymised(corpus, config.omit), config, name
        self.outside = outside
        self._whole, self._sources = corpus, sources

    @cached_property
    def model(self) -> AttentionModel:
        """The model itself."""
        return self._sources.model(self.name)

    @cached_property
    def readings(self) -> pd.DataFrame:
        """The stored readings of the test split: id, split, label, logits, weights."""
        return self._sources.readings(self.name)

    @cached_property
    def texts(self) -> IndexedSplit:
        """The test split, numbered by the model's vocabulary."""
        return IndexedSplit(self.corpus.test, self.model.vocabulary, self.corpus.labels)

    @cached_property
    def sibling(self) -> Mapping[str, Subject]:
        """The models `siblings` asked for, trained already."""
        configs = self._sources.siblings
        return {name: Subject(self._whole, configs[name], self._sources, name) for name in configs}


class Sources(ABC):
    """Where a subject's parts come from; the bench gives cells of the store, a test gives objects."""

    siblings: Mapping[str, ModelConfig]

    @abstractmethod
    def model(self, name: str) -> AttentionModel:
        """The model of the subject (`trained`) or of a sibling."""

    @abstractmethod
    def readings(self, name: str) -> pd.DataFrame:
        """Its stored readings."""


@dataclass(frozen=True, kw_only=True)
class AbstractExperiment(ABC):
    """One published experiment with its parameters. `version` changes when its rows would."""

    name: ClassVar[str]
    cite: ClassVar[str]
    version: ClassVar[int]
    reads: ClassVar[bool] = True  # whether it needs the stored readings of the test split
    # Parameters that are younger than the first keys: at their defaults, which change nothing, they stay out.
    later: ClassVar[frozenset[str]] = frozenset()

    mode: Literal["corrected", "as-published"] = "corrected"

    @abstractmethod
    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The other models it needs, as configurations; pure, called while planning."""

    def outside(self, corpus: str) -> tuple[str, ...]:
        """Ids of texts that it also reads where this corpus does not hold them; pure, called while planning.

        Those that the corpus's source has are found while planning and are part of the cell's key.
        """
        return ()

    @abstractmethod
    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """Run the models and yield rows; nothing trains here."""
