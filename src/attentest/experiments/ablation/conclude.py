"""What weights that attention did not choose do to the output: uniform ones, and its own in another order.

Shuffling many times and taking the median (JW-4) says how much the places matter. One shuffle and one even
spread say what becomes of a single text, which a person can look at; their means over texts are here.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from attentest.experiments.ablation import ABOUT
from attentest.experiments.ablation.cards import CARDS
from attentest.experiments.description import Conclusion
from attentest.statistics.group_means import CONTROLS, Group, Means, Measure, by_class, of_controls
from attentest.statistics.record import Finding, ordered

ASKED = ("uniform", "permuted")  # of every text
EXPLAINED = ("gradient", "loo", "rationale")  # of the texts kept whole: nothing is concluded from these
WHO = ("seed", "subject", "id", "predicted", "length")
COLUMNS = (*WHO, *(f"{name}_{what}" for name in ASKED for what in ("change", "predicted")))
ONE_UNIT = "one unit: no other weights"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Mean output change and share of flipped predictions: overall, by predicted class, of the controls.

    The null is the untrained models' mean in the group of the same name: what such weights do to an output
    that has learnt nothing. Untrained models have no null but themselves.
    """
    rows = ordered(rows, COLUMNS)
    trained, untrained = (rows[rows["subject"] == subject] for subject in ("trained", "untrained"))
    if trained.empty:
        return []
    means = Means(experiment="ablation", rows=rows, mode=mode, rng=rng)
    values = {name: column for one in ASKED for name, column in _values(rows, one).items()}
    why = pd.Series(ONE_UNIT, index=rows.index)
    nulls = {**dict(_groups(untrained)), CONTROLS[1]: untrained}
    found = []
    for name, texts in [*_groups(trained), *of_controls(rows)]:
        null = nulls.get(name, untrained.iloc[:0]).index
        measures = [
            Measure(name=measure, values=column, null=means.mean(column.loc[null]), why=why)
            for measure, column in values.items()
        ]
        found += means.of(measures, [(name, texts)])
    return found


def _groups(rows: pd.DataFrame) -> list[Group]:
    return [("overall", rows), *by_class(rows, "predicted", "predicted")]


def _values(rows: pd.DataFrame, name: str) -> dict[str, pd.Series]:
    change = rows[f"{name}_change"].astype(np.float64)
    flipped = (rows[f"{name}_predicted"] != rows["predicted"]).astype(np.float64).where(change.notna())
    return {f"{name}-output-change": change, f"{name}-flips": flipped}


CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
