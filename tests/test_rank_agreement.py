"""Rank agreement against scipy, the definitions, and slow twins."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall, mutual_information, weighted_kendall

unhurried = settings(deadline=None, max_examples=60)  # the first call compiles the shape checks
tied = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=25)


@unhurried
@given(tied, st.randoms(use_true_random=False))
def test_kendall_is_scipys(x, random):
    y = random.choices([-2.0, -1.0, 0.0, 0.5, 3.0], k=len(x))
    expected = stats.kendalltau(x, y)
    np.testing.assert_array_equal(kendall(x, y), (expected.statistic, expected.pvalue))


@unhurried
@given(tied, st.randoms(use_true_random=False))
def test_kendall_is_tau_b_by_its_definition(x, random):
    y = random.choices([-2.0, -1.0, 0.0, 0.5, 3.0], k=len(x))
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    pairs = [
        (np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in itertools.combinations(range(len(x)), 2)
    ]
    agree = sum(a * b for a, b in pairs)
    untied = math.sqrt(sum(a != 0 for a, _ in pairs) * sum(b != 0 for _, b in pairs))
    assert kendall(x, y)[0] == pytest.approx(agree / untied, abs=1e-12)


@pytest.mark.parametrize("x", [[], [1.0], [2.0, 2.0, 2.0], [1.0, math.nan, 2.0]])
def test_without_a_ranking_kendall_is_nan(x):
    other = list(range(len(x)))
    for pair in ((x, other), (other, x)):
        assert all(math.isnan(value) for value in kendall(*pair))


@pytest.mark.parametrize("kernel", [kendall, mutual_information, lambda x, y: weighted_kendall(x, y, y)])
def test_vectors_that_do_not_match_are_refused(kernel):
    with pytest.raises(Refusal, match="one length"):
        kernel([1, 2, 3], [1, 2])
    with pytest.raises(Refusal, match="flat"):
        kernel([[1, 2]], [[1, 2]])


def looped_weighted_kendall(x, y, weights):
    """The formula, pair by pair."""
    above = below = 0.0
    for i, j in itertools.combinations(range(len(x)), 2):
        product = weights[i] * weights[j]
        above += product * np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])
        below += product
    return above / below


@unhurried
@given(tied, st.randoms(use_true_random=False))
def test_weighted_kendall_equals_its_slow_twin(x, random):
    y = random.choices([-2.0, 0.0, 0.5, 3.0], k=len(x))
    weights = random.choices([0.25, 0.5, 1.0, 7.0], k=len(x))
    value = weighted_kendall(x, y, weights)
    assert value == pytest.approx(looped_weighted_kendall(x, y, weights), abs=1e-12)
    assert value == pytest.approx(-weighted_kendall(x, [-v for v in y], weights), abs=1e-12)
    assert -1 <= value <= 1


@unhurried
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=20, unique=True), st.randoms(use_true_random=False))
def test_equal_weights_and_no_ties_give_plain_kendall(x, random):
    y = random.sample(range(len(x)), k=len(x))
    assert weighted_kendall(x, y, [3.0] * len(x)) == pytest.approx(kendall(x, y)[0], abs=1e-12)


def test_weighted_kendall_in_closed_form():
    rank, weights = [5.0, 4.0, 3.0, 2.0, 1.0], [0.5, 0.25, 0.125, 0.0625, 0.0625]
    assert weighted_kendall(rank, rank, weights) == 1
    assert weighted_kendall(rank[::-1], rank, weights) == -1
    assert weighted_kendall([1.0] * 5, rank, weights) == 0
    # One dominant weight leaves only the pairs with rank 1: two of four here agree with it.
    assert weighted_kendall([3.0, 9.0, 1.0, 2.0, 8.0], rank, [1.0, *[1e-9] * 4]) == pytest.approx(0, abs=1e-8)
    assert weighted_kendall([3.0, 9.0, 1.0, 2.0, 0.0], rank, [1.0, *[1e-9] * 4]) == pytest.approx(
        0.5, abs=1e-8
    )


def check_weights_multiply(measure):
    """Pairs of weight 6, 2 and 3: one agrees, two do not."""
    assert measure([1.0, 2.0, 0.0], [1.0, 2.0, 3.0], [2.0, 3.0, 1.0]) == pytest.approx((6 - 2 - 3) / 11)


def with_added_weights(x, y, weights):
    pairs = list(itertools.combinations(range(len(x)), 2))
    signs = [np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs]
    return np.average(signs, weights=[weights[i] + weights[j] for i, j in pairs])


def test_weights_multiply():
    check_weights_multiply(weighted_kendall)
    with pytest.raises(AssertionError):
        check_weights_multiply(with_added_weights)


@pytest.mark.parametrize(
    "weights",
    [
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [1.0, -1.0, 1.0],
        [1.0, math.nan, 1.0],
        [math.inf, 1.0, 1.0],
        [1e300, 1e-300, 1e-300],
    ],
)
def test_weights_that_leave_no_pair_give_nan(weights):
    assert math.isnan(weighted_kendall([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], weights))


def test_weighted_kendall_survives_extremes():
    assert weighted_kendall([math.inf, 0.0, -math.inf], [3.0, 2.0, 1.0], [1e-200] * 3) == 1
    assert math.isnan(weighted_kendall([1.0, math.nan], [1.0, 2.0], [1.0, 1.0]))
    assert math.isnan(weighted_kendall([1.0], [1.0], [1.0])) and math.isnan(weighted_kendall([], [], []))
