"""Intervals of many means at once against the one of each."""

import numpy as np
import pytest

from attentest.findings import interval, interval_of_means
from attentest.findings.interval import bootstrap, weighted_mean
from attentest.findings.interval_of_means import bootstrap_means


def crossed(sizes, measures=4, texts=30):
    """Seeds with some texts of a shared set each."""
    rng = np.random.default_rng(1)
    ids = [np.sort(rng.choice(texts, size, replace=False)) for size in sizes]
    return [rng.normal(size=(size, measures)) for size in sizes], ids


@pytest.mark.parametrize("sizes", [(30,), (2,), (1, 1), (1, 30), (30, 20, 5), (12,) * 8])
@pytest.mark.parametrize("cells", [2**19, 100], ids=["at once", "in parts"])
def test_each_column_has_the_interval_it_would_have_alone(sizes, cells, monkeypatch):
    for module in (interval, interval_of_means):
        monkeypatch.setattr(module, "CELLS", cells)
    samples, ids = crossed(sizes)
    low, high, resampled = bootstrap_means(samples, ids, rng=np.random.default_rng(0), draws=300)
    for column in range(4):
        alone = [sample[:, column] for sample in samples]
        expected = bootstrap(alone, ids, weighted_mean, rng=np.random.default_rng(0), draws=300)
        assert (low[column], high[column]) == pytest.approx(expected[:2], abs=1e-12)
        assert resampled == expected[2]


@pytest.mark.parametrize("sizes", [(0,), (1,)])
def test_what_cannot_vary_has_no_interval(sizes):
    low, high, resampled = bootstrap_means(*crossed(sizes), rng=np.random.default_rng(0))
    assert np.isnan(low).all() and np.isnan(high).all() and resampled == "none"


def test_company_changes_nothing():
    samples, ids = crossed((30, 20))
    together = bootstrap_means(samples, ids, rng=np.random.default_rng(0))
    alone = bootstrap_means([sample[:, 1:2] for sample in samples], ids, rng=np.random.default_rng(0))
    assert (together[0][1], together[1][1]) == pytest.approx((alone[0][0], alone[1][0]), abs=1e-12)
