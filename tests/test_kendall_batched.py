"""Tau-b of many texts against scipy and the definition, over every road there is."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from attentest.evidence.concordance import concordant as on_tensors
from attentest.evidence.concordance import count_on
from attentest.refusal import Refusal
from attentest.statistics import rank_agreement
from attentest.statistics.comparison import kendall
from attentest.statistics.rank_agreement import SIGNIFICANT, concordance, kendalls, significant

unhurried = settings(deadline=None, max_examples=60)
vectors = st.integers(1, 12).flatmap(
    lambda width: st.lists(
        st.tuples(
            st.integers(0, width),
            *[st.lists(st.integers(-2, 3).map(float), min_size=width, max_size=width)] * 2,
        ),
        min_size=1,
        max_size=6,
    )
)


def one_by_one(x, y, lengths):
    """The slow twin: scipy, text by text and variant by variant."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    every = y if y.ndim == 3 else y[:, None]
    found = [
        [kendall(own[:n], draw[:n]) for draw in draws]
        for own, draws, n in zip(x, every, lengths, strict=True)
    ]
    return np.moveaxis(np.array(found).reshape(*every.shape[:2], 2), 2, 0).reshape(2, *y.shape[:-1])


def check(x, y, lengths):
    ours = kendalls(x, y, lengths)
    np.testing.assert_allclose(ours, one_by_one(x, y, lengths), rtol=1e-12, atol=0)
    return ours


@unhurried
@given(vectors)
def test_short_and_tied_texts_are_scipys(batch):
    lengths, x, y = zip(*batch, strict=True)
    check(x, y, lengths)


# Below, at and above the border of the exact distribution; then ranks that fill a byte and overflow it.
@pytest.mark.parametrize("tokens", [2, 3, 8, 18, 32, 33, 34, 64, 178, 253, 254, 255, 256])
@pytest.mark.parametrize("decimals", [9, 1, 0])
@pytest.mark.parametrize("related", [False, True])
def test_every_length_is_scipys(tokens, decimals, related, rng):
    x, noise = rng.normal(size=(2, 12, tokens))
    y = (noise + related * x).round(decimals)
    lengths = rng.integers(2, tokens + 1, 12)
    lengths[:6] = tokens
    check(x.round(decimals), y, lengths)


@pytest.mark.parametrize("tokens", [2, 3, 33, 34, 60, 169, 170, 171, 172, 300])
def test_orders_with_at_most_one_pair_out_of_place_are_exact_at_any_length(tokens):
    x = np.arange(float(tokens))
    swapped, twice = x.copy(), x.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    twice[[-1, 0]] = twice[[0, -1]]
    y = np.stack([x, swapped, twice, -x, -swapped, -twice])
    check(np.tile(x, (6, 1)), y, [tokens] * 6)


def test_few_tokens_have_the_p_values_of_all_their_orders():
    for n in range(2, 7):
        x = np.arange(float(n))
        orders = np.array([*itertools.permutations(x)])
        tau, p_value = kendalls(x[None], orders[None], [n])
        as_far = np.abs(tau[0][:, None]) >= np.abs(tau[0]) - 1e-9
        np.testing.assert_allclose(p_value[0], as_far.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("tokens", [5, 40])
def test_variants_are_each_compared_with_the_same_vector(tokens, rng):
    x, y = rng.normal(size=(7, tokens)).round(1), rng.normal(size=(7, 20, tokens)).round(1)
    lengths = rng.integers(0, tokens + 1, 7)
    tau, p_value = check(x, y, lengths)
    assert tau.shape == p_value.shape == (7, 20)
    for variant in range(20):
        alone = kendalls(x, y[:, variant], lengths)
        np.testing.assert_array_equal(alone, (tau[:, variant], p_value[:, variant]))


def test_padding_may_hold_anything(rng):
    x, y = rng.normal(size=(2, 5, 11))
    lengths = np.array([11, 6, 2, 1, 0])
    before = kendalls(x, y, lengths)
    padding = np.arange(11) >= lengths[:, None]
    for filling in (math.nan, math.inf, -math.inf, 0.0):
        x[padding], y[padding] = filling, -filling
        np.testing.assert_array_equal(kendalls(x, y, lengths), before)


def test_infinities_have_their_place_and_zero_no_sign():
    x = [[math.inf, 1.0, -math.inf, math.inf, 0.0, 0.0], [0.0, -0.0, 1.0, 1.0, 2.0, 3.0]]
    y = [[3.0, 2.0, 1.0, math.inf, -0.0, 0.0], [0.0, 1.0, -0.0, 2.0, 2.0, -math.inf]]
    check(x, y, [6, 6])


def test_what_has_no_ranking_is_nan_and_its_neighbours_are_not():
    x = [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, math.nan, 2.0], [1.0, 2.0, math.nan], [1.0, 2.0, 3.0]]
    y = [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [1.0, 2.0, 3.0], [2.0, 1.0, 5.0], [1.0, 2.0, 3.0]]
    tau, p_value = kendalls(x, y, [3, 3, 3, 2, 3])
    assert np.isnan(tau).tolist() == np.isnan(p_value).tolist() == [True, True, True, False, False]
    assert tau[3:].tolist() == [-1.0, 1.0]
    tau, p_value = kendalls(x, y, [0, 1, 1, 1, 1])
    assert np.isnan(tau).all() and np.isnan(p_value).all()


@pytest.mark.parametrize("setting, value", [("PAIRS_UP_TO", 9), ("PAIRS_UP_TO", 0), ("CELLS", 600)])
def test_every_road_leads_to_the_same_place(setting, value, monkeypatch, rng):
    x, y = rng.normal(size=(9, 18)).round(1), rng.normal(size=(9, 4, 18)).round(1)
    lengths = rng.integers(2, 19, 9)
    lengths[:2] = 4, 18  # on either side of the border
    before = kendalls(x, y, lengths)
    monkeypatch.setattr(rank_agreement, setting, value)
    np.testing.assert_allclose(kendalls(x, y, lengths), before, rtol=1e-12)


def test_long_texts_are_left_to_scipy(monkeypatch, rng):
    asked = []
    monkeypatch.setattr(rank_agreement, "PAIRS_UP_TO", 9)
    monkeypatch.setattr(rank_agreement, "kendall", lambda x, y: asked.append(len(x)) or (0.0, 1.0))
    kendalls(*rng.normal(size=(2, 4, 18)), [3, 18, 9, 10])
    assert asked == [18, 10]


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_nothing_to_rank_is_no_error(shape):
    tau, p_value = kendalls(np.zeros(shape), np.zeros(shape), np.zeros(shape[0], dtype=int))
    assert tau.shape == p_value.shape == shape[:1] and np.isnan(tau).all()


def test_tensors_are_taken_as_they_are(rng):
    x, y = (torch.from_numpy(some).float() for some in rng.normal(size=(2, 3, 7)))
    np.testing.assert_array_equal(
        kendalls(x, y, torch.tensor([7, 5, 2])), kendalls(x.numpy(), y.numpy(), [7, 5, 2])
    )


@pytest.mark.parametrize(
    "x, y, lengths",
    [
        ((3, 4), (3, 5), 3),
        ((3, 4), (2, 4), 3),
        ((3, 4), (3, 2, 5), 3),
        ((3, 4), (3, 4), 2),
        ((4,), (4,), 1),
        ((3, 2), (3, 2), 3),
    ],
)
def test_batches_that_do_not_fit_are_refused(x, y, lengths):
    with pytest.raises(Refusal, match="ranking many texts"):
        kendalls(np.zeros(x), np.zeros(y), [3] * lengths)


def test_significance_counts_the_threshold_and_leaves_nan():
    p_value = np.array([0.0, SIGNIFICANT, np.nextafter(SIGNIFICANT, 1), 1.0, math.nan])
    np.testing.assert_array_equal(significant(p_value), [1.0, 1.0, 0.0, 0.0, math.nan])


@unhurried
@given(vectors)
def test_concordance_counts_pairs(batch):
    lengths, x, y = (np.array(some) for some in zip(*batch, strict=True))
    real = np.arange(x.shape[1]) < lengths[:, None]
    counted = [
        sum(
            np.sign((own[i] - own[j]) * (other[i] - other[j])) for i, j in itertools.combinations(range(n), 2)
        )
        for own, other, n in zip(x, y, lengths, strict=True)
    ]
    assert concordance(x[:, None], y[:, None], real)[:, 0].tolist() == counted


def check_ties_shrink_the_variance(kernel):
    """Sparse attention ties most tokens: the p-value must be that of the ties, not of a full ranking."""
    x, y = np.repeat([0.0, 1.0], [30, 10]), np.tile([0.0, 1.0, 2.0, 3.0], 10)
    assert kernel(x[None], y[None], [40])[1][0] == pytest.approx(stats.kendalltau(x, y).pvalue, rel=1e-12)


def without_ties(x, y, lengths):
    tau, n = kendalls(x, y, lengths)[0], np.asarray(lengths)
    return tau, 2 * stats.norm.sf(np.abs(tau) * np.sqrt(9 * n * (n - 1) / 2 / (2 * n + 5)))


def test_ties_shrink_the_variance():
    check_ties_shrink_the_variance(kendalls)
    with pytest.raises(AssertionError):
        check_ties_shrink_the_variance(without_ties)


def test_counting_on_tensors_is_counting_on_bits():
    """A GPU looks at pairs of tensors; on a CPU the same code must find the same counts."""
    rng = np.random.default_rng(0)
    lengths = np.array([1, 2, 7, 30, 12])
    x = rng.integers(0, 6, size=(5, 30)).astype(float)
    y = rng.integers(0, 9, size=(5, 4, 30)).astype(float)

    def count(first, second, real):
        return on_tensors(first, second, real, torch.device("cpu"))

    for ours, theirs in zip(kendalls(x, y, lengths, count=count), kendalls(x, y, lengths), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert count_on(torch.device("cpu")) is None
