"""Small corpora and models for tests: sizes from one token up, with and without a query."""

import torch

from attentest.corpus.example import Corpus, Example
from attentest.corpus.vocabulary import Vocabulary
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.networks.encoders import OWN_ROAD_FROM
from attentest.model.protocol import resolved
from attentest.model.training.building import build

WORDS = ("the", "a", "cat", "dog", "sat", "ran", "far", "home", "today", "never")
LENGTHS = (5, 1, 9, 2, 4, 7)


def toy_corpus(*, query=False, labels=("no", "yes"), lengths=LENGTHS, candidates=False):
    """Texts of several lengths; the label goes round, so every one occurs."""

    def example(split, number, length):
        label = labels[number % len(labels)]
        return Example(
            id=f"{split}-{number}",
            tokens=tuple(WORDS[(number * 3 + place) % len(WORDS)] for place in range(length)),
            label=label,
            query=tuple(WORDS[number % 3 : number % 3 + 1 + number % 3]) if query else None,
            candidates=(label, labels[0]) if candidates else None,
            sentences=tuple(range(0, length, 3)),
        )

    splits = {
        s: tuple(example(s, n, length) for n, length in enumerate(lengths)) for s in ("train", "dev", "test")
    }
    return Corpus(name="toy", labels=labels, family="nli" if query else "classification", **splits)


def toy_model(corpus, **settings):
    """An untrained model of small odd sizes; vectors of scale one, so that scores differ clearly."""
    # A BiLSTM wide enough for our own road; everything else small.
    hidden = OWN_ROAD_FROM if settings.get("encoder", "bilstm") == "bilstm" else 10
    config = ModelConfig(
        **{"hidden": hidden, "embedding": 6, "vectors": "random(1.0)", "epochs": 2, **settings}
    )
    full = resolved(config, family=corpus.family, classes=len(corpus.labels), has_query=corpus.has_query)
    return build(full, corpus, Vocabulary.build(corpus.train))


def toy_batch(model, corpus, rows=None):
    split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
    return split.batch(range(len(split)) if rows is None else rows)


def in_double(model):
    return model.to(torch.float64)


def seeded(seed=0):
    """A generator of random numbers that starts at this seed."""
    return torch.Generator().manual_seed(seed)


def read(model, corpus, rows=None):
    with torch.no_grad():
        return model.read(toy_batch(model, corpus, rows))
