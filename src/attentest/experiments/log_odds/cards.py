"""The cards of the log-odds experiment: scores by where attention comes from, and how alike it looks."""

from __future__ import annotations

import math

from attentest.statistics.card import Card

PAPER = "jain2019attention"
SECTION = "in the published code only; no table"
VARIANTS = (
    "; a group is a variant: trained, imposed (the trained model under log-odds attention), log-odds (trained"
    " under it), regularised (trained with 5 JSD towards it), last state (no attention)"
)
LIKENESS = "log-odds attention, the softmax of |coefficient| in an L1 logistic regression on bags of words"

CARDS: dict[str, Card] = {
    "log-odds/accuracy": Card(
        measure="Accuracy, by where attention comes from",
        formula=f"share of texts whose predicted label is the gold label{VARIANTS}",
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
        f" over the classes that occur as gold or predicted label{VARIANTS}",
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
        f" ties counting half; of more classes, the plain mean of one against the rest{VARIANTS}",
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
