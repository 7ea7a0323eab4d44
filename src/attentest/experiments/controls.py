"""The two models that stand beside every trained one: what an experiment shows where nothing was learnt."""

from __future__ import annotations

from dataclasses import replace

from attentest.experiments.contract import Subject
from attentest.model.config import ModelConfig

UNTRAINED, SHUFFLED = "untrained", "shuffled labels"
PATIENCE = 5


def controls(config: ModelConfig) -> dict[str, ModelConfig]:
    """The same model before training, and trained as hard on labels that say nothing.

    On shuffled labels dev accuracy goes up and down by luck, so waiting long for luck would be waste.
    """
    patience = min(config.patience or PATIENCE, PATIENCE)
    return {
        UNTRAINED: replace(config, epochs=0),
        SHUFFLED: replace(config, labels="shuffled", patience=patience),
    }


def beside_controls(subject: Subject) -> tuple[Subject, ...]:
    """The subject, then its controls: every experiment asks all three the same."""
    return subject, subject.sibling[UNTRAINED], subject.sibling[SHUFFLED]
