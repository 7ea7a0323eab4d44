"""Do intervals cover? Simulated with the variances that our own models have, and with any other."""

import csv
from pathlib import Path

import numpy as np
import pytest

from attentest.experiments.removal.conclude import weighted_median
from attentest.statistics import crossed
from attentest.statistics.crossed import combined, intervals_of_means
from attentest.statistics.interval import counts, interval_of_statistic

# Mean squares over five seeds and all test texts: two corpora, three encoders, two attentions, six measures.
COMPONENTS = Path(__file__).parent / "data" / "variance_components.csv"
TEXTS = 200
BAR = 0.93
SEEDS = (2, 3, 5, 10)
REGIMES = ("seeds dominate", "texts dominate")


def variances(measures):
    """Of seeds, texts and residual: a row for each of the measures of each model, from their mean squares."""
    with COMPONENTS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["measure"].startswith(measures)]
    of_seed, of_text, residual, seeds, texts = (
        np.array([float(row[name]) for row in rows])
        for name in ("ms_seed", "ms_text", "ms_residual", "S", "N")
    )
    found = [(of_seed - residual) / texts, (of_text - residual) / seeds, residual]
    return np.maximum(np.stack(found, axis=1), 0.0)


def of_regime(regime, seeds, texts, measures):
    """Those in whose mean over so many seeds and texts the seeds cause more of the variance, or the texts."""
    found = variances(measures)
    of_seeds = found[:, 0] / seeds
    of_texts = found[:, 1] / texts + found[:, 2] / (seeds * texts)
    return found[of_seeds > of_texts if regime == "seeds dominate" else of_seeds <= of_texts]


def simulated(regime, seeds, trials, texts, measures):
    """Tables of seeds and texts whose true mean is 0; every trial is a column with variances of its own."""
    rng = np.random.default_rng(seeds)
    known = of_regime(regime, seeds, texts, measures)
    assert len(known) > 10
    of_seed, of_text, residual = np.sqrt(known[rng.integers(len(known), size=trials)].T)
    text = rng.normal(size=(texts, trials)) * of_text
    return [
        text + rng.normal(size=trials) * of_seed + rng.normal(size=text.shape) * residual
        for _ in range(seeds)
    ]


def t_interval(samples):
    found = intervals_of_means(samples, [np.arange(len(sample)) for sample in samples])
    return np.array([one.low for one in found]), np.array([one.high for one in found])


def percentile_bootstrap(samples, draws=300):
    """The former interval: seeds are drawn with replacement, and texts, the same ones for every seed."""
    rng = np.random.default_rng(0)
    texts = len(samples[0])
    chosen, picked = counts(draws, len(samples), rng), counts(draws, texts, rng)
    means = sum(chosen[:, [n]] * (picked @ sample) for n, sample in enumerate(samples))
    return np.quantile(means / (len(samples) * texts), [0.025, 0.975], axis=0)


def coverage(interval, regime, seeds, trials=4000, texts=TEXTS, measures=""):
    low, high = interval(simulated(regime, seeds, trials, texts, measures))
    return float(((low <= 0) & (high >= 0)).mean())


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("seeds", SEEDS)
def test_with_the_variances_of_our_own_models_intervals_cover(seeds, regime):
    assert BAR <= coverage(t_interval, regime, seeds) <= 0.995


@pytest.mark.parametrize("seeds, most", [(2, 0.80), (3, 0.88), (5, 0.92)])
def test_the_percentile_bootstrap_would_fail_where_seeds_dominate(seeds, most):
    assert coverage(percentile_bootstrap, "seeds dominate", seeds, trials=600) < most < BAR


def test_rank_agreement_on_a_large_test_set_is_covered_and_the_bootstrap_covers_two_thirds_of_it():
    asked = {"trials": 400, "texts": 1725, "measures": "importance/tau"}
    assert coverage(percentile_bootstrap, "seeds dominate", 2, **asked) < 0.68
    assert (
        coverage(t_interval, "seeds dominate", 2, **asked) >= 0.92
    )  # 400 trials: two standard errors are .02


# --- any variances: the three mean squares are drawn from the distributions that they have


def any_shares(seeds, trials):
    """The lowest coverage over all shares of the variance that seeds, texts and residual may have."""
    found = {}
    for of_seeds in (0.0, 0.05, 0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0):
        for of_texts in (0.0, 0.5, 1.0):  # of what is left
            shares = of_seeds, (1 - of_seeds) * of_texts, (1 - of_seeds) * (1 - of_texts)
            found[shares] = _covered(seeds, *shares, trials)
    return min(found.values())


def _covered(seeds, of_seeds, of_texts, residual, trials):
    """Shares of a variance of 1; the three mean squares are drawn independently, as they are distributed."""
    rng = np.random.default_rng(0)
    freedom = (seeds - 1) * (TEXTS - 1)
    rest = residual * rng.chisquare(freedom, trials) / freedom
    joint = (of_texts + residual) * rng.chisquare(TEXTS - 1, trials) / (TEXTS - 1)
    shared = rng.normal(size=trials) * np.sqrt(of_texts)  # moves all seeds alike
    means = shared + rng.normal(size=(seeds, trials)) * np.sqrt(seeds * (of_seeds + residual))
    apart = (joint + (seeds - 1) * rest) / seeds
    return np.mean([one.low <= 0 <= one.high for one in combined(means, joint, apart, TEXTS)])


@pytest.mark.parametrize("trials", [4000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seeds", SEEDS)
def test_whatever_seeds_and_texts_contribute_intervals_cover(seeds, trials):
    assert any_shares(seeds, trials) >= BAR


@pytest.mark.parametrize("trials", [4000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_degrees_of_freedom_from_the_estimated_parts_would_fail_with_two_seeds(trials, monkeypatch):
    monkeypatch.setattr(crossed, "chdtri", lambda freedom, _: freedom)  # Satterthwaite's formula as it is
    assert any_shares(2, trials) < 0.89
    assert any_shares(3, trials) < BAR


# --- what is no mean


def test_the_mean_over_seeds_of_a_median_is_covered():
    trials, held = 400, 0
    rng = np.random.default_rng(0)
    for _ in range(trials):
        text = rng.normal(size=60)
        samples = [text + effect + rng.normal(size=60) for effect in rng.normal(0, 0.15, size=3)]
        found = interval_of_statistic(samples, [np.arange(60)] * 3, weighted_median, rng=rng, draws=200)
        held += found.low <= 0 <= found.high
    assert 0.92 <= held / trials <= 0.995
