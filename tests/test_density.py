"""Densities, shares and violins: areas of one, every value counted, nothing invented."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attentest.statistics.density import CUT, SHARPEST, SPANS, density, finite, shares, violins

TAUS = st.lists(st.floats(-1, 1), min_size=1, max_size=60)
TAU_EDGES = np.linspace(-1, 1, 31)


def series(values):
    return pd.Series(values, dtype=float)


@given(TAUS)
def test_shares_sum_to_one_and_count_each_value_where_it_is(values):
    found = shares(series(values), TAU_EDGES)
    assert found.sum() == pytest.approx(1)
    # The slow twin: a value belongs to the last bin that begins at or before it, one to the last of all.
    places = [min(int(np.searchsorted(TAU_EDGES, value, side="right")) - 1, 29) for value in values]
    assert (found * len(values)).round().astype(int).tolist() == np.bincount(places, minlength=30).tolist()


def test_what_is_no_number_is_left_out_of_shares_and_their_total():
    values = pd.Series([0.5, None, np.nan, np.inf, "x", 0.5], dtype=object)
    found = shares(values, TAU_EDGES)
    assert found.max() == 1 and found.sum() == 1 and finite(values).tolist() == [0.5, 0.5]
    assert shares(series([np.nan]), TAU_EDGES).tolist() == [0.0] * 30
    assert shares(series([1 + 1e-12, -1 - 1e-12]), TAU_EDGES)[[0, -1]].tolist() == [0.5, 0.5]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_a_density_has_area_one_and_ends_just_beyond_its_values(values):
    curve = density(series(values))
    if np.std(values, ddof=1) < 1e-9:
        assert curve is None
        return
    assert np.trapezoid(curve.height, curve.at) == pytest.approx(1)
    assert (curve.at[0], curve.at[-1]) == pytest.approx((min(values) - CUT, max(values) + CUT))
    assert (curve.height >= 0).all() and curve.height.max() > 0


def test_a_density_is_the_kernel_estimate_where_nothing_is_cut(rng):
    values = rng.normal(0, 0.2, 400)
    curve = density(series(values), points=301)
    by_hand = stats.norm.pdf((curve.at[:, None] - values) / (values.std(ddof=1) * 400**-0.2)).sum(1)
    assert curve.height == pytest.approx(by_hand / np.trapezoid(by_hand, curve.at), rel=1e-9)


def test_a_spike_keeps_a_width_that_the_points_can_show(rng):
    values = np.append(np.full(10_000, 0.3) + rng.normal(0, 1e-7, 10_000), 1.0)
    curve = density(series(values))
    peak = curve.at[curve.height.argmax()]
    assert peak == pytest.approx(0.3, abs=SHARPEST) and curve.height.max() < 1 / SHARPEST


@pytest.mark.parametrize("values", [[], [0.4], [0.4] * 9, [np.nan, 0.4], [1e-170, 0.0], [np.nan] * 3])
def test_one_value_has_no_density(values):
    assert density(series(values)) is None


def texts(**columns):
    return pd.DataFrame(columns)


def test_violins_sort_texts_by_largest_weight_and_group():
    rows = texts(
        max_attention=[0.0, 0.24, 0.25, 0.5, 0.75, 1.0, 1.0000001, np.nan, 0.1],
        value=[0.1, 0.3, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, np.nan],
    )
    found = list(violins(rows, "value", pd.Series(["a"] * 9)))
    assert [(v.span, v.n) for v in found] == list(zip(SPANS, (2, 1, 1, 3), strict=True))
    assert found[0].curve is not None and found[1].curve is None
    assert found[1].quartiles == (0.2, 0.2, 0.2) and found[3].quartiles == pytest.approx((0.45, 0.5, 0.55))
    grouped = list(violins(rows, "value", pd.Series(list("ababababa"))))
    assert sum(v.n for v in grouped) == 7 and {v.group for v in grouped} == {"a", "b"}
