"""What every benchmark shares: made texts, a clock, and the shape of a row.

Data are made here, so that anyone gets the same work: words have Zipf's frequencies, texts the sizes of SST
and of IMDB's shorter reviews after the papers' preparation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attentest.corpus.example import Corpus, Example
from attentest.corpus.vocabulary import Vocabulary
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.network import AttentionModel
from attentest.model.protocol import resolved
from attentest.model.reader import readings
from attentest.model.seam import Reading
from attentest.model.training.building import build

Row = tuple[str, float, float, str]  # what, seconds of the plain way, of ours, and what bounds ours


def line(row: Row) -> str:
    """A row of a table, with the ratio."""
    name, plain, ours, bound = row
    return f"| {name} | {plain:.4g} s | {ours:.4g} s | {plain / ours:.1f}x | {bound} |"


class Size(NamedTuple):
    """Texts of a test split: how many, the lengths they are spread over, and which share is run plainly.

    The plain way of long texts takes many minutes: some of them are run, and the time scaled up.
    """

    texts: int
    shortest: int
    longest: int
    share: int

    @property
    def name(self) -> str:
        return f"{self.texts:,} texts of {round((self.shortest + self.longest) / 2)} tokens"


SHORT, LONG = Size(1725, 6, 30, 1), Size(498, 58, 298, 16)


def made_corpus(size: Size = SHORT, train: int = 0, words: int = 14_000) -> Corpus:
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, words + 1)
    chance /= chance.sum()

    def split(name: str, count: int) -> tuple[Example, ...]:
        lengths = rng.integers(size.shortest, size.longest + 1, count)
        drawn = np.split(rng.choice(words, lengths.sum(), p=chance), np.cumsum(lengths)[:-1])
        return tuple(
            Example(id=f"{name}-{n}", tokens=tuple(f"w{w}" for w in text), label=("no", "yes")[n % 2])
            for n, text in enumerate(drawn)
        )

    # Every word occurs, so that the table has its full height.
    seen = Example(id="all", tokens=tuple(f"w{w}" for w in range(words)), label="no")
    return Corpus(
        name="made",
        labels=("no", "yes"),
        train=(*(split("train", train) if train else ()), seen),
        dev=split("dev", 822),
        test=split("test", size.texts),
    )


class Bench(NamedTuple):
    """An untrained model of the papers' sizes and the texts it is asked about."""

    model: AttentionModel
    split: IndexedSplit
    read: list[Reading]


def bench(size: Size, encoder: str = "bilstm", **settings: str) -> Bench:
    corpus = made_corpus(size)
    vocabulary = Vocabulary.build(corpus.train)
    config = ModelConfig(encoder=encoder, **settings)  # type: ignore[arg-type]
    full = resolved(config, family="classification", classes=2, has_query=False)
    model = build(full, corpus, vocabulary)
    split = IndexedSplit(corpus.test, vocabulary, corpus.labels)
    return Bench(model, split, [reading for _, reading in readings(model, split)])


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The best of some runs: on a shared machine the least disturbed one says most about the code."""
    best = float("inf")
    for _ in range(repeat):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best
