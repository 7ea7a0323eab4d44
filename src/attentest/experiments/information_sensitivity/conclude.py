"""How much does tau depend on what Wen et al. (2022) leave open? One change at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.information.cards import CARDS as INFORMATION
from attentest.experiments.information.cards import PAPER
from attentest.experiments.information_ablation.cards import CHANGE, SAME, SHARE, TAU_UNIT
from attentest.experiments.information_sensitivity import ABOUT
from attentest.experiments.shared import orders
from attentest.experiments.shared.orders import TRAINED, UNPAIRED, Order, group_of, pairs
from attentest.statistics.card import Card
from attentest.statistics.estimates import group_asked
from attentest.statistics.group_means import CONTROLS
from attentest.statistics.of_models import Measured, Number, of_models
from attentest.statistics.ranking_null import p_value
from attentest.statistics.record import Finding, ordered

EXPERIMENT = "information-sensitivity"
COLUMNS = orders.COLUMNS
ABSENT = "no text is long enough, or too few are"
SIGNIFICANT = 0.05


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Tau as it is measured by default (overall), under every alternative, and of the controls.

    Of an alternative also how far it moves tau from the default, seed by seed, and whether it would change
    what is said of luck.
    """
    rows = ordered(rows, COLUMNS)
    if (rows["subject"] != TRAINED).all():
        return []
    known = orders.orders(rows[[group_asked(group_of(name)) for name in rows["subject"]]], rng)
    alternatives = sorted(set(known) - {TRAINED, *CONTROLS})
    found = []
    for name in (TRAINED, *alternatives, *(control for control in CONTROLS if control in known)):
        about = {"experiment": EXPERIMENT, "group": group_of(name), "mode": mode}
        models = [order.measured for order in known[name].values()]
        found += of_models(models, absent=ABSENT, **about)
        if name in alternatives:
            changes = [moved(own, other) for own, other in pairs(known, TRAINED, name)]
            found += of_models(changes, absent=ABSENT, **about)
    return found


def moved(own: Order, other: Order) -> Measured:
    """How an alternative changes tau, and whether it crosses the line between luck and none."""
    change = other.tau - own.tau
    crosses = (p_value(own.tau, own.luck) < SIGNIFICANT) != (p_value(other.tau, other.luck) < SIGNIFICANT)
    defined = not math.isnan(change)
    return Measured(
        numbers={
            "tau-moved": Number(change, 0.0),
            "verdict-changes": Number(float(crosses) if defined else math.nan, 0.0),
        },
        texts=other.texts,
        left_out=other.left_out,
        undefined=UNPAIRED,
    )


MOVED = Card(
    measure="Agreement moved by an alternative",
    formula="tau under the alternative less tau by default, both of one seed; the mean over seeds",
    range=CHANGE,
    direction="further from 0: tau depends more on a choice that the paper leaves open",
    null="0",
    unit=TAU_UNIT,
    paper=PAPER,
    section="ours",
    undefined_when="tau is undefined by default or under the alternative",
)
OTHERWISE = replace(
    MOVED,
    measure="Alternatives that change the verdict",
    formula="share of seeds in which tau-p is below 0.05 by default or under the alternative, and not both",
    range=SHARE,
    direction="higher: whether tau is luck depends on the choice",
    unit="share of seeds",
)

CARDS: dict[str, Card] = {
    **{f"information-sensitivity/{name}": INFORMATION[f"information/{name}"] for name in SAME},
    "information-sensitivity/tau-moved": MOVED,
    "information-sensitivity/verdict-changes": OTHERWISE,
}

CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
