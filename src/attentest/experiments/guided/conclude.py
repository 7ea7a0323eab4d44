"""Whose weights guide a token-wise MLP best: the diagnostic of Wiegreffe & Pinter (2019), WP-3."""

from __future__ import annotations

import numpy as np
import pandas as pd

from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.variants import Contest, scored
from attentest.statistics.group_means import CONTROLS
from attentest.statistics.record import Finding, ordered

EXPERIMENT = "guided"
COLUMNS = performance.COLUMNS
GUIDED_BY = "guided by "
UNIFORM, BASE = f"{GUIDED_BY}uniform", f"{GUIDED_BY}base"
PUBLISHED = (UNIFORM, f"{GUIDED_BY}own", BASE, f"{GUIDED_BY}adversary")
NULLS = tuple(GUIDED_BY + control for control in CONTROLS)  # weights of models that learnt nothing
MEASURES = ("f1", "accuracy")


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Scores of the MLP under each guide, beside the base's and its adversary's own, and two contests.

    Every guide against uniform weights, with the null of weights from an untrained model; and the base's
    against the best of the other three.
    """
    rows = ordered(rows, COLUMNS)
    if (rows["subject"] != "trained").all():
        return []
    subjects = ("trained", "trained adversary", *PUBLISHED, *NULLS)
    found = scored(EXPERIMENT, rows, subjects, mode=mode, rng=rng)
    contest = Contest(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    for measure in MEASURES:
        found += _against_uniform(contest, measure)
        others = [guide for guide in PUBLISHED if guide != BASE]
        name = f"{measure}-beyond-others"
        found += contest.beyond(measure, BASE, others, name=name, group=BASE, null=0.0)
    return found


def _against_uniform(contest: Contest, measure: str) -> list[Finding]:
    found: list[Finding] = []
    null = float("nan")
    for guide in (*NULLS, *PUBLISHED):  # the untrained one first: it is what the others are held against
        if guide != UNIFORM:
            name = f"{measure}-beyond-uniform"
            new = contest.beyond(measure, guide, (UNIFORM,), name=name, group=guide, null=null)
            null = new[0].estimate if guide == NULLS[0] and new else null
            found += new
    return found
