"""A covering part of a grid really covers it, and the rest runs under `slow`."""

from itertools import combinations, product

from tests.grids import covering, pairwise

GRID = [point for point in product("abcd", range(3), "xyz", (False, True)) if point[:2] != ("a", 0)]


def pairs_of(points):
    return {(i, j, point[i], point[j]) for point in points for i, j in combinations(range(4), 2)}


def test_every_pair_of_values_is_covered_by_few_points():
    few = covering(GRID)
    assert pairs_of(few) == pairs_of(GRID) and set(few) <= set(GRID)
    assert len(few) == len(set(few)) < len(GRID) / 3
    assert few == covering(GRID), "workers must collect the same tests"


def test_no_point_of_the_grid_is_lost():
    found = pairwise(GRID)
    assert [param.values[0] for param in found] == GRID
    assert {param.values[0] for param in found if not param.marks} == set(covering(GRID))
    assert all([mark.name for mark in param.marks] in ([], ["slow"]) for param in found)
