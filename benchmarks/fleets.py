"""Many trainings at once on a GPU, beside the same trainings one after another."""

from __future__ import annotations

import torch

from attentest.corpus.example import Corpus
from attentest.corpus.vocabulary import Vocabulary
from attentest.model.building import build
from attentest.model.config import ModelConfig
from attentest.model.fleet import Fleet
from attentest.model.precision import fast_products
from attentest.model.protocol import resolved
from attentest.model.training import Training
from benchmarks.made import Row, made_corpus, seconds

MODELS, ALONE = 48, 3  # of so many trainings the first few are timed alone; the rest is arithmetic


def training(
    corpus: Corpus, vocabulary: Vocabulary, encoder: str, seed: int, beside: Training | None
) -> Training:
    config = resolved(
        ModelConfig(encoder=encoder, epochs=9, seed=seed),
        family="classification",
        classes=2,
        has_query=False,
    )
    return Training(build(config, corpus, vocabulary).to("cuda"), corpus, beside=beside)


def rows() -> list[Row]:
    """Nothing without a GPU: on a CPU arithmetic is what a training costs, and company saves none of it."""
    if not torch.cuda.is_available():
        return []
    made = made_corpus(train=6354)
    corpus = Corpus(**{**vars(made), "train": made.train[:-1]})
    vocabulary = Vocabulary.build(made.train)
    return [epoch(corpus, vocabulary, encoder) for encoder in ("bilstm", "cnn", "average", "bigru")]


def epoch(corpus: Corpus, vocabulary: Vocabulary, encoder: str) -> Row:
    members: list[Training] = []
    for seed in range(MODELS):
        members.append(training(corpus, vocabulary, encoder, seed, members[0] if members else None))
    fleet = Fleet(members)

    def together() -> None:
        with fast_products():
            fleet._run_epoch(lambda step: None)
        torch.cuda.synchronize()

    def alone() -> None:
        for seed in range(ALONE):
            training(corpus, vocabulary, encoder, seed, members[0])._run_epoch()
        torch.cuda.synchronize()

    plain = seconds(alone, 1) * MODELS / ALONE
    return f"an epoch of {MODELS} models on a GPU, {encoder}", plain, seconds(together, 2), "launches"
