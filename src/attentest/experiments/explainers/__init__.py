"""Do attention and the usual explainers agree, and which of them is faithful or finds what people marked?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from attentest.evidence.importances.names import further
from attentest.experiments.description import Description

ABOUT = Description(
    name="explainers",
    title="Beside other explainers",
    asks="Does attention agree with other explainers, and which of them is faithful, or plausible to people?",
    cite="deyoung2020eraser",
)

ATTENTION, RANDOM = "attention", "random"
# What the rows of every study have; what the catalogue has beyond these is the parameter `also`.
OWN = ("gradient", "leave-one-out", "integrated-gradients", "shapley", "lime")
RANKINGS = (ATTENTION, *OWN)
ALSO = further(OWN)


def pairs(rankings: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Every two rankings, in the order of columns."""
    return tuple(combinations(rankings, 2))
