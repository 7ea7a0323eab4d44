"""Rank agreement and intervals beside a loop over scipy and over single means."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import stats

from attentest.findings.interval import bootstrap, weighted_mean
from attentest.findings.interval_of_means import bootstrap_means
from attentest.findings.rank_agreement import kendalls
from benchmarks.made import Row, seconds

Batch = tuple[
    np.ndarray, np.ndarray, np.ndarray
]  # scores (text, token), others (text, variant, token), lengths

BATCH = 64


def made_batches(texts: int, shortest: int, longest: int, variants: int) -> list[Batch]:
    """Texts in order of length, as readings come; a third of the scores tied at zero, as sparse ones are."""
    rng = np.random.default_rng(0)
    lengths = np.sort(rng.integers(shortest, longest + 1, texts))
    batches = []
    for start in range(0, texts, BATCH):
        own = lengths[start : start + BATCH]
        x, y = rng.normal(size=(len(own), own[-1])), rng.normal(size=(len(own), variants, own[-1]))
        batches.append((np.maximum(x, -0.43), y, own))
    return batches


def one_by_one(batches: list[Batch]) -> None:
    for x, y, lengths in batches:
        for own, others, n in zip(x, y, lengths, strict=True):
            for other in others:
                stats.kendalltau(own[:n], other[:n])


def agreement(name: str, batches: list[Batch], share: int, bound: str) -> Row:
    """`share` of the batches stand for all on the plain road, which takes minutes for the nulls."""
    few = batches[::share]
    part = sum(len(x) for x, _, _ in batches) / sum(len(x) for x, _, _ in few)
    plain = part * seconds(lambda: one_by_one(few), 2)
    return name, plain, seconds(lambda: [kendalls(*batch) for batch in batches], 3), bound


def intervals() -> Row:
    rng = np.random.default_rng(0)
    samples, ids = [rng.normal(size=(1725, 30)) for _ in range(5)], [np.arange(1725)] * 5

    def plain() -> None:
        for measure in range(30):
            bootstrap([sample[:, measure] for sample in samples], ids, weighted_mean, rng=rng)

    name = "bootstrap of 30 measures of the same seeds and texts"
    return (
        name,
        seconds(plain, 2),
        seconds(lambda: bootstrap_means(samples, ids, rng=rng), 3),
        "matrix products",
    )


KENDALL = {  # texts, shortest, longest, variants; which share the plain road takes; what bounds ours
    "2 taus with p of 1,725 texts of 18 tokens (scipy)": (
        (1725, 6, 30, 2),
        1,
        "many small steps; comparing pairs is two fifths",
    ),
    "2 taus with p of 498 texts of 178 tokens (scipy)": (
        (498, 60, 296, 2),
        1,
        "ranking and comparing pairs, half each",
    ),
    "20 null taus of 1,725 texts of 18 tokens (scipy)": (
        (1725, 6, 30, 20),
        9,
        "comparing pairs is a half, ranking a third",
    ),
}


def rows() -> Iterator[Row]:
    """Everything here, timed by the caller's clock."""
    for name, (sizes, share, bound) in KENDALL.items():
        yield agreement(name, made_batches(*sizes), share, bound)
    yield intervals()
