"""How fast attention was let learn, and from where, where dev chose that."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from attentest.statistics.card import Card
from attentest.statistics.group_means import Measure

COLUMNS = ("attention_rate", "attention_start")


def chosen_rate(rows: pd.DataFrame) -> list[Measure]:
    """What dev chose, of every row whose model had a choice; nothing where none had."""
    found = []
    for column in COLUMNS:
        if column in rows:
            chosen = rows[column].astype(np.float64).dropna()
            why = pd.Series("", index=chosen.index)
            found.append(Measure(name=column.replace("_", "-"), values=chosen, null=1.0, why=why))
    return found


def rate_card(paper: str) -> Card:
    """One for every experiment that names it."""
    return Card(
        measure="Attention's learning rate, as chosen on dev",
        formula="mean over seeds of the learning rate of attention's own parameters, in learning rates of the"
        " rest: of the rates that were tried (`attention_rates`), each a model of its own, the one with the"
        " best dev score; of an adversary, which knows no labels, the one with the lowest loss on dev",
        range=(0.0, math.inf),
        direction="above 1: attention learnt faster than the rest",
        null="1: as fast as the rest",
        unit="learning rates",
        paper=paper,
        section="Table 4 leaves open where attention learns as fast as the rest and where ten times as fast",
        undefined_when="no rates were given to choose from, or the model's attention is not learnt",
    )


def start_card(paper: str) -> Card:
    """Of an adversary that may begin far from its base."""
    return Card(
        measure="Where an adversary's attention started, as chosen on dev",
        formula="mean over seeds of the size of the numbers that attention started from, in those that are"
        " drawn: of the starts that were tried, each a model of its own, the one with the lowest loss on dev",
        range=(0.0, math.inf),
        direction="above 1: it started far from the base, whose attention a start nearby would go back to",
        null="1: as it is drawn",
        unit="sizes of what is drawn",
        paper=paper,
        section="ours: the paper does not say where a frozen model's attention starts (A33)",
        undefined_when="no starts were given to choose from",
    )
