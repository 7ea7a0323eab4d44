"""Whose weights guide a token-wise MLP best: the diagnostic of Wiegreffe & Pinter (2019), WP-3."""

from __future__ import annotations

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.guided import ABOUT
from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.score_cards import SCORES, TITLES, UNDEFINED, UNITS, score_card
from attentest.experiments.shared.variants import Contest, scored
from attentest.experiments.shared.wiegreffe_pinter import (
    PAPER,
)
from attentest.statistics.card import Card
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


OF_GUIDES = "Table 3. Models are chosen on dev; the published code chose them on test"
GUIDES = (
    "a group is a guide: uniform weights, the MLP's own, the base model's, a trained adversary's, those of"
    " the controls; beside them the base model and the adversary themselves"
)


def _beyond_uniform(measure: str) -> Card:
    return Card(
        measure=f"{TITLES[measure]} of a guided MLP beyond uniform weights",
        formula=f"{TITLES[measure]} of the MLP under a guide's weights minus that under uniform, by seed",
        range=(-1.0, 1.0),
        direction="higher: the weights tell tokens apart in a way that helps without their context",
        null="the same under the weights of an untrained model of the base's kind",
        unit=f"difference of {UNITS[measure]}",
        paper=PAPER,
        section=f"{OF_GUIDES}; the differences and the null are ours",
        undefined_when=UNDEFINED[measure],
    )


def _beyond_others(measure: str) -> Card:
    return Card(
        measure=f"{TITLES[measure]} under the base model's weights beyond the best other guide",
        formula=f"{TITLES[measure]} of the MLP under the base's weights minus the largest under uniform,"
        " its own and the adversary's weights, by seed",
        range=(-1.0, 1.0),
        direction="above 0: the base model's weights guide best",
        null="0; the largest of three is never below any of them, so a tie of all four comes out below 0",
        unit=f"difference of {UNITS[measure]}",
        paper=PAPER,
        section=f"{OF_GUIDES}; ours",
        undefined_when=UNDEFINED[measure],
    )


CARDS: dict[str, Card] = {
    **{
        f"guided/{measure}": score_card(
            measure, whose="of a guided MLP", groups=GUIDES, paper=PAPER, section=OF_GUIDES
        )
        for measure in SCORES
    },
    **{f"guided/{measure}-beyond-uniform": _beyond_uniform(measure) for measure in ("f1", "accuracy")},
    **{f"guided/{measure}-beyond-others": _beyond_others(measure) for measure in ("f1", "accuracy")},
}

CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
