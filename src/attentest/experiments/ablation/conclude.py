"""What weights that attention did not choose do to the output: uniform ones, and its own in another order.

Shuffling many times and taking the median (JW-4) says how much the places matter. One shuffle and one even
spread say what becomes of a single text, which a person can look at; their means over texts are here.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from attentest.experiments.ablation import ABOUT
from attentest.experiments.description import Conclusion
from attentest.statistics.card import OF_UNTRAINED, Card
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


# --- the cards

KINDS = {
    "uniform": ("uniform attention", "1 / units"),
    "permuted": ("permuted attention", "one random permutation of a, drawn for each text"),
}
NULL = f"the same on untrained models, in the group of the same name, which have none. {OF_UNTRAINED}"
OURS = "ours, after Wiegreffe & Pinter (2019), who train under such attention"
AFTER = {"uniform": OURS, "permuted": "ours; the paper takes the median of many permutations (4.2.1)"}
PAPERS = {"uniform": "wiegreffe2019attention", "permuted": "jain2019attention"}


def _changes(name: str, title: str, weights: str) -> Card:
    return Card(
        measure=f"Output change under {title}",
        formula=f"mean over texts of TVD(y(w), y(a)), w being {weights}; nothing is trained again",
        range=(0.0, 1.0),
        direction="higher: the output depends on the weights the model learnt",
        null=NULL,
        unit="total variation distance",
        paper=PAPERS[name],
        section=AFTER[name],
        undefined_when="the text has one unit",
    )


def _flips(name: str, title: str, weights: str) -> Card:
    return Card(
        measure=f"Predictions that flip under {title}",
        formula=f"share of texts whose likeliest class under w is another, w being {weights}",
        range=(0.0, 1.0),
        direction="higher: more predictions depend on the weights the model learnt",
        null=NULL,
        unit="share of texts",
        paper=PAPERS[name],
        section=AFTER[name],
        undefined_when="the text has one unit",
    )


CARDS: dict[str, Card] = {
    **{f"ablation/{name}-output-change": _changes(name, *about) for name, about in KINDS.items()},
    **{f"ablation/{name}-flips": _flips(name, *about) for name, about in KINDS.items()},
}

CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
