"""What uniform attention costs: the first table of Wiegreffe & Pinter (2019), WP-1."""

from __future__ import annotations

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.score_cards import SCORES, TITLES, UNDEFINED, UNITS, score_card
from attentest.experiments.shared.variants import Contest, scored, seed_difference
from attentest.experiments.shared.wiegreffe_pinter import (
    PAPER,
)
from attentest.experiments.uniform_baseline import ABOUT
from attentest.statistics.card import Card
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


OF_UNIFORM = "Table 2. Models are chosen on dev; the published code chose them on test"
MODELS = "a group is a model: trained, uniform (weights of 1/T in training and test), and the controls"


def _lost(measure: str) -> Card:
    return Card(
        measure=f"{TITLES[measure]} that uniform attention loses",
        formula=f"{TITLES[measure]} of the trained model minus that of the same model trained and tested with"
        " uniform attention, by seed; the interval is over seeds and texts, the same for both",
        range=(-1.0, 1.0),
        direction="0: the task does not need attention, and says little of whether attention explains",
        null="the mean absolute difference between two seeds of the trained model: what means nothing",
        unit=f"difference of {UNITS[measure]}",
        paper=PAPER,
        section=OF_UNIFORM,
        undefined_when=UNDEFINED[measure],
    )


CARDS: dict[str, Card] = {
    **{
        f"uniform-baseline/{measure}": score_card(
            measure,
            whose="with and without uniform attention",
            groups=MODELS,
            paper=PAPER,
            section=OF_UNIFORM,
        )
        for measure in SCORES
    },
    **{f"uniform-baseline/{measure}-lost": _lost(measure) for measure in SCORES},
}

CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
