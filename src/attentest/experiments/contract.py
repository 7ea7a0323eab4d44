"""What every experiment is, and the subject it is about.

Two of the three verbs are here; the third, `conclude`, is a numpy function of `findings`, so that it can be
done again anywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, final

import numpy as np
import pandas as pd

from attentest.corpus.anonymised import anonymised
from attentest.corpus.example import Corpus, Example
from attentest.corpus.vocabulary import Vocabulary
from attentest.evidence.erasure.known import KnownParts
from attentest.model.batch import AbstractSplit, IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.seam import Model, Network, network_of
from attentest.refusal import Refusal, look_up

Row = dict[str, Any]


def _alone(got: str, needs: str) -> Refusal:
    return Refusal(
        "a model that came with some texts",
        got=got,
        needs=needs,
        way_out="Ask about a model of a study: attentest study.",
    )


@final
class Subject:
    """A trained model with the texts it is asked about, and its siblings.

    `model` loads on first use: an experiment that works on stored readings runs without the weights. A model
    that omits words has a corpus of its own, without them. `outside` are the texts that the experiment asked
    for beyond its corpus. What is `known` of parts of its texts is shared by all who ask. At most so many
    units of a text are `ranked`, where each of them costs another reading; None is all of them.
    """

    def __init__(
        self,
        corpus: Corpus | None,
        config: ModelConfig | None,
        sources: AbstractSources,
        name: str = "trained",
        *,
        texts: AbstractSplit | None = None,
        outside: Sequence[Example] = (),
        known: KnownParts | None = None,
        ranked: int | None = None,
    ) -> None:
        self.name, self._whole, self._config, self._sources = name, corpus, config, sources
        self._texts, self.outside, self.known, self.ranked = texts, outside, known, ranked

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus as the model reads it; refused where the subject is a model with some texts alone."""
        if self._whole is None:
            raise _alone("no corpus", "the train, dev and test splits that the model was trained with")
        return anonymised(self._whole, self.config.omit)

    @property
    def config(self) -> ModelConfig:
        """What the model was trained by."""
        if self._config is not None:
            return self._config
        if self.model.origin is None:
            raise _alone("no configuration", "a model that was trained here")
        return self.model.origin.config

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.model.labels if self._whole is None else self._whole.labels

    @cached_property
    def model(self) -> Model:
        """The model itself."""
        return self._sources.model(self.name)

    @property
    def network(self) -> Network:
        """The model with its parts; refused where it was made elsewhere."""
        return network_of(self.model, "an experiment on the parts of a model")

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that the model knows."""
        origin = self.model.origin
        if origin is None:
            raise _alone("no vocabulary", "a model that was trained here")
        return origin.vocabulary

    @cached_property
    def readings(self) -> pd.DataFrame:
        """The stored readings of the test split: id, split, label, logits, weights."""
        return self._sources.readings(self.name)

    @cached_property
    def texts(self) -> AbstractSplit:
        """The texts that came with the model, or the test split, numbered by the model's vocabulary."""
        if self._texts is not None:
            return self._texts
        return IndexedSplit(self.corpus.test, self.vocabulary, self.labels)

    @cached_property
    def sibling(self) -> Mapping[str, Subject]:
        """The models `siblings` asked for, trained already."""
        configs = self._sources.siblings
        return {name: Subject(self._whole, configs[name], self._sources, name) for name in configs}


class AbstractSources(ABC):
    """Where a subject's parts come from: cells of a store, or objects."""

    siblings: Mapping[str, ModelConfig]

    @abstractmethod
    def model(self, name: str) -> Model:
        """The model of the subject (`trained`) or of a sibling."""

    @abstractmethod
    def readings(self, name: str) -> pd.DataFrame:
        """Its stored readings."""


@final
class InMemory(AbstractSources):
    """Models by name, as objects; `trained` is the subject, the others are its siblings."""

    def __init__(
        self,
        models: Mapping[str, Model],
        siblings: Mapping[str, ModelConfig] | None = None,
        readings: Mapping[str, pd.DataFrame] | None = None,
    ) -> None:
        self.models, self._readings = dict(models), dict(readings or {})
        self.siblings = self._configs() if siblings is None else siblings

    def _configs(self) -> dict[str, ModelConfig]:
        """The siblings' own configurations, of those that were made from one."""
        origins = {name: model.origin for name, model in self.models.items() if name != "trained"}
        return {name: origin.config for name, origin in origins.items() if origin is not None}

    def model(self, name: str) -> Model:
        """The model of that name."""
        return look_up(name, self.models, "model in memory")

    def readings(self, name: str) -> pd.DataFrame:
        """The readings that were given for that model."""
        return look_up(name, self._readings, "stored readings")


@dataclass(frozen=True, kw_only=True)
class AbstractExperiment(ABC):
    """One published experiment with its parameters. `version` changes when its rows would."""

    name: ClassVar[str]
    cite: ClassVar[str]
    version: ClassVar[int]
    reads: ClassVar[bool] = True  # whether it needs the stored readings of the test split
    # Parameters that are younger than the first keys, and the value that changes nothing: then they stay out.
    later: ClassVar[Mapping[str, Any]] = {}

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
