"""Rank agreement beside a loop over scipy, and intervals of means beside the bootstrap they replace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import stats

from attentest.statistics.crossed import intervals_of_means
from attentest.statistics.interval import counts
from attentest.statistics.rank_agreement import kendalls
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


def percentile_bootstrap(samples: list[np.ndarray], draws: int = 1000) -> np.ndarray:
    """The former interval of all means at once: seeds and texts are drawn, each draw is a matrix product."""
    rng, texts = np.random.default_rng(0), len(samples[0])
    chosen, table = counts(draws, len(samples), rng), np.stack(samples, axis=1).reshape(texts, -1)
    means = []
    for some in np.array_split(chosen, 4):
        sums = (counts(len(some), texts, rng) @ table).reshape(len(some), len(samples), -1)
        means.append(np.einsum("ds,dsm->dm", some, sums) / (len(samples) * texts))
    return np.quantile(np.concatenate(means), [0.025, 0.975], axis=0)


def intervals() -> Row:
    rng = np.random.default_rng(0)
    samples, ids = [rng.normal(size=(1725, 30)) for _ in range(5)], [np.arange(1725)] * 5
    return (
        "intervals of 30 means over 5 seeds and 1,725 texts (percentile bootstrap)",
        seconds(lambda: percentile_bootstrap(samples), 3),
        seconds(lambda: intervals_of_means(samples, ids), 3),
        "squares of 260,000 deviations",
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
