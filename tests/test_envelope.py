"""The lower convex envelope beside its definition: the least that mixtures of two points reach."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from attentest.refusal import Refusal
from attentest.statistics.envelope import envelope_height, lower_envelope

coordinates = st.integers(0, 20).map(lambda number: number / 20)
points = st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=12)
# Sixteenths are exact in floating point, so three points on a line are: with 0.05 rounding may bend it.
sixteenths = st.integers(0, 16).map(lambda number: number / 16)
exact_points = st.lists(st.tuples(sixteenths, sixteenths), min_size=1, max_size=12)


def lowest_mixture(points, at):
    """Over all pairs around the place, the lowest point of the line between them."""
    found = [math.inf]
    for x, y in points:
        for u, v in points:
            if x == at:
                found.append(y)
            elif x < at <= u:
                found.append(y + (v - y) * (at - x) / (u - x))
    return min(found)


@given(points, st.floats(0, 1))
def test_the_envelope_is_the_lowest_mixture(points, share):
    corners = lower_envelope(*zip(*points, strict=True))
    left, right = min(points)[0], max(points)[0]
    at = left + share * (right - left)
    assert envelope_height(corners, at) == pytest.approx(lowest_mixture(points, at), abs=1e-12)


@given(exact_points)
def test_its_corners_are_points_and_bend_upwards(points):
    corners = lower_envelope(*zip(*points, strict=True))
    assert set(corners) <= set(points)
    assert (corners[0], corners[-1][0]) == (min(points), max(points)[0])
    slopes = [(v - y) / (u - x) for (x, y), (u, v) in pairwise(corners)]
    assert all(first < second for first, second in pairwise(slopes))


@given(points, st.sampled_from([-0.3, 1.4]), st.floats(1e-3, 1))
def test_beyond_the_ends_no_convex_curve_is_lower(points, at, by):
    corners = lower_envelope(*zip(*points, strict=True))
    assume(len(corners) > 1)
    end, height = corners[0 if at < 0 else -1], envelope_height(corners, at)
    above = lower_envelope(*zip(*corners, (at, height + by), strict=True))
    if height < 1:
        assert end in above, "a point above the continued edge leaves every corner a corner"
    if height > 0:
        below = lower_envelope(*zip(*corners, (at, height - by), strict=True))
        assert end not in below, "and one below cuts the end off"


def test_by_hand():
    x, y = [0.0, 0.2, 0.4, 0.6, 0.4], [0.1, 0.3, 0.1, 0.5, 0.2]
    corners = lower_envelope(x, y)
    assert corners == [(0.0, 0.1), (0.4, 0.1), (0.6, 0.5)]
    assert [envelope_height(corners, at) for at in (0.2, 0.5, 0.7, -1.0)] == pytest.approx(
        [0.1, 0.3, 0.7, 0.1]
    )
    falling = lower_envelope([0.2, 0.4], [0.3, 0.1])
    assert envelope_height(falling, 0.6) == 0.0, "no change of output is below none"
    steep = lower_envelope([0.655, 0.656], [0.1, 0.3])
    assert envelope_height(steep, 0.7) == envelope_height(steep, 0.9) == 1.0, "and none is above all"


def test_what_is_undefined_is_nan():
    assert lower_envelope([], []) == [] and math.isnan(envelope_height([], 0.5))
    assert lower_envelope([0.1, math.nan, 0.3], [0.2, 0.0, math.nan]) == [(0.1, 0.2)]
    alone = lower_envelope([0.1], [0.2])
    assert envelope_height(alone, 0.1) == 0.2 and math.isnan(envelope_height(alone, 0.2))
    assert math.isnan(envelope_height([(0.0, 0.0), (1.0, 1.0)], math.nan))
    with pytest.raises(Refusal, match="one height for every point"):
        lower_envelope(np.zeros(3), np.zeros(2))
