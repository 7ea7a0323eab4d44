"""The lower convex envelope of points: what a sweep could reach if its members were mixed.

Of adversaries at (divergence of attention, change of output), tossing a coin between two of them for every
text reaches, on average, each point of the line between theirs. So the lower boundary of all that can be
mixed is convex, and a single lucky or unlucky training does not bend it upwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from attentest.refusal import Refusal
from attentest.statistics.comparison import Numbers

Point: TypeAlias = tuple[float, float]


def lower_envelope(x: Numbers, y: Numbers) -> list[Point]:
    """The corners of the lower convex envelope, from left to right (Andrew's monotone chain).

    Points with a NaN are left out; of points above one another the lowest counts.
    """
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if across.ndim != 1 or across.shape != up.shape:
        raise Refusal(
            "the envelope of points",
            got=f"shapes {across.shape} and {up.shape}",
            needs="one place and one height for every point",
            way_out="Pass two flat vectors of one length.",
        )
    known = ~(np.isnan(across) | np.isnan(up))
    lowest: dict[float, float] = {}
    for at, height in sorted(zip(across[known].tolist(), up[known].tolist(), strict=True)):
        lowest.setdefault(at, height)
    corners: list[Point] = []
    for point in lowest.items():
        while len(corners) > 1 and not _turns_up(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return corners


def envelope_height(corners: Sequence[Point], at: float) -> float:
    """How high the envelope is there; beyond its ends, the least that it could be.

    A convex curve lies above the line through any two of its points wherever it is continued, so beyond an
    end the line through the last two corners bounds every continuation from below. The heights are total
    variations: none is below 0, and where the line leaves through 1 there is no continuation, and 1 it is. A
    single corner has no such line: NaN beside it, as for no corner at all.
    """
    if math.isnan(at) or not corners:
        return math.nan
    if len(corners) == 1:
        return corners[0][1] if at == corners[0][0] else math.nan
    if at < corners[0][0]:
        return min(max(0.0, _on_line(corners[0], corners[1], at)), 1.0)
    if at > corners[-1][0]:
        return min(max(0.0, _on_line(corners[-2], corners[-1], at)), 1.0)
    left, right = next(edge for edge in pairwise(corners) if at <= edge[1][0])
    return _on_line(left, right, at)


def _turns_up(first: Point, second: Point, third: Point) -> bool:
    """Whether the way over these three points bends upwards."""
    rise = (second[0] - first[0]) * (third[1] - first[1])
    return rise > (second[1] - first[1]) * (third[0] - first[0])


def _on_line(left: Point, right: Point, at: float) -> float:
    share = (at - left[0]) / (right[0] - left[0])
    return (1.0 - share) * left[1] + share * right[1]
