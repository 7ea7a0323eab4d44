"""What uniform attention costs: the first table of Wiegreffe & Pinter (2019), WP-1."""

from __future__ import annotations

import numpy as np
import pandas as pd

from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.variants import Contest, scored, seed_difference
from attentest.statistics.group_means import CONTROLS
from attentest.statistics.record import Finding, ordered

EXPERIMENT = "uniform-baseline"
COLUMNS = performance.COLUMNS
SUBJECTS = ("trained", "uniform", *CONTROLS)


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Scores of trained, uniform and control models, and what uniform attention loses.

    A loss stands beside the mean difference between two seeds of the trained model: no smaller one says
    that attention is needed.
    """
    rows = ordered(rows, COLUMNS)
    if (rows["subject"] != "trained").all():
        return []
    found = scored(EXPERIMENT, rows, SUBJECTS, mode=mode, rng=rng)
    contest = Contest(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    for measure in performance.MEASURES:
        null = seed_difference(contest.of_seeds(measure, "trained"))
        found += contest.beyond(
            measure, "trained", ("uniform",), name=f"{measure}-lost", group="overall", null=null
        )
    return found
