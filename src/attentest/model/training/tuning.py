"""Attention may learn as fast as the rest or faster; where a paper does not say which, dev decides.

Meister et al. (2021) let it learn at the same rate or at ten times that, and do not say which where. Each
rate is a model of its own, trained like any other; the choice between them is one more model, equal to the
best. So it is with where attention starts, which matters to an adversary that would else stay at its base.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from attentest.corpus.anonymised import anonymised
from attentest.corpus.example import Corpus
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.losses import IMITATE, Loss
from attentest.model.networks.attention import LAST_STATE
from attentest.model.networks.log_odds import LOG_ODDS
from attentest.model.networks.projection import Projection
from attentest.model.reader import readings
from attentest.model.seam import Network
from attentest.model.training.imitation import Imitation, Said

Merit = tuple[float, ...]  # more is better, from the first number on


def settled(config: ModelConfig) -> ModelConfig:
    """The same model, without a choice where there is nothing to choose: attention that does not learn."""
    fixed = config.attention in (LOG_ODDS, LAST_STATE) or "attention" in config.freeze
    fixed = fixed or Projection.parse(config.projection).name in ("uniform", "stored")
    return _alone(config) if fixed or config.epochs == 0 else config


def candidates(config: ModelConfig) -> list[ModelConfig]:
    """The same model at each of its rates from each of its starts; none where it leaves no choice."""
    if not (config.attention_rates or config.attention_starts):
        return []
    starts = config.attention_starts or (config.attention_start,)
    rates = config.attention_rates or (config.attention_rate,)
    return [
        replace(_alone(config), attention_rate=float(rate), attention_start=float(start))
        for start, rate in itertools.product(starts, rates)
    ]


def named(config: ModelConfig) -> str:
    """A candidate among others."""
    start = "" if config.attention_start == 1.0 else f", start {config.attention_start:g}"
    return f"rate {config.attention_rate:g}{start}"


def _alone(config: ModelConfig) -> ModelConfig:
    return replace(config, attention_rates=(), attention_starts=())


def merit(
    model: Network,
    dev_scores: Mapping[str, float],
    corpus: Corpus,
    base: Mapping[str, Said] | None = None,
) -> Merit:
    """What the choice goes by: dev's score, and of an imitation, which knows no labels, its loss on dev.

    An adversary with the better labels would be the one that moved less. One that is not a number loses.
    """
    loss = Loss.parse(model.config.loss)
    if loss.name == IMITATE and base is not None:
        found: Merit = (-imitation_loss(model, loss.factor, corpus, base),)
    else:
        measures = ("auc", "accuracy") if model.config.decoder == "sigmoid" else ("accuracy",)
        found = tuple(dev_scores[measure] for measure in measures)
    return tuple(-math.inf if math.isnan(number) else number for number in found)


@torch.no_grad()
def imitation_loss(model: Network, factor: float, corpus: Corpus, base: Mapping[str, Said]) -> float:
    """The mean over the texts of dev of what an imitation descends."""
    examples = anonymised(corpus, model.config.omit).dev
    loss = Imitation(factor, base, [example.id for example in examples])
    split = IndexedSplit(examples, model.vocabulary, corpus.labels)
    total = sum(float(loss(reading, model.decide(reading))) for _, reading in readings(model, split))
    return total / len(split)


def best(merits: Sequence[Merit]) -> int:
    """The place of the largest; of equals the first, which is the least departure from one rate for all."""
    return max(range(len(merits)), key=lambda place: (merits[place], -place))
