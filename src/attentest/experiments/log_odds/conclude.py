"""What learnt attention adds to a bag of words' (JW-6): every variant's scores, and how alike they look."""

from __future__ import annotations

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.log_odds import ABOUT
from attentest.experiments.log_odds.cards import CARDS
from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.variants import scored
from attentest.statistics.group_means import Means, Measure, reasons
from attentest.statistics.record import Finding, ordered

EXPERIMENT = "log-odds"
COLUMNS = (*performance.COLUMNS, "length", "jsd", "null_jsd", "tau")
VARIANTS = ("trained", "imposed", "log-odds", "regularised", "last state")
LEARNT = ("trained", "regularised")  # whose attention is their own
UNDEFINED = "constant or NaN vector"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Accuracy, F1 and AUC of each variant, and how near learnt attention is to the log-odds.

    A group is a variant. Scores stand beside the best constant answer, divergences beside that of uniform
    attention, rank correlations beside 0.
    """
    rows = ordered(rows, COLUMNS)
    findings = scored(EXPERIMENT, rows, VARIANTS, mode=mode, rng=rng)
    why = reasons(rows, UNDEFINED)
    likeness = [
        Measure(name="jsd-to-log-odds", values=rows["jsd"], null=rows["null_jsd"], why=why),
        Measure(name="tau-to-log-odds", values=rows["tau"], null=0.0, why=why),
    ]
    means = Means(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    return findings + means.of(likeness, [(variant, rows[rows["subject"] == variant]) for variant in LEARNT])


CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
