"""Intervals: do they cover, and do they know what they do not know?"""

import math
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from attentest.findings import interval as module
from attentest.findings.interval import CELLS, bootstrap, over_seeds, weighted_mean


def crossed(samples, statistic=weighted_mean, seed=0, draws=1000):
    """The interval where the seeds answer one test set in one order, each as far as it goes."""
    ids = [np.arange(len(sample)) for sample in samples]
    return bootstrap(samples, ids, statistic, rng=np.random.default_rng(seed), draws=draws)


def width(samples, **options):
    low, high, _ = crossed(samples, **options)
    return high - low


def pooled(samples, ids, statistic, *, rng, draws):
    """The mutant that forgets seeds."""
    numbers = np.arange(sum(map(len, samples)))
    return bootstrap([np.concatenate(samples)], [numbers], statistic, rng=rng, draws=draws)


def independent(samples, ids, statistic, *, rng, draws):
    """The mutant that draws texts anew for every chosen seed, as if each had its own test set."""
    chosen = rng.integers(len(samples), size=(draws, len(samples)))
    values = np.empty(chosen.shape)
    for number, sample in enumerate(samples):
        here = chosen == number
        values[here] = statistic(sample, module.counts(int(here.sum()), len(sample), rng))
    low, high = np.quantile(values.mean(axis=1), [0.025, 0.975])
    return low, high, "seeds, instances"


def by_position(samples, ids, statistic, *, rng, draws):
    """The mutant that takes the k-th text of every seed for the same one."""
    positions = [np.arange(len(some)) for some in ids]
    return bootstrap(samples, positions, statistic, rng=rng, draws=draws)


def coverage(interval, *, seeds, between, shared, part=1.0, texts=100, trials=400):
    """How often the interval holds the true mean 0.

    Answers have variance one, of which the share `shared` is the text's own and the same for every
    seed; `between` is the standard deviation of seeds, `part` the share of the texts that a seed has
    in the group, other texts for every seed.
    """
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(trials):
        luck = rng.normal(0, math.sqrt(shared), size=texts)
        ids = [np.flatnonzero(rng.uniform(size=texts) < part) for _ in range(seeds)]
        effects = rng.normal(0, between, size=seeds)
        samples = [
            rng.normal(luck[own] + effect, math.sqrt(1 - shared))
            for own, effect in zip(ids, effects, strict=True)
        ]
        low, high, _ = interval(samples, ids, weighted_mean, rng=rng, draws=300)
        held += low <= 0 <= high
    return held / trials


# In the bands below three standard errors of 400 trials are 3 % at a coverage of 95 %, 5 % at 87 %.
def check_texts_are_covered(interval, seeds):
    assert 0.91 <= coverage(interval, seeds=seeds, between=0.05 * (seeds > 1), shared=0.64) <= 0.99


def check_seeds_are_covered(interval, seeds=10):
    assert 0.87 <= coverage(interval, seeds=seeds, between=0.5, shared=0.64) <= 0.97


def check_groups_are_covered(interval, seeds=10):
    assert 0.91 <= coverage(interval, seeds=seeds, between=0.0, shared=0.9, part=0.6) <= 0.99


@pytest.mark.parametrize("seeds", [1, 5, 10])
def test_where_texts_differ_most_any_number_of_seeds_covers_at_the_nominal_rate(seeds):
    check_texts_are_covered(bootstrap, seeds)


def test_where_seeds_differ_most_ten_cover_near_the_nominal_rate():
    check_seeds_are_covered(bootstrap)


def test_groups_of_other_texts_in_other_seeds_are_covered():
    check_groups_are_covered(bootstrap)


def test_the_known_limits_are_as_large_as_we_say():
    assert 0.81 <= coverage(bootstrap, seeds=5, between=0.5, shared=0.64) <= 0.92
    assert coverage(bootstrap, seeds=1, between=0.5, shared=0.64) <= 0.45  # the standard errors are 5 to 1
    assert coverage(bootstrap, seeds=5, between=0.0, shared=0.0) >= 0.975


@pytest.mark.parametrize(
    "check, mutant, seeds",
    [
        (check_texts_are_covered, independent, 5),
        (check_texts_are_covered, independent, 10),
        (check_seeds_are_covered, pooled, 10),
        (check_groups_are_covered, by_position, 10),
        (check_groups_are_covered, independent, 10),
    ],
)
def test_the_coverage_checks_can_fail(check, mutant, seeds):
    with pytest.raises(AssertionError):
        check(mutant, seeds)


def test_the_interval_of_a_mean_is_the_normal_one():
    values = np.random.default_rng(3).normal(5, 2, size=900)
    low, high, kind = crossed([values], draws=4000)
    error = 1.96 * values.std() / 30
    assert kind == "instances"
    assert low == pytest.approx(values.mean() - error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + error, abs=0.1 * error)


def test_fewer_instances_widen_it():
    values = np.random.default_rng(0).normal(size=1600)
    assert width([values[:100]]) == pytest.approx(4 * width([values]), rel=0.3)


def test_seed_to_seed_variance_enters():
    noise = [np.random.default_rng(seed).normal(size=500) for seed in range(6)]
    noise = [values - values.mean() for values in noise]
    apart = [values + effect for values, effect in zip(noise, np.linspace(-1, 1, 6), strict=True)]
    assert width(apart) > 5 * width(noise)
    constant = [np.full(50, effect) for effect in (0.0, 1.0)]  # instances say nothing, seeds everything
    low, high, kind = crossed(constant)
    assert (low, high, kind) == (0.0, 1.0, "seeds, instances")


def test_seeds_count_alike_whatever_their_size():
    # Ten texts of 1010 are all missing from one draw in 22,000: then the other seed speaks alone.
    ids = [np.arange(10), np.arange(10, 1010)]
    low, high, _ = bootstrap([np.zeros(10), np.ones(1000)], ids, weighted_mean, rng=np.random.default_rng(0))
    draws = np.random.default_rng(1).integers(2, size=(4000, 2)).mean(axis=1)
    assert (low, high) == tuple(np.quantile(draws, [0.025, 0.975]))


def test_the_weights_are_multinomial():
    seen = []

    def spy(sample, weights):
        seen.append(weights)
        return weights[:, 0]

    crossed([np.zeros(4)], spy, draws=6000)
    weights = np.concatenate(seen)
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
    assert crossed(samples)[:2] == pytest.approx(at_once[:2], rel=1e-12)


def test_memory_stays_small_for_a_large_test_set():
    samples = [np.random.default_rng(seed).normal(size=25_000) for seed in range(3)]
    tracemalloc.start()
    width(samples, draws=200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("samples", [[], [np.empty(0)], [np.empty(0), np.empty(0)], [np.ones(1)]])
def test_what_cannot_vary_has_no_interval(samples):
    low, high, kind = crossed(samples)
    assert math.isnan(low) and math.isnan(high) and kind == "none"


def test_a_seed_without_instances_has_no_say():
    values = np.random.default_rng(0).normal(size=40)
    with_empty = crossed([np.empty(0), values])
    assert with_empty == crossed([values])
    assert with_empty[2] == "instances"


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
    assert crossed([sample], ratio) == (2.0, 2.0, "instances")
    never = Paired(above=np.ones(3), below=np.zeros(3))
    low, high, kind = crossed([never], ratio)
    assert math.isnan(low) and math.isnan(high) and kind == "instances"
    # A seed that is undefined leaves the draw to the others.
    assert crossed([sample, never], ratio)[:2] == (2.0, 2.0)


def one_by_one(samples, ids, *, rng, draws):
    """The crossed bootstrap of a mean as one would tell it, without weights."""
    texts = sorted({name for own in ids for name in own})
    means = []
    for _ in range(draws):
        picked = [texts[number] for number in rng.integers(len(texts), size=len(texts))]
        answers = [dict(zip(own, sample, strict=True)) for own, sample in zip(ids, samples, strict=True)]
        chosen = [answers[number] for number in rng.integers(len(samples), size=len(samples))]
        values = [[answer[name] for name in picked if name in answer] for answer in chosen]
        means += [np.mean([np.mean(some) for some in values if some])] if any(values) else []
    return tuple(np.quantile(means, [0.025, 0.975]))


@pytest.mark.parametrize("names", [("abcdefgh", "hgfedcba"), ("abcd", "fedc", "bx"), ("a", "b", "c")])
def test_it_is_the_crossed_bootstrap_told_one_draw_at_a_time(names):
    samples = [np.random.default_rng(number).normal(size=len(own)) for number, own in enumerate(names)]
    ids = [np.array(list(own), dtype=object) for own in names]
    slow = one_by_one(samples, ids, rng=np.random.default_rng(1), draws=6000)
    low, high, _ = bootstrap(samples, ids, weighted_mean, rng=np.random.default_rng(2), draws=20_000)
    assert (low, high) == pytest.approx(slow, abs=0.05)


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
        bootstrap(some, names, weighted_mean, rng=np.random.default_rng(1))[:2]
        for some, names in [(samples, ids), (shuffled, named)]
    )
    assert renamed == pytest.approx(plain, rel=1e-12)


def test_seeds_are_summed_up_by_mean_and_sample_deviation():
    assert over_seeds([1.0, 2.0, 6.0]) == pytest.approx((3.0, math.sqrt(7.0)))
    assert over_seeds([1.0])[0] == 1.0 and math.isnan(over_seeds([1.0])[1])
    assert all(math.isnan(value) for value in over_seeds([]))
