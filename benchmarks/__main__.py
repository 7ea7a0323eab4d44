"""`make bench`: every fast road beside the straightforward one, in one run; rewrites docs/benchmarks.md."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import datetime
import importlib.util
import platform
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from attentest.corpus.example import Corpus, Example
from attentest.corpus.vocabulary import Vocabulary
from attentest.corpus.words import tokenise
from attentest.evidence.permutation import medians, output_changes
from attentest.model.batch import buckets
from attentest.model.config import ModelConfig
from attentest.model.protocol import resolved
from attentest.model.training.building import build
from attentest.model.training.loop import Training
from attentest.model.training.optimiser import RowAdam
from attentest.statistics.interval import interval_of_statistic, weighted_mean
from benchmarks import (
    adversaries,
    audits,
    communication,
    erasure,
    explainers,
    gallery,
    gradients,
    hugging_face,
    influence,
    information,
    large_report,
    large_store,
    live,
    memory,
    nulls,
    removal,
    reports,
    scaling,
    statistics,
)
from benchmarks.made import LONG, SHORT, Row, Size, bench, line, made_corpus, seconds
from benchmarks.plain import PlainHAN, PlainModel, plain_epoch, plain_han_epoch, plain_permutations

OUT = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def training_epoch(corpus: Corpus, vocabulary: Vocabulary, encoder: str, bound: str) -> Row:
    config = resolved(
        ModelConfig(encoder=encoder, epochs=3), family="classification", classes=2, has_query=False
    )
    short = Corpus(**{**vars(corpus), "train": corpus.train[:-1]})
    training = Training(build(config, short, vocabulary), short)

    model = PlainModel(len(vocabulary), 300, 128, encoder)
    adam = torch.optim.Adam(model.parameters(), amsgrad=True, weight_decay=1e-5)
    split = training.train

    def plain() -> None:
        plain_epoch(model, adam, split, 32, np.random.default_rng([0, 2, 1]))

    return f"training epoch, {encoder} + additive", seconds(plain, 2), seconds(one_epoch(training), 2), bound


def one_epoch(training: Training) -> Callable[[], None]:
    """The same first epoch, again and again, without scoring dev."""
    training._score = lambda split: {}  # type: ignore[method-assign]
    training.end_epoch = lambda dev: False  # type: ignore[method-assign]

    def run() -> None:
        training.epoch, training.step, training.loss = 1, 0, 0.0
        training._run_epoch()

    return run


def frozen_epoch(corpus: Corpus, vocabulary: Vocabulary) -> Row:
    """All but attention frozen: reading at every step, beside reading at the first (not timed)."""
    config = resolved(
        ModelConfig(encoder="bilstm", epochs=3, freeze=("embedding", "encoder", "decoder")),
        family="classification",
        classes=2,
        has_query=False,
    )
    training = Training(build(config, corpus, vocabulary), corpus)
    held = seconds(one_epoch(training), 3)
    training.reader.holds = False
    plain = seconds(one_epoch(training), 2)
    return "training epoch, bilstm frozen below its attention", plain, held, "attention's own products"


def hierarchical_epoch(corpus: Corpus, vocabulary: Vocabulary) -> Row:
    """640 documents of about 120 words in sentences of 6 to 30."""
    texts = [corpus.train[n : n + 7] for n in range(0, 7 * 640, 7)]
    documents = tuple(
        Example(
            id=f"d{n}",
            tokens=tuple(token for sentence in text for token in sentence.tokens),
            label=text[0].label,
            sentences=tuple(np.cumsum([0, *(len(s.tokens) for s in text[:-1])]).tolist()),
        )
        for n, text in enumerate(texts)
    )
    held = Corpus(name="made", labels=corpus.labels, train=documents, dev=corpus.dev, test=corpus.test)
    config = resolved(
        ModelConfig(encoder="han-bigru", attention="additive-wide", epochs=3),
        family="reviews",
        classes=2,
        has_query=False,
    )
    training = Training(build(config, held, vocabulary), held)
    model = PlainHAN(len(vocabulary))
    adam = torch.optim.Adam(model.parameters(), amsgrad=True)

    def plain() -> None:
        plain_han_epoch(model, adam, training.train, 64, np.random.default_rng(0))

    return (
        "training epoch, 640 documents, han-bigru",
        seconds(plain, 1),
        seconds(one_epoch(training), 2),
        "torch's GRU, forward and backward",
    )


def optimiser_step(vocabulary: Vocabulary) -> Row:
    table, dense = (nn.Parameter(torch.randn(len(vocabulary), 300)) for _ in range(2))
    rows = torch.randint(4, len(vocabulary), (600,))
    slope = torch.randn(600, 300)
    ours = RowAdam(table, lr=1e-3, weight_decay=1e-5, total_steps=1000)
    adam = torch.optim.Adam([dense], amsgrad=True, weight_decay=1e-5)

    def sparse_step() -> None:
        ours.catch_up(rows.unique())
        table.grad = torch.sparse_coo_tensor(rows[None], slope, table.shape, check_invariants=False)
        ours.step()

    def dense_step() -> None:
        dense.grad = torch.zeros_like(dense).index_add_(0, rows, slope)
        adam.step()

    return (
        "optimiser step on the embedding table",
        seconds(dense_step, 20),
        seconds(sparse_step, 20),
        "memory traffic",
    )


def permutation(size: Size) -> Row:
    model, split, read = bench(size)

    def ours() -> None:
        for reading in read:
            medians(output_changes(model, reading, 100, rng=torch.Generator().manual_seed(0)))

    with torch.no_grad():  # 32 texts at a time
        batches = [model.read(split.batch(rows)) for rows in buckets(split.lengths, 32)]

    def plain() -> None:
        with torch.no_grad():
            for reading in batches:
                plain_permutations(model, reading, 100, torch.Generator().manual_seed(0))

    return f"100 permutations, {size.name}", seconds(plain, 1), seconds(ours), "fetching weights by order"


def intervals() -> Row:
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=1725) for _ in range(5)]
    ids = [np.arange(1725)] * 5

    def ours() -> None:
        interval_of_statistic(samples, ids, weighted_mean, rng=np.random.default_rng(0))

    def plain() -> None:
        draw = np.random.default_rng(0)
        for _ in range(1000):
            texts = draw.integers(1725, size=1725)
            [sample[texts].mean() for sample in samples]

    name = "interval of a statistic of 5 seeds and 1,725 texts, 1,000 draws"
    return name, seconds(plain), seconds(ours), "drawing the resamples"


def tokeniser() -> Row | None:
    if importlib.util.find_spec("spacy") is None:
        return None
    spacy = importlib.import_module("spacy")
    blank = spacy.blank("en")
    rng = np.random.default_rng(0)
    words = [
        "isn't",
        "Mr.",
        "well-known",
        "$3.50,",
        "film",
        "the",
        "(good)",
        "it's",
        "e.g.",
        "end.",
        *map(str, range(200)),
    ]
    texts = [" ".join(rng.choice(words, 200)) for _ in range(200)]
    return (
        "tokenising 200 texts of 200 words (spaCy)",
        seconds(lambda: [[t.text for t in blank(text)] for text in texts]),
        seconds(lambda: [tokenise(text) for text in texts]),
        "the regular expression",
    )


def main() -> None:
    corpus = made_corpus(train=6354)
    vocabulary = Vocabulary.build(corpus.train)
    rows = [
        training_epoch(corpus, vocabulary, "bilstm", "arithmetic: matrix products are over half"),
        training_epoch(corpus, vocabulary, "average", "row-sparse Adam a third, the backward pass a quarter"),
        hierarchical_epoch(corpus, vocabulary),
        frozen_epoch(corpus, vocabulary),
        optimiser_step(vocabulary),
        *gradients.rows(),
        *erasure.rows(),
        *nulls.rows(),
        *explainers.rows(),
        *influence.rows(),
        permutation(SHORT),
        permutation(LONG),
        *adversaries.rows(),
        *removal.rows(),
        *information.rows(),
        *communication.rows(),
        *hugging_face.rows(),
        *audits.rows(),
        *live.rows(),
        *reports.rows(),
        *statistics.rows(),
        *scaling.rows(),
        intervals(),
        tokeniser(),
    ]
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`: the straightforward way and ours in one run, one thread, best of a few.",
        "Synthetic text of SST's size and Zipf's frequencies; see `benchmarks/`.",
        "",
        f"- date: {datetime.date.today().isoformat()}",
        f"- machine: {platform.machine()}, {os.cpu_count()} cores",
        f"- Python {platform.python_version()}, torch {torch.__version__}",
        "",
        "| what | straightforward | ours | ratio | what bounds ours |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    lines += [line(row) for row in rows if row is not None]
    OUT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)
    lines += [
        "",
        f"## Memory: {memory.TEXTS.name}, bilstm, a process each",
        "",
        "| experiment | before, MB | at its peak, MB |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {before:,.0f} | {peak:,.0f} |" for name, before, peak in memory.rows()),
        "",
        f"## The gallery in Chromium: 100 models on {gallery.TEXTS:,} texts each, from disk, nothing kept",
        "",
        "| page | first paint, ms | filled, ms | read, MB |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {paint:,.0f} | {full:,.0f} | {size:.2f} |"
            for name, paint, full, size in gallery.rows()
        ),
        "",
        f"## A store of {large_store.CELLS:,} small cells, a process for each row",
        "",
        "| what | seconds | at its peak, MB |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {took:,.1f} | {peak:,.0f} |" for name, took, peak in large_store.rows()),
    ]
    lines += [
        "",
        f"## A report of {large_report.MODELS} models, and writing cells, in real processes",
        "",
        "| what | seconds | of CPU, all processes | at its peak, MB |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {took:,.1f} | {cpu:,.1f} | {peak:,.0f} |"
            for name, took, cpu, peak in large_report.rows()
        ),
    ]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
