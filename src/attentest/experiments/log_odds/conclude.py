"""What learnt attention adds to a bag of words' (JW-6): every variant's scores, and how alike they look."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.log_odds import ABOUT
from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.variants import scored
from attentest.statistics.card import Card
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


# --- the cards

PAPER = "jain2019attention"
SECTION = "in the published code only; no table"
GROUPS = (
    "; a group is a variant: trained, imposed (the trained model under log-odds attention), log-odds (trained"
    " under it), regularised (trained with 5 JSD towards it), last state (no attention)"
)
LIKENESS = "log-odds attention, the softmax of |coefficient| in an L1 logistic regression on bags of words"

CARDS: dict[str, Card] = {
    "log-odds/accuracy": Card(
        measure="Accuracy, by where attention comes from",
        formula=f"share of texts whose predicted label is the gold label{GROUPS}",
        range=(0.0, 1.0),
        direction="higher is better",
        null="the share of the majority class: what always answering it scores",
        unit="share of texts",
        paper=PAPER,
        section=SECTION,
        undefined_when="there is no text, or no output is a number",
    ),
    "log-odds/f1": Card(
        measure="F1, by where attention comes from",
        formula="2 TP / (2 TP + FP + FN) of class 1 where there are two classes; of more, the plain mean"
        f" over the classes that occur as gold or predicted label{GROUPS}",
        range=(0.0, 1.0),
        direction="higher is better",
        null="the best constant answer: of two classes always class 1, of more always the majority",
        unit="harmonic mean of precision and recall",
        paper=PAPER,
        section=SECTION,
        undefined_when="two classes, and class 1 is neither gold nor predicted anywhere",
    ),
    "log-odds/auc": Card(
        measure="ROC-AUC, by where attention comes from",
        formula="chance that a text of class 1 gets a higher probability of class 1 than a text of class 0,"
        f" ties counting half; of more classes, the plain mean of one against the rest{GROUPS}",
        range=(0.0, 1.0),
        direction="higher is better",
        null="0.5: a probability that ranks at random",
        unit="share of pairs",
        paper=PAPER,
        section=SECTION,
        undefined_when="all gold labels are alike",
    ),
    "log-odds/jsd-to-log-odds": Card(
        measure="Divergence of learnt attention from log-odds attention",
        formula=f"mean over texts of JSD(a, g), where g is {LIKENESS}",
        range=(0.0, math.log(2)),
        direction="lower: attention rests where a bag of words would look",
        null="the same for uniform attention on the same texts",
        unit="nats",
        paper=PAPER,
        section=SECTION,
        undefined_when="the text has one token, or the weights are not a distribution",
    ),
    "log-odds/tau-to-log-odds": Card(
        measure="Kendall's tau-b of learnt attention and log-odds attention",
        formula=f"mean over texts of tau-b between attention and {LIKENESS}",
        range=(-1.0, 1.0),
        direction="higher: attention ranks tokens more as a bag of words would",
        null="0: unrelated rankings",
        unit="rank correlation",
        paper=PAPER,
        section=SECTION,
        undefined_when="the text has one token, or a vector is constant: no word of it has a coefficient",
    ),
}

CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
