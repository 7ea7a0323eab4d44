"""The closed form of what permuting weights does to a sum, against all orders and against drawn ones."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attentest.evidence.permutation import permuted

DRAWS = 20_000


def permutation_moments(weights, values):
    """The mean and variance, over all orders of the weights, of their sum of values: the logit of JW-4.

    A weight meets every value equally often, hence the mean; every two weights meet every two values
    equally often, hence a variance that is a product of spreads. One token has no other order: NaN.
    """
    held, met = np.asarray(weights, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if len(held) < 2:
        return math.nan, math.nan
    spreads = ((held - held.mean()) ** 2).sum() * ((met - met.mean()) ** 2).sum()
    return float(held.sum() * met.mean()), float(spreads / (len(held) - 1))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 5), st.floats(-5, 5)), min_size=2, max_size=6))
def test_moments_over_all_orders(pairs):
    weights, values = np.array(pairs).T
    sums = np.array([*itertools.permutations(weights)]) @ values
    assert permutation_moments(weights, values) == pytest.approx(
        (sums.mean(), sums.var()), rel=1e-9, abs=1e-9
    )


def test_attention_has_the_printed_form(rng):
    """For weights that sum to one: mean(v), and sum((v - mean v)^2) / (T - 1) * (sum a^2 - 1 / T)."""
    weights, values = rng.dirichlet(np.ones(18)), rng.normal(size=18)
    mean, variance = permutation_moments(weights, values)
    assert mean == pytest.approx(values.mean())
    assert variance == pytest.approx(values.var(ddof=1) * ((weights**2).sum() - 1 / 18))


def test_drawn_permutations_have_these_moments(rng):
    weights, values = torch.from_numpy(rng.dirichlet(np.ones(9), size=3)), rng.normal(size=(3, 9))
    mask = torch.arange(9) < torch.tensor([[9], [5], [3]])
    weights = weights * mask
    drawn = permuted(weights, mask, DRAWS, rng=torch.Generator().manual_seed(0)).numpy()
    for text, length in enumerate((9, 5, 3)):
        mean, variance = permutation_moments(weights[text, :length].numpy(), values[text, :length])
        sums = drawn[text] @ values[text]
        fourth = ((sums - mean) ** 4).mean()
        assert abs(sums.mean() - mean) < 4 * math.sqrt(variance / DRAWS)
        assert abs(sums.var() - variance) < 4 * math.sqrt((fourth - variance**2) / DRAWS)


def test_one_token_has_no_other_order_and_uniform_weights_none_that_matters():
    assert all(math.isnan(value) for value in permutation_moments([1.0], [2.0]))
    assert permutation_moments([0.25] * 4, [1.0, 2.0, 3.0, 6.0]) == (3.0, 0.0)
