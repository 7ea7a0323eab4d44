"""The mean number of units."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from attentest.experiments.word_count import ABOUT

from attentest.experiments.description import Conclusion
from attentest.statistics.card import Card
from attentest.statistics.group_means import Means, Measure, of_controls
from attentest.statistics.record import Finding, ordered

COLUMNS = ("seed", "subject", "id", "units")


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts, overall and for the controls."""
    rows = ordered(rows, COLUMNS)
    units = Measure(name="units", values=rows["units"], null=math.nan, why=pd.Series("", index=rows.index))
    means = Means(experiment="word-count", rows=rows, mode=mode, rng=rng)
    return means.of([units], [("overall", rows[rows["subject"] == "trained"]), *of_controls(rows)])


CARDS = {
    "word-count/units": Card(
        measure="Units of a text",
        formula="mean over texts of the number of units",
        range=(0.0, math.inf),
        direction="none",
        null="none",
        unit="units",
        paper="jain2019attention",
        section="none",
        undefined_when="never",
    )
}
CONCLUSION = Conclusion(conclude, version=1, about=ABOUT, cards=CARDS, columns=COLUMNS)
