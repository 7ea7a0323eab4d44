"""Information by rank of attention, beside scikit-learn's k-means and neighbours rank by rank."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
import torch
from scipy.spatial.distance import cdist
from scipy.special import digamma
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import mutual_info_score

from attentest.evidence.information.quantisation import rank_symbols
from attentest.evidence.information.ranked import output_symbols
from attentest.experiments.contract import Row
from attentest.experiments.information.conclude import measured
from attentest.experiments.information.observe import Information
from attentest.experiments.shared.by_rank import RankedSplit
from attentest.statistics.flatness import Flatness, spearman
from attentest.statistics.interval import counts
from benchmarks.made import Row as Line
from benchmarks.made import seconds

TEXTS, RANKS, HIDDEN, CLUSTERS, OUTPUTS = 4000, 50, 256, 100, 5
SETTINGS, DRAWS = 99, 1000
PLAIN = 2  # ranks that the plain way is timed on; the rest is arithmetic


@cache
def made_split() -> RankedSplit:
    """Hidden states of few directions and some noise; what they tell about the output falls with the rank."""
    rng = torch.Generator().manual_seed(0)
    logit = torch.randn(TEXTS, 1, generator=rng)
    directions = torch.randn(20, HIDDEN, generator=rng)
    vectors = torch.empty(RANKS, TEXTS, HIDDEN)
    for rank in range(RANKS):
        inner = torch.randn(TEXTS, 20, generator=rng)
        inner[:, :1] += 3 * logit / (1 + rank)
        vectors[rank] = torch.tanh(0.3 * inner @ directions + 0.5 * torch.randn(TEXTS, HIDDEN, generator=rng))
    attention = np.tile(np.linspace(2, 0.5, RANKS) / RANKS, (TEXTS, 1))
    begun = {"subject": "trained", "length": RANKS, "max_attention": 0.04, "entropy": 0.9}
    rows: list[Row] = [{**begun, "id": f"t{number}"} for number in range(TEXTS)]
    return RankedSplit(rows, attention, vectors, logit)


def ours(split: RankedSplit) -> None:
    """Every rank, both codebooks, both estimators and all nulls: what one model of a study takes."""
    step = Information(clusters=str(CLUSTERS))
    rows = pd.DataFrame(step.measured(split, torch.Generator().manual_seed(0)))
    measured(rows, np.random.default_rng(0))


def k_means_of_ranks(split: RankedSplit) -> None:
    rank_symbols(split.vectors, [CLUSTERS], rng=torch.Generator().manual_seed(0))


def plain_k_means(vectors: np.ndarray) -> np.ndarray:
    return KMeans(CLUSTERS, n_init=10, random_state=0).fit(vectors).labels_


def plain_neighbours(vectors: np.ndarray, output: np.ndarray) -> float:
    """Ross's estimate from all distances, one text at a time."""
    apart = cdist(vectors, vectors)
    np.fill_diagonal(apart, np.inf)
    same = [np.flatnonzero(output == one) for one in output]
    reach = [np.partition(row[of], 2)[2] for row, of in zip(apart, same, strict=True)]
    within = [(row <= far).sum() for row, far in zip(apart, reach, strict=True)]
    sizes = [len(of) for of in same]
    return float(digamma(len(output)) + digamma(3) - digamma(sizes).mean() - digamma(within).mean())


def plain(vectors: np.ndarray, output: np.ndarray) -> None:
    """One rank: clusters, information, that of shuffled outputs and of dealt tokens, neighbours."""
    rng = np.random.default_rng(0)
    symbols = plain_k_means(vectors)
    mutual_info_score(symbols, output)
    for _ in range(2 * Information.nulls):
        mutual_info_score(symbols, rng.permutation(output))
    plain_neighbours(vectors, output)


def rows() -> Iterator[Line]:
    split = made_split()
    output = output_symbols(split.logits, OUTPUTS, rng=torch.Generator().manual_seed(0)).numpy()
    few = [vectors.numpy() for vectors in split.vectors[:PLAIN]]
    size = f"{TEXTS:,} texts, {RANKS} ranks, {CLUSTERS} clusters"
    clustering = seconds(lambda: [plain_k_means(vectors) for vectors in few], 1) * RANKS / PLAIN
    yield f"k-means, {size}", clustering, seconds(lambda: k_means_of_ranks(split), 1), "matrix products"
    whole = seconds(lambda: [plain(vectors, output) for vectors in few], 1) * RANKS / PLAIN
    yield f"information by rank, {size}", whole, seconds(lambda: ours(split), 1), "k-means"
    yield flatness()


def flatness() -> Line:
    """Spearman's correlation over resampled settings: scipy on each resample, or ranks by weights at once."""
    rng = np.random.default_rng(0)
    sample = Flatness(np.arange(SETTINGS), *rng.uniform(size=(2, SETTINGS)))
    weights = counts(DRAWS, SETTINGS, rng)
    each = [np.repeat(np.arange(SETTINGS), times.astype(int)) for times in weights]
    scipy = seconds(lambda: [spearmanr(sample.entropy[own], sample.tau[own]) for own in each], 1)
    name = f"Spearman over {SETTINGS} settings, {DRAWS:,} draws (scipy)"
    return name, scipy, seconds(lambda: spearman(sample, weights), 5), "matrix products"


if __name__ == "__main__":
    for line in rows():
        print(line)
