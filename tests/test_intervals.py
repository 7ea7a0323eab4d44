"""Intervals of what is no mean: the formula of means, with variances from a bootstrap of texts."""

import math
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from attentest.experiments.removal.conclude import weighted_median
from attentest.statistics import interval as module
from attentest.statistics.crossed import intervals_of_means
from attentest.statistics.interval import CELLS, interval_of_statistic, over_seeds, weighted_mean


def crossed(samples, statistic=weighted_mean, seed=0, draws=1000):
    """The interval where the seeds answer one test set in one order, each as far as it goes."""
    ids = [np.arange(len(sample)) for sample in samples]
    return interval_of_statistic(samples, ids, statistic, rng=np.random.default_rng(seed), draws=draws)


def width(samples, **options):
    found = crossed(samples, **options)
    return found.high - found.low


@pytest.mark.parametrize("sizes", [(60,), (60, 60), (60, 60, 60, 60), (60, 45, 30), (2, 60)])
def test_of_a_mean_it_is_what_the_mean_squares_say(sizes):
    rng = np.random.default_rng(5)
    text = rng.normal(size=60)
    samples = [text[:size] + rng.normal(0, 0.2) + rng.normal(size=size) for size in sizes]
    found = crossed(samples, draws=20_000)
    (exact,) = intervals_of_means(
        [sample[:, None] for sample in samples], [np.arange(size) for size in sizes]
    )
    assert found.interval == exact.interval
    assert (found.low + found.high) / 2 == pytest.approx((exact.low + exact.high) / 2)
    assert found.error == pytest.approx(exact.error, rel=0.03 if len(set(sizes)) == 1 else 0.1)
    assert found.freedom == pytest.approx(exact.freedom, rel=0.1)


def test_the_interval_of_a_mean_is_the_normal_one():
    values = np.random.default_rng(3).normal(5, 2, size=900)
    low, high, error, freedom, kind = crossed([values], draws=4000)
    expected = values.std(ddof=1) / 30
    assert kind == "instances" and freedom == 899
    assert error == pytest.approx(expected, rel=0.05)
    assert low == pytest.approx(values.mean() - 1.96 * expected, abs=0.1 * expected)
    assert high == pytest.approx(values.mean() + 1.96 * expected, abs=0.1 * expected)


def test_fewer_instances_widen_it():
    values = np.random.default_rng(0).normal(size=1600)
    assert width([values[:100]]) == pytest.approx(4 * width([values]), rel=0.3)


def test_seed_to_seed_variance_enters():
    noise = [np.random.default_rng(seed).normal(size=500) for seed in range(6)]
    noise = [values - values.mean() for values in noise]
    apart = [values + effect for values, effect in zip(noise, np.linspace(-1, 1, 6), strict=True)]
    assert width(apart) > 5 * width(noise)
    constant = [np.full(50, effect) for effect in (0.0, 1.0)]  # instances say nothing, seeds everything
    found = crossed(constant)
    assert (found.error, found.freedom, found.interval) == (pytest.approx(0.5), 1.0, "seeds, instances")
    assert (found.low, found.high) == pytest.approx((0.5 - 12.706 * 0.5, 0.5 + 12.706 * 0.5), rel=1e-4)


def test_seeds_count_alike_whatever_their_size():
    ids = [np.arange(10), np.arange(10, 1010)]
    found = interval_of_statistic(
        [np.zeros(10), np.ones(1000)], ids, weighted_mean, rng=np.random.default_rng(0)
    )
    assert (found.low + found.high) / 2 == pytest.approx(0.5)
    assert (found.error, found.freedom) == (pytest.approx(0.5), 1.0)


def test_a_seed_that_a_draw_leaves_without_texts_does_not_move_the_others():
    # The only text of the second seed is missing from a third of the draws, where the mean would jump by 50.
    rng = np.random.default_rng(0)
    samples, ids = [rng.normal(size=40), np.array([100.0])], [np.arange(40), np.arange(1)]
    deviations = []
    plain = module._mean_of_defined

    def spy(values):
        deviations.append(plain(values))
        return deviations[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_mean_of_defined", spy)
        interval_of_statistic(samples, ids, weighted_mean, rng=rng)
    assert np.abs(deviations[0]).max() < 1.0


def test_the_weights_are_multinomial():
    seen = []

    def spy(sample, weights):
        seen.append(weights)
        return weights[:, 0]

    crossed([np.zeros(4)], spy, draws=6000)
    weights = np.concatenate(seen[1:])  # the first is the estimate, every text once
    assert (seen[0] == 1).all()
    assert weights.shape == (6000, 4) and (weights.sum(axis=1) == 4).all()
    covariance = 4 * (np.eye(4) / 4 - 1 / 16)
    np.testing.assert_allclose(np.cov(weights.T), covariance, atol=0.05)


def test_the_same_generator_gives_the_same_interval():
    samples = [np.random.default_rng(seed).normal(size=30) for seed in range(3)]
    first, again, other = (crossed(samples, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_chunks_are_a_matter_of_memory_only(monkeypatch):
    values = np.random.default_rng(0).normal(size=CELLS // 3)
    assert width([values], draws=40) == pytest.approx(3.92 / math.sqrt(len(values)), rel=0.5)
    samples = [values[:70], values[70:120]]
    at_once = crossed(samples)
    monkeypatch.setattr(module, "CELLS", 300)
    assert crossed(samples)[:4] == pytest.approx(at_once[:4], rel=1e-12)


def test_memory_stays_small_for_a_large_test_set():
    samples = [np.random.default_rng(seed).normal(size=25_000) for seed in range(3)]
    tracemalloc.start()
    width(samples, draws=200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("samples", [[], [np.empty(0)], [np.empty(0), np.empty(0)], [np.ones(1)]])
def test_what_cannot_vary_has_no_interval(samples):
    found = crossed(samples)
    assert all(math.isnan(each) for each in found[:4]) and found.interval == "none"


def test_a_seed_without_instances_has_no_say():
    values = np.random.default_rng(0).normal(size=40)
    with_empty = crossed([np.empty(0), values])
    assert with_empty == crossed([values])
    assert with_empty.interval == "instances"


@dataclass(frozen=True)
class Paired:
    above: np.ndarray
    below: np.ndarray

    def __len__(self):
        return len(self.above)


def test_a_sample_may_be_a_record_and_its_undefined_draws_are_left_out():
    def ratio(sample, weights):
        below = weights @ sample.below
        return np.divide(weights @ sample.above, below, out=np.full(len(below), np.nan), where=below > 0)

    sample = Paired(above=np.array([2.0, 4.0, 0.0]), below=np.array([1.0, 2.0, 0.0]))
    assert crossed([sample], ratio) == (2.0, 2.0, 0.0, 2.0, "instances")
    never = Paired(above=np.ones(3), below=np.zeros(3))
    assert crossed([never], ratio).interval == "none"
    # A seed that is undefined is no seed.
    assert crossed([sample, never], ratio) == crossed([sample], ratio)


def one_by_one(samples, ids, statistic, *, rng, draws):
    """Error and freedom as one would tell it, without weights: every draw is a list of texts."""
    answers = [dict(zip(own, sample, strict=True)) for own, sample in zip(ids, samples, strict=True)]
    texts, seeds = sorted({name for own in ids for name in own}), len(answers)
    estimates = [statistic(list(answer.values())) for answer in answers]
    drawn = []
    for _ in range(draws):
        picked = [texts[number] for number in rng.integers(len(texts), size=len(texts))]
        values = [[answer[name] for name in picked if name in answer] for answer in answers]
        pairs = zip(values, estimates, strict=True)
        drawn.append([statistic(some) - estimate if some else math.nan for some, estimate in pairs])
    drawn = np.array(drawn)
    joint = np.nanvar(np.nanmean(drawn, axis=1), ddof=1) * len(texts) / (len(texts) - 1)
    sizes = np.array([len(own) for own in ids])
    apart = (np.nanvar(drawn, axis=0, ddof=1) * sizes / (sizes - 1)).sum() / seeds**2
    between = np.var(estimates, ddof=1) / seeds
    residual = max((seeds * apart - joint) / (seeds - 1), 0.0)
    return math.sqrt(max(between + joint - residual, between, joint))


@pytest.mark.parametrize("names", [("abcdefgh", "hgfedcba"), ("abcdefg", "gfedcx", "bxyzadg")])
@pytest.mark.parametrize("statistic", [(weighted_mean, np.mean), (weighted_median, np.median)])
def test_it_is_the_bootstrap_of_texts_told_one_draw_at_a_time(names, statistic):
    fast, plain = statistic
    samples = [np.random.default_rng(number).normal(size=len(own)) for number, own in enumerate(names)]
    ids = [np.array(list(own), dtype=object) for own in names]
    expected = one_by_one(samples, ids, plain, rng=np.random.default_rng(1), draws=3000)
    found = interval_of_statistic(samples, ids, fast, rng=np.random.default_rng(2), draws=20_000)
    assert found.error == pytest.approx(expected, rel=0.05)


def test_seeds_that_answer_alike_are_worth_one():
    values = np.random.default_rng(0).normal(size=80)
    assert width([values] * 6, draws=4000) == pytest.approx(width([values], draws=4000), rel=0.1)


def test_neither_the_order_of_rows_nor_the_kind_of_id_matters():
    rng = np.random.default_rng(0)
    samples, ids = [rng.normal(size=n) for n in (30, 20)], [np.arange(30), np.arange(15, 35)]
    orders = [rng.permutation(30), rng.permutation(20)]
    shuffled = [sample[order] for sample, order in zip(samples, orders, strict=True)]
    named = [
        np.array([f"t{number:02d}" for number in own[order]], dtype=object)
        for own, order in zip(ids, orders, strict=True)
    ]
    plain, renamed = (
        interval_of_statistic(some, names, weighted_mean, rng=np.random.default_rng(1))[:4]
        for some, names in [(samples, ids), (shuffled, named)]
    )
    assert renamed == pytest.approx(plain, rel=1e-12)


def test_seeds_are_summed_up_by_mean_and_sample_deviation():
    assert over_seeds([1.0, 2.0, 6.0]) == pytest.approx((3.0, math.sqrt(7.0)))
    assert over_seeds([1.0])[0] == 1.0 and math.isnan(over_seeds([1.0])[1])
    assert all(math.isnan(value) for value in over_seeds([]))
