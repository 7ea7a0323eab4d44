"""From the rows of many audits of one construction to what its tests say on average, beside the truth."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from attentest.experiments.calibration import ABOUT, COLUMNS, NAME, TRUTH
from attentest.experiments.description import Conclusion
from attentest.statistics.card import Card
from attentest.statistics.of_models import Measured, Number, of_models
from attentest.statistics.record import Finding, ordered

UNDEFINED = "the test has no value in this audit"
OURS = "ours"
TEST = "test"  # before the name of a test: test@experiment:measure


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """The mean over audits of every test's estimate, and of the two numbers that the truth is read from."""
    rows = ordered(rows, COLUMNS)
    rows = rows[rows["subject"] == "trained"]
    audits = [_audit(of_seed) for _, of_seed in rows.groupby("seed", sort=True)]
    about = {"experiment": NAME, "group": "overall", "mode": mode}
    return of_models(audits, absent=UNDEFINED, **about)


def _audit(rows: pd.DataFrame) -> Measured:
    tests = {
        f"{TEST}@{name.replace('/', ':')}": Number(float(estimate), float(null))
        for name, estimate, null in zip(rows["id"], rows["estimate"], rows["null"], strict=True)
    }
    truth = {name: Number(float(rows[name].iloc[0]), math.nan) for name in TRUTH}
    return Measured(numbers=truth | tests, texts=int(rows["n"].max()), undefined=UNDEFINED)


CARDS: dict[str, Card] = {
    f"{NAME}/points": Card(
        measure="How well attention points, by the rule",
        formula="mean over texts of tau-b of the weights and of how much each word contributes by the rule"
        " that makes the model; 0 where the weights are all alike; of a trained model the contribution is the"
        " change of output without the word",
        range=(-1.0, 1.0),
        direction="0.8 or more: attention is a pointer",
        null="none: it is the truth that tests are held against",
        unit="rank correlation",
        paper="jacovi2020towards",
        section=OURS,
        undefined_when="never",
    ),
    f"{NAME}/depends": Card(
        measure="How far the output depends on the weights, by the rule",
        formula="mean over texts and units of TVD(y(all weight on the unit), y(a))",
        range=(0.0, 1.0),
        direction="0.2 or more: attention is a mechanism",
        null="none: it is the truth that tests are held against",
        unit="total variation distance",
        paper="jacovi2020towards",
        section=OURS,
        undefined_when="never",
    ),
    f"{NAME}/{TEST}": Card(
        measure="What a test says of models whose truth is known",
        formula="mean over audits, each of other texts and other random numbers, of the estimate that is"
        " named behind the @ as experiment:measure; the card of that measure says what it is",
        range=(-math.inf, math.inf),
        direction="that of the test",
        null="the mean over audits of the test's own null",
        unit="that of the test",
        paper="jacovi2020towards",
        section=OURS,
        undefined_when="no text of an audit has a value",
    ),
}


CONCLUSION = Conclusion(conclude, version=1, about=ABOUT, cards=CARDS, columns=COLUMNS)
