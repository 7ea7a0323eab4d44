"""Do attention and the usual explainers agree, and which of them is faithful or finds what people marked?"""

from __future__ import annotations

from itertools import combinations

from attentest.evidence.importances.names import IMPORTANCES
from attentest.experiments.description import Description

ABOUT = Description(
    name="explainers",
    title="Beside other explainers",
    asks="Does attention agree with other explainers, and which of them is faithful, or plausible to people?",
    cite="deyoung2020eraser",
)

ATTENTION, RANDOM = "attention", "random"
RANKINGS = (ATTENTION, *IMPORTANCES)
PAIRS = tuple(combinations(RANKINGS, 2))
