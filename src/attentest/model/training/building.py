"""An untrained model: its shape from the configuration, its numbers from the seed."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from attentest.constructed.model import constructed_model, constructed_network
from attentest.corpus.anonymised import anonymised
from attentest.corpus.example import Corpus, Example
from attentest.corpus.vocabulary import PAD, Vocabulary
from attentest.model.batch import AbstractSplit, IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.constructions import is_constructed
from attentest.model.network import AttentionModel
from attentest.model.networks.log_odds import LOG_ODDS, LogOddsAttention
from attentest.model.networks.projection import LARGEST
from attentest.model.networks.random_weights import RANDOM, drawn_guide
from attentest.model.seam import Model
from attentest.refusal import Refusal

# Streams of a seed: training draws its batches from 2 and its noise from 3.
SHUFFLE_TRAIN, SHUFFLE_DEV = 1, 4


def build(
    config: ModelConfig,
    corpus: Corpus,
    vocabulary: Vocabulary,
    *,
    vectors: np.ndarray | None = None,
    guide: Mapping[str, np.ndarray] | None = None,
    start: Mapping[str, Tensor] | None = None,
) -> Model:
    """An untrained model, or a construction, which has nothing to learn.

    Its parameters depend on the configuration's seed and nothing else.
    """
    if is_constructed(config.encoder):
        return constructed_model(config, vocabulary, corpus.labels)
    return build_network(config, corpus, vocabulary, vectors=vectors, guide=guide, start=start)


def build_network(
    config: ModelConfig,
    corpus: Corpus,
    vocabulary: Vocabulary,
    *,
    vectors: np.ndarray | None = None,
    guide: Mapping[str, np.ndarray] | None = None,
    start: Mapping[str, Tensor] | None = None,
) -> AttentionModel:
    """An untrained network of the papers' grid, or a construction that is one: what can be trained."""
    if is_constructed(config.encoder):
        return constructed_network(config, vocabulary, corpus.labels)
    if config.guide == RANDOM:
        guide = drawn_guide(config, corpus)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = AttentionModel(config, vocabulary, corpus.labels, has_query=corpus.has_query, guide=guide)
        with torch.no_grad():
            if vectors is None:
                nn.init.normal_(model.embedding.weight, std=random_scale(config.vectors))
            else:
                model.embedding.weight.copy_(torch.from_numpy(vectors))
            model.embedding.weight[PAD] = 0.0
            for parameter in _attention(model).parameters():
                parameter.mul_(config.attention_start)
    if config.attention == LOG_ODDS:
        model.attention = LogOddsAttention.fitted(training_split(config, corpus, vocabulary), vocabulary)
    if start is not None:
        model.load_state_dict(_mixed(model.state_dict(), start, config.reset))
    return model


def _attention(model: AttentionModel) -> nn.Module:
    """What scores; an attention without numbers of its own has none that could start elsewhere."""
    return model.attention if model.attention is not None else nn.Identity()


def _mixed(
    own: Mapping[str, Tensor], start: Mapping[str, Tensor], reset: Collection[str]
) -> dict[str, Tensor]:
    """The parameters of another model, but for the parts to be reset."""
    # As with freezing, the encoder of the query is a part of the encoder.
    ours = {*reset, *(["query_encoder"] if "encoder" in reset else [])}
    kept = {name: tensor for name, tensor in own.items() if name.partition(".")[0] in ours}
    taken = {name: tensor for name, tensor in start.items() if name.partition(".")[0] not in ours}
    return {**kept, **taken}


def training_split(
    config: ModelConfig, corpus: Corpus, vocabulary: Vocabulary, numbered: AbstractSplit | None = None
) -> AbstractSplit:
    """The training texts as they are taught: without what is omitted, under gold or shuffled labels.

    `numbered` are the same texts, of another training, with whatever labels.
    """
    split = _relabelled(anonymised(corpus, config.omit).train, corpus, vocabulary, numbered)
    if config.labels in ("shuffled", "shuffled-all"):
        np.random.default_rng([config.seed, SHUFFLE_TRAIN]).shuffle(split.labels)
    return split


def dev_split(
    config: ModelConfig, corpus: Corpus, vocabulary: Vocabulary, numbered: AbstractSplit | None = None
) -> AbstractSplit:
    """The dev texts that choose the epoch: under gold labels, or shuffled where `labels = shuffled-all`.

    Each label occurs as often as before. The order is drawn apart from that of the training labels, so that
    the two shuffles are independent; both are functions of the seed.
    """
    split = _relabelled(anonymised(corpus, config.omit).dev, corpus, vocabulary, numbered)
    if config.labels == "shuffled-all":
        np.random.default_rng([config.seed, SHUFFLE_DEV]).shuffle(split.labels)
    return split


def _relabelled(
    texts: Sequence[Example], corpus: Corpus, vocabulary: Vocabulary, numbered: AbstractSplit | None
) -> AbstractSplit:
    """The texts under their gold labels, in an array of their own."""
    split = IndexedSplit(texts, vocabulary, corpus.labels) if numbered is None else copy.copy(numbered)
    number = {label: place for place, label in enumerate(corpus.labels)}
    split.labels = np.array([number[example.label] for example in texts])
    return split


def random_scale(vectors: str) -> float:
    """The standard deviation in `random(SCALE)`; a larger one would overflow in training."""
    inner = vectors.removeprefix("random(").removesuffix(")")
    try:
        scale = float(inner)
    except ValueError:
        scale = math.nan
    if not 0 <= scale <= LARGEST:
        raise Refusal(
            "vectors",
            got=repr(vectors),
            needs=f"random, random(SCALE) with a scale from 0 to {LARGEST:g}, or the path of a vector file",
            way_out="For example random(0.1).",
        )
    return scale
