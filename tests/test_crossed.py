"""Intervals of means over seeds and texts against a loop over the cells of the two-way table."""

import math
from itertools import chain

import numpy as np
import pytest
from scipy import stats

from attentest.statistics import crossed
from attentest.statistics.crossed import interval_of_seeds, intervals_of_means, over_seeds_only
from attentest.statistics.estimates import estimates_alone
from attentest.statistics.record import seeds_as_json


def observed(names, measures=3, seed=0):
    """A sample for each seed, whose texts are the letters of its name."""
    rng = np.random.default_rng(seed)
    texts = dict(zip("abcdefghijklmnopqrstuvwxyz", rng.normal(size=(26, measures)), strict=True))
    samples = [
        np.array([texts[text] for text in own])
        + rng.normal(size=measures)
        + rng.normal(size=(len(own), measures))
        for own in names
    ]
    return samples, [np.array(list(own), dtype=object) for own in names]


def mean_squares(table):
    """The three of a full two-way table of seeds (rows) and texts, by their definitions."""
    seeds, texts = table.shape
    mean = table.mean()
    of_seed, of_text = table.mean(axis=1), table.mean(axis=0)
    residual = sum(
        (table[s, t] - of_seed[s] - of_text[t] + mean) ** 2 for s in range(seeds) for t in range(texts)
    )
    return (
        texts * sum((of_seed - mean) ** 2) / (seeds - 1),
        seeds * sum((of_text - mean) ** 2) / (texts - 1),
        residual / ((seeds - 1) * (texts - 1)),
    )


def looped(samples, ids):
    """Estimate, error and freedom of one measure with dictionaries and loops, whatever is missing."""
    answers = [dict(zip(own, sample, strict=True)) for own, sample in zip(ids, samples, strict=True)]
    texts, seeds = sorted(set(chain.from_iterable(ids))), len(answers)
    means = [sum(own.values()) / len(own) for own in answers]
    of_text = [
        sum(
            (own[text] - mean) / (seeds * len(own))
            for own, mean in zip(answers, means, strict=True)
            if text in own
        )
        for text in texts
    ]
    joint = sum(each**2 for each in of_text) * len(texts) / (len(texts) - 1) if len(texts) > 1 else 0.0
    estimate = sum(means) / seeds
    if seeds == 1:
        return estimate, math.sqrt(joint), len(texts) - 1
    between = sum((mean - estimate) ** 2 for mean in means) / (seeds - 1) / seeds
    alone = [np.var(list(own.values()), ddof=1) / len(own) if len(own) > 1 else 0.0 for own in answers]
    residual = (sum(alone) / seeds - joint) / (seeds - 1)
    error = math.sqrt(max(between + joint - residual, between, joint))
    upper = between * (seeds - 1) / stats.chi2.ppf(0.2, seeds - 1)
    freedom = (upper + joint) ** 2 / (upper**2 / (seeds - 1) + joint**2 / max(len(texts) - 1, 1))
    return estimate, error, freedom


NAMES = [
    ("abcdefghij",),
    ("ab",),
    ("abcdefgh", "hgfedcba"),
    ("abcdefgh", "abcdefgh", "abcdefgh"),
    ("abcd", "fedc", "bx"),
    ("abcd", "efgh", "ijkl"),
    ("a", "bcdef"),
    ("a", "b", "c"),
    ("a", "a"),
]


@pytest.mark.parametrize("names", NAMES)
def test_every_measure_has_the_interval_that_loops_would_give_it_alone(names):
    samples, ids = observed(names)
    found = intervals_of_means(samples, ids)
    for column, interval in enumerate(found):
        estimate, error, freedom = looped([sample[:, column] for sample in samples], ids)
        assert (interval.error, interval.freedom) == pytest.approx((error, freedom), rel=1e-9)
        reach = stats.t.ppf(0.975, freedom) * error
        assert (interval.low, interval.high) == pytest.approx((estimate - reach, estimate + reach))


@pytest.mark.parametrize("seeds", [2, 3, 7])
def test_without_gaps_it_is_the_analysis_of_variance(seeds):
    samples, ids = observed(["abcdefghijklm"] * seeds, measures=8)
    floored = 0
    for column, interval in enumerate(intervals_of_means(samples, ids)):
        of_seeds, of_texts, residual = mean_squares(np.array([sample[:, column] for sample in samples]))
        squared = max(of_seeds + of_texts - residual, of_seeds, of_texts) / (seeds * 13)
        floored += of_seeds + of_texts - residual < max(of_seeds, of_texts)
        assert interval.error**2 == pytest.approx(squared)
    assert floored < 8


def test_less_than_the_larger_part_is_never_the_error():
    rng = np.random.default_rng(0)
    table = rng.normal(
        size=(4, 10, 200)
    )  # neither seeds nor texts differ: half of the differences are negative
    found = intervals_of_means([*table], [np.arange(10)] * 4)
    larger = [max(mean_squares(table[:, :, n])[:2]) / 40 for n in range(200)]
    assert all(one.error**2 >= least * (1 - 1e-9) for one, least in zip(found, larger, strict=True))
    assert sum(one.error**2 <= least * (1 + 1e-9) for one, least in zip(found, larger, strict=True)) > 50


GAPS = {
    "none": [range(40)] * 4,
    "some": [range(start, start + 28) for start in (0, 4, 8, 12)],
    "other sizes": [range(40), range(10), range(20, 40), range(5, 25)],
    "no text shared": [range(start, start + 10) for start in (0, 10, 20, 30)],
}


@pytest.mark.parametrize("ids", GAPS.values(), ids=GAPS)
def test_the_squared_error_is_the_variance_whatever_is_missing(ids):
    rng, many = np.random.default_rng(0), 6000
    seeds, texts = rng.normal(0, 0.5, size=(4, many)), rng.normal(0, 1.0, size=(40, many))
    samples = [
        texts[[*own]] + seed + rng.normal(0, 1.0, size=(len(own), many))
        for own, seed in zip(ids, seeds, strict=True)
    ]
    estimates = np.mean([sample.mean(axis=0) for sample in samples], axis=0)
    found = intervals_of_means(samples, [np.array(own) for own in ids])
    squared = np.mean([one.error**2 for one in found])
    assert squared == pytest.approx(estimates.var(), rel=0.08)  # the floor adds a little, never takes away


def test_what_the_interval_is_over_is_said():
    kinds = {names: intervals_of_means(*observed(names))[0].interval for names in NAMES}
    assert kinds["abcdefghij",] == "instances"
    assert kinds["abcdefgh", "hgfedcba"] == "seeds, instances"
    assert kinds["a", "a"] == "seeds"


@pytest.mark.parametrize("names", [("",), ("a",)])
def test_what_cannot_vary_has_no_interval(names):
    samples = [np.ones((len(own), 3)) for own in names]
    found = intervals_of_means(samples, [np.array(list(own), dtype=object) for own in names])
    assert len(found) == 3
    assert all(math.isnan(one.low) and math.isnan(one.error) and one.interval == "none" for one in found)


def test_no_spread_at_all_is_an_error_of_nothing():
    (found,) = intervals_of_means([np.ones((5, 1))] * 3, [np.arange(5)] * 3)
    assert (found.low, found.high, found.error, found.freedom) == (1.0, 1.0, 0.0, 2.0)


def test_an_infinite_value_has_no_interval_and_disturbs_no_other():
    samples, ids = observed(("abcdef", "abcdef"))
    expected = intervals_of_means(samples, ids)
    samples[0][2, 1] = math.inf
    found = intervals_of_means(samples, ids)
    assert math.isnan(found[1].error) and (found[0], found[2]) == (expected[0], expected[2])


def test_other_measures_beside_it_and_the_order_of_rows_change_nothing():
    samples, ids = observed(("abcdefgh", "bcdefghi"))
    together = intervals_of_means(samples, ids)[1]
    (alone,) = intervals_of_means([sample[::-1, 1:2] for sample in samples], [own[::-1] for own in ids])
    assert alone[:4] == pytest.approx(together[:4], rel=1e-12)


def test_seeds_that_answer_alike_are_worth_one():
    samples, ids = observed(("abcdefghijklmnop",))
    one, many = intervals_of_means(samples, ids)[0], intervals_of_means(samples * 6, ids * 6)[0]
    assert many.error == pytest.approx(one.error) and many.freedom == pytest.approx(one.freedom)


def test_two_seeds_that_lie_close_by_luck_do_not_get_the_freedom_of_the_texts():
    rng = np.random.default_rng(0)
    text, noise = rng.normal(size=200), rng.normal(0, 0.1, size=(2, 200))
    apart = 0.05 * np.array([[1], [-1]])
    centred = noise - noise.mean(axis=1, keepdims=True)
    (found,) = intervals_of_means([*(text + centred + apart)[:, :, None]], [np.arange(200)] * 2)
    assert found.freedom < 20  # the texts' part is two thirds of the variance, and alone would have 199


def test_nobody_computes_an_interval_that_nobody_looks_at(monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr(crossed, "combined", never)
    with estimates_alone():
        assert intervals_of_means(*observed(("abc", "abc")))[0].interval == "none"
        assert interval_of_seeds([1.0, 2.0]).interval == "none"


def test_against_a_number_on_the_same_texts_only_seeds_count():
    values = [0.2, 0.5, 0.8]
    expected = (0.5, 0.3 / math.sqrt(3), 2.0)
    assert over_seeds_only(values) == pytest.approx(expected)
    assert over_seeds_only(seeds_as_json(values)) == pytest.approx(expected)
    low, high, error, freedom, kind = interval_of_seeds(values)
    assert (error, freedom, kind) == (pytest.approx(expected[1]), 2.0, "seeds")
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 2, 0.5, expected[1]))
    assert over_seeds_only([0.4])[0] == 0.4 and math.isnan(over_seeds_only([0.4])[1])
    assert all(math.isnan(each) for each in over_seeds_only(""))
