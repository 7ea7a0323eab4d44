"""The two tests of the field that train other models, put to the model of one audit.

Can a BiLSTM answer as the base does and attend elsewhere (the trained adversary of Wiegreffe & Pinter)? Is a
model without context more accurate under the base's weights than under uniform ones (their guided MLP)? The
models that are trained have one size and one training whatever the base is, so that bases can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float

from attentest.corpus.example import Example
from attentest.experiments.contract import Row, Subject
from attentest.experiments.guided.conclude import BASE, UNIFORM
from attentest.experiments.guided.observe import IMITATOR
from attentest.experiments.shared.distance_to_base import Base
from attentest.experiments.trained_adversary.observe import imitating
from attentest.experiments.uniform_baseline.observe import frozen_uniform
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.constructions import Constructed, is_constructed
from attentest.model.networks.attention import LAST_STATE
from attentest.model.networks.decoder import distribution
from attentest.model.reader import readings
from attentest.refusal import Refusal
from attentest.statistics.crossed import intervals_of_means

LAMBDA = 0.001  # of the adversary, in the units of the published code
EPOCHS = 8
JSD, TVD, GAIN = "trained-adversary/jsd", "trained-adversary/tvd", "guided/accuracy-gain"
NULLS = {JSD: math.nan, TVD: math.nan, GAIN: 0.0}

PerText: TypeAlias = Float[np.ndarray, " text"]


def siblings_that_train(config: ModelConfig) -> dict[str, ModelConfig]:
    """The adversary, and the model without context under the base's weights and under uniform ones."""
    _check_weighs_words(config)
    mlp = _small(config, "average")
    return {
        IMITATOR: replace(imitating(_small(config, "bilstm"), LAMBDA), epochs=EPOCHS, patience=EPOCHS),
        BASE: replace(mlp, projection="stored", guide="subject"),
        UNIFORM: frozen_uniform(mlp),
    }


def _small(config: ModelConfig, encoder: str) -> ModelConfig:
    """A small model of the same seed, with every setting written out: siblings are not resolved again."""
    return ModelConfig(
        encoder=encoder,
        decoder=config.decoder,
        seed=config.seed,
        embedding=16,
        hidden=8,
        vectors="random(0.1)",
        epochs=EPOCHS,
        patience=EPOCHS,
        batch_size=16,
        learning_rate=1e-2,
        dropout=0.0,
        clip=0.0,
        halving=False,
    )


def _check_weighs_words(config: ModelConfig) -> None:
    """Only weights that belong to words can be imitated by a BiLSTM, or given to a model without context."""
    foreign = is_constructed(config.encoder) and Constructed.parse(config.encoder).of.foreign
    if foreign or config.encoder.startswith("han-") or config.attention == LAST_STATE:
        raise Refusal(
            "experiment calibration with trains = true",
            got=f"the encoder {config.encoder!r} with the attention {config.attention!r}",
            needs="a model of the grid that gives every word a weight: other models learn from its weights",
            way_out="Leave this model out with `where`, or leave `trains` out.",
        )


def rows_of_training(subject: Subject, examples: Sequence[Example]) -> Iterator[Row]:
    """One row for each of the three numbers: the mean over texts, with its standard error over texts."""
    for name, values in _per_text(subject, examples).items():
        values = values[np.isfinite(values)]
        interval = intervals_of_means([values[:, None]], [np.arange(len(values))])[0]
        yield {
            "id": name,
            "estimate": float(values.mean()) if len(values) else math.nan,
            "error": interval.error,
            "freedom": interval.freedom,
            "null": NULLS[name],
            "n": len(values),
        }


@torch.no_grad()
def _per_text(subject: Subject, examples: Sequence[Example]) -> dict[str, PerText]:
    """Of every text: how far the adversary is from the base, and whether the base's weights help."""
    split = IndexedSplit(examples, subject.vocabulary, subject.labels)
    adversary, guided, uniform = (subject.sibling[name] for name in (IMITATOR, BASE, UNIFORM))
    found: dict[str, list[PerText]] = {name: [] for name in NULLS}
    for rows, reading in readings(subject.model, split):
        base = Base(subject, rows, reading)
        theirs = base.read_by(adversary)
        found[JSD].append(base.jsd(theirs.weights))
        found[TVD].append(base.tvd(adversary, theirs))
        found[GAIN].append(_correct(base, guided) - _correct(base, uniform))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _correct(base: Base, other: Subject) -> PerText:
    """1 for every text whose label the other model predicts, 0 for the rest."""
    reading = base.read_by(other)
    predicted = distribution(other.model.decide(reading).double()).argmax(-1)
    return (predicted == reading.batch.labels).double().cpu().numpy()
