"""Large grids of settings: a part that covers every pair of values always runs, the rest under `slow`."""

from itertools import combinations

import pytest


def _pairs(point):
    return {(i, point[i], j, point[j]) for i, j in combinations(range(len(point)), 2)}


def covering(grid):
    """Points of the grid among which every pair of two settings' values that occurs in the grid occurs.

    Greedy: the point with most pairs that are not yet covered is taken until all are. A grid of one or two
    settings is covered by all of its points.
    """
    todo = set().union(*map(_pairs, grid))
    taken = []
    while todo:
        taken.append(max(grid, key=lambda point: len(_pairs(point) & todo)))
        todo -= _pairs(taken[-1])
    return taken


def pairwise(grid):
    """The grid as parameters of a test: those that are not needed to cover every pair are marked slow."""
    grid = [tuple(point) for point in grid]
    always = set(covering(grid))
    return [
        pytest.param(point, id="-".join(map(str, point)), marks=[pytest.mark.slow] * (point not in always))
        for point in grid
    ]
