"""The two models that stand beside every trained one: what an experiment shows where nothing was learnt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.model.config import ModelConfig

UNTRAINED, SHUFFLED = "untrained", "shuffled labels"
PATIENCE = 5


def controls(config: ModelConfig) -> dict[str, ModelConfig]:
    """The same model before training, and trained as hard on labels that say nothing.

    The labels of dev are shuffled, too: true ones would choose the epoch that happens to suit the task. On
    shuffled labels dev accuracy goes up and down by luck, so waiting long for luck would be waste.
    """
    patience = min(config.patience or PATIENCE, PATIENCE)
    return {
        UNTRAINED: replace(config, epochs=0),
        SHUFFLED: replace(config, labels="shuffled-all", patience=patience),
    }


def beside_controls(subject: Subject) -> tuple[Subject, ...]:
    """The subject, then its controls: every experiment asks all three the same."""
    return subject, subject.sibling[UNTRAINED], subject.sibling[SHUFFLED]


@dataclass(frozen=True, kw_only=True)
class AbstractBesideControls(AbstractExperiment):
    """An experiment that asks a subject and its controls the same, each with draws of its own."""

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The controls: what the question would show where nothing was learnt."""
        return controls(config)

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model."""
        for each in beside_controls(subject):
            yield from self.ask(each, torch.Generator().manual_seed(int(rng.integers(2**63))))

    @abstractmethod
    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """The rows of one of them."""
