"""Top-k agreement against slow twins that follow the definitions case by case."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attentest.refusal import Refusal
from attentest.statistics.top_k import distance, overlap

unhurried = settings(deadline=None, max_examples=100)
scores = st.lists(st.integers(-2, 6).map(float), min_size=2, max_size=14)


def top(x, k):
    return sorted(range(len(x)), key=lambda token: (-x[token], token))[:k]


def looped_overlap(x, y, k):
    first, second = top(x, k), top(y, k)
    return len({*first} & {*second}) / len(first)


def looped_distance(x, y, k):
    """The four cases of Fagin, Kumar and Sivakumar for an unordered pair of listed tokens."""
    first, second = top(x, k), top(y, k)
    cost = sum(price(i, j, first, second) for i, j in itertools.combinations(sorted({*first} | {*second}), 2))
    size = len(first)
    return cost / (size**2 + size * (size - 1) / 2)


def price(i, j, first, second):
    inside = [[token in ranked for token in (i, j)] for ranked in (first, second)]
    if all(inside[0]) and all(inside[1]):
        return (first.index(i) < first.index(j)) != (second.index(i) < second.index(j))
    for both, ranked, other in ((0, first, 1), (1, second, 0)):
        if all(inside[both]) and any(inside[other]):  # what only one list has is below in the other
            return (ranked.index(i) < ranked.index(j)) != inside[other][0]
        if all(inside[both]):
            return 0.5
    return 1


@unhurried
@given(scores, st.randoms(use_true_random=False), st.integers(1, 16))
def test_both_equal_their_slow_twins(x, random, k):
    y = random.choices([0.0, 1.0, 2.0, 3.0, 9.0], k=len(x))
    assert overlap([x], [y], [len(x)], k)[0] == pytest.approx(looped_overlap(x, y, k), abs=1e-12)
    assert distance([x], [y], [len(x)], k)[0] == pytest.approx(looped_distance(x, y, k), abs=1e-12)


def test_a_batch_and_its_variants_equal_single_texts(rng):
    x, y = rng.integers(0, 6, size=(6, 15)).astype(float), rng.normal(size=(6, 4, 15))
    lengths = np.array([15, 9, 4, 2, 3, 12])
    x[np.arange(15) >= lengths[:, None]] = math.nan  # padding may hold anything
    for measure, twin in ((overlap, looped_overlap), (distance, looped_distance)):
        together = measure(x, y, lengths, 4)
        for text, variant in itertools.product(range(6), range(4)):
            n = lengths[text]
            assert together[text, variant] == pytest.approx(twin(x[text, :n], y[text, variant, :n], 4))
        np.testing.assert_array_equal(measure(x, y[:, 1], lengths, 4), together[:, 1])


def test_the_ends_of_the_scales():
    falling = np.arange(40.0, 0.0, -1.0)[None]
    assert (overlap(falling, falling, [40], 10), distance(falling, falling, [40], 10)) == (1.0, 0.0)
    assert (overlap(falling, -falling, [40], 10), distance(falling, -falling, [40], 10)) == (0.0, 1.0)
    # All tokens are on top, in opposite orders: every pair costs 1, of what disjoint lists would cost.
    few = falling[:, :6]
    assert overlap(few, -few, [6], 10) == 1.0
    assert distance(few, -few, [6], 10) == pytest.approx(15 / (36 + 15))


def test_a_tie_goes_to_the_earlier_token():
    x, y = [[1.0, 1.0, 1.0, 1.0]], [[1.0, 1.0, 2.0, 0.0]]
    assert overlap(x, x, [4], 2) == 1.0 and distance(x, x, [4], 2) == 0.0
    assert overlap(x, y, [4], 2) == 0.5  # tokens 0 and 1 against 2 and 0


def test_no_ranking_is_nan():
    x = [[1.0, 2.0, 3.0], [1.0, math.nan, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
    y = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, math.nan], [3.0, 3.0, 3.0]]
    for measure in (overlap, distance):
        assert np.isnan(measure(x, y, [1, 3, 3, 0], 2)).all()
        assert np.isnan(measure(x, y, [3, 3, 2, 3], 2)).tolist() == [False, True, False, False]


def test_unrelated_scores_share_what_chance_gives(rng):
    x, y = rng.normal(size=(2, 4000, 18))
    found = overlap(x, y, [18] * 4000, 10)
    assert found.mean() == pytest.approx(10 / 18, abs=4 * found.std() / math.sqrt(4000))


def test_no_list_is_refused():
    with pytest.raises(Refusal, match="k = 0"):
        overlap([[1.0, 2.0]], [[1.0, 2.0]], [2], 0)
    with pytest.raises(Refusal, match="ranking many texts"):
        distance([[1.0, 2.0]], [[1.0, 2.0, 3.0]], [2], 1)
