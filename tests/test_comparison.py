"""Divergences, entropy and mutual information against their axioms and definitions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from attentest.refusal import Refusal
from attentest.statistics.comparison import (
    jensen_shannon,
    mutual_information,
    normalised_entropy,
    total_variation,
)

LN2 = math.log(2)
unhurried = settings(deadline=None, max_examples=60)  # the first call compiles the shape checks


def as_distribution(counts):
    p = np.array(counts, dtype=np.float64)
    return p / p.sum()


# Small integers make ties and exact zeros common; both are where divergences go wrong.
counts = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)
simplex = counts.map(as_distribution)


@unhurried
@given(simplex, simplex, simplex)
def test_total_variation_is_a_metric(p, q, r):
    assert total_variation(p, p) == 0
    assert total_variation(p, q) == total_variation(q, p)
    assert 0 <= total_variation(p, q) <= 1
    assert total_variation(p, r) <= total_variation(p, q) + total_variation(q, r) + 1e-12
    assert (total_variation(p, q) > 0) == (not np.array_equal(p, q))


@unhurried
@given(simplex, simplex)
def test_total_variation_is_the_most_an_event_can_differ(p, q):
    events = itertools.chain.from_iterable(itertools.combinations(range(4), k) for k in range(5))
    worst = max(abs(p[list(event)].sum() - q[list(event)].sum()) for event in events)
    assert total_variation(p, q) == pytest.approx(worst, abs=1e-12)


def test_total_variation_of_a_binary_output_is_the_difference():
    assert total_variation([0.7, 0.3], [0.2, 0.8]) == pytest.approx(0.5)


def reference_divergence(p, q):
    """The definition, term by term."""
    both = [*zip(p, q, strict=True), *zip(q, p, strict=True)]
    return sum(0.5 * a * math.log(2 * a / (a + b)) for a, b in both if a > 0)


@unhurried
@given(simplex, simplex, simplex)
def test_jensen_shannon_is_a_bounded_divergence_whose_root_is_a_metric(p, q, r):
    assert jensen_shannon(p, p) == 0
    assert jensen_shannon(p, q) == jensen_shannon(q, p)
    assert 0 <= jensen_shannon(p, q) <= LN2
    root = math.sqrt(jensen_shannon(p, q)) + math.sqrt(jensen_shannon(q, r))
    assert math.sqrt(jensen_shannon(p, r)) <= root + 1e-7  # the root of a rounding error


def check_divergence_is_exact(divergence):
    """The definition to the last bits, where smoothing or another base would show."""
    pairs = [([1, 0, 0], [0, 1, 0]), ([0.5, 0.5, 0], [0, 0.5, 0.5]), ([1, 0, 0], [0.2, 0.3, 0.5])]
    for p, q in pairs:
        assert divergence(np.array(p), np.array(q)) == pytest.approx(reference_divergence(p, q), abs=1e-14)
    assert divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == LN2


def smoothed(p, q, small=1e-10):
    m = (p + q) / 2
    terms = p * np.log((p + small) / (m + small)) + q * np.log((q + small) / (m + small))
    return 0.5 * terms.sum()


def in_bits(p, q):
    return jensen_shannon(p, q) / LN2


def test_jensen_shannon_is_exact():
    check_divergence_is_exact(jensen_shannon)


@pytest.mark.parametrize("mutant", [smoothed, in_bits])
def test_the_exactness_check_can_fail(mutant):
    with pytest.raises(AssertionError):
        check_divergence_is_exact(mutant)


@unhurried
@given(simplex, simplex)
def test_jensen_shannon_follows_its_definition_and_bounds(p, q):
    divergence, distance = jensen_shannon(p, q), total_variation(p, q)
    assert divergence == pytest.approx(reference_divergence(p, q), abs=1e-13)
    assert distance**2 / 2 - 1e-12 <= divergence <= LN2 * distance + 1e-12  # Pinsker below, Lin above


def test_denormal_probabilities_do_not_escape_the_bounds():
    tiny = np.array([5e-324, 1.0])
    assert 0 <= jensen_shannon(tiny, [0.0, 1.0]) <= LN2
    assert jensen_shannon(tiny, [1.0, 0.0]) == pytest.approx(LN2)


@pytest.mark.parametrize("kernel", [total_variation, jensen_shannon])
def test_leading_axes_broadcast_and_scalars_come_back_as_numbers(kernel):
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=(3, 1, 2))
    q = np.random.default_rng(1).dirichlet(np.ones(5), size=(4, 2))
    together = kernel(p, q)
    assert together.shape == (3, 4, 2)
    assert together[2, 3, 1] == kernel(p[2, 0, 1], q[3, 1])
    assert isinstance(kernel(p[0, 0, 0], q[0, 0]), float)
    assert kernel(list(p[0, 0, 0]), tuple(q[0, 0])) == kernel(p[0, 0, 0], q[0, 0])


@pytest.mark.parametrize("kernel", [total_variation, jensen_shannon])
@pytest.mark.parametrize(
    "bad",
    [[math.nan, 1.0], [-0.5, 1.5], [math.inf, 0.0], [-math.inf, 1.0], [0.0, 0.0], [1.0, 1.0], [1e308, 1e308]],
)
def test_what_is_no_distribution_gives_nan_and_spares_its_neighbours(kernel, bad):
    good = [0.5, 0.5]
    assert math.isnan(kernel(bad, good)) and math.isnan(kernel(good, bad)) and math.isnan(kernel(bad, bad))
    both = kernel([bad, good], [good, good])
    assert math.isnan(both[0]) and both[1] == 0


@pytest.mark.parametrize("kernel", [total_variation, jensen_shannon])
def test_half_precision_is_still_a_distribution(kernel):
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(200), size=(2, 50)).astype(np.float16)
    assert np.isfinite(kernel(p, q)).all()


@pytest.mark.parametrize("kernel", [total_variation, jensen_shannon])
def test_distributions_over_different_things_are_refused(kernel):
    with pytest.raises(Refusal, match=r"shapes \(3,\) and \(1,\)"):
        kernel([0.2, 0.3, 0.5], [1.0])


@unhurried
@given(simplex, st.integers(0, 5))
def test_entropy_ignores_order_and_padding_but_not_the_number_of_tokens(p, padding):
    value = normalised_entropy(p)
    assert 0 <= value <= 1
    assert normalised_entropy(p[::-1]) == pytest.approx(value, abs=1e-12)
    padded = np.concatenate([p, np.full(padding, np.nan)])
    assert normalised_entropy(padded, np.arange(4 + padding) < 4) == pytest.approx(value, abs=1e-12)
    longer = normalised_entropy(np.concatenate([p, np.zeros(padding)]))
    assert longer == pytest.approx(value * math.log(4) / math.log(4 + padding), abs=1e-12)


def check_entropy_is_shared_among_all_real_tokens(entropy):
    assert entropy(np.array([0.5, 0.5, 0.0, 0.0])) == pytest.approx(0.5)


def over_the_support(p):
    return stats.entropy(p) / math.log((p > 0).sum())


def test_entropy_is_shared_among_all_real_tokens():
    check_entropy_is_shared_among_all_real_tokens(normalised_entropy)
    with pytest.raises(AssertionError):
        check_entropy_is_shared_among_all_real_tokens(over_the_support)


def test_entropy_of_the_extremes():
    assert normalised_entropy(np.full(7, 1 / 7)) == pytest.approx(1)
    assert normalised_entropy([0.0, 1.0, 0.0]) == 0
    assert isinstance(normalised_entropy([0.5, 0.5]), float)


def test_entropy_is_nan_where_there_is_nothing_to_spread():
    weights = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [1.2, -0.2, 0.0], [0.5, 0.0, 0.5]])
    mask = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0]], dtype=bool)
    values = normalised_entropy(weights, mask)
    assert np.isnan(values).tolist() == [True, False, True, True, True]
    assert values[1] == 1
    assert math.isnan(normalised_entropy([1.0]))
    by_head = normalised_entropy(np.stack([weights, weights], axis=1), mask[:, None, :])
    np.testing.assert_array_equal(by_head[:, 1], values)


labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=60)


@unhurried
@given(labels)
def test_mutual_information_is_entropy_in_common(pairs):
    x, y = ([pair[side] for pair in pairs] for side in (0, 1))

    def entropy(symbols):
        return stats.entropy(np.unique(symbols, return_counts=True, axis=0)[1])

    value = mutual_information(x, y)
    assert value == pytest.approx(entropy(x) + entropy(y) - entropy(pairs), abs=1e-12)
    assert value == mutual_information(y, x)
    assert 0 <= value <= min(entropy(x), entropy(y)) + 1e-12
    assert value == mutual_information(x[::-1], y[::-1])
    assert value == mutual_information(["abcde"[symbol] for symbol in x], y)


def test_a_copy_tells_everything_and_a_constant_nothing():
    x = ["a", "a", "b", "c"]
    assert mutual_information(x, x) == pytest.approx(stats.entropy([2, 1, 1]))
    assert mutual_information(x, [0, 0, 0, 0]) == 0
    assert mutual_information([0, 0, 1, 1], [0, 1, 0, 1]) == 0


def test_independent_symbols_show_the_known_bias():
    rng = np.random.default_rng(0)
    n, nx, ny = 4000, 10, 5
    values = [mutual_information(rng.integers(nx, size=n), rng.integers(ny, size=n)) for _ in range(40)]
    assert np.mean(values) == pytest.approx((nx - 1) * (ny - 1) / (2 * n), rel=0.1)


def test_missing_labels_leave_mutual_information_undefined():
    assert math.isnan(mutual_information([], []))
    assert math.isnan(mutual_information([0.0, math.nan], [0.0, 1.0]))
