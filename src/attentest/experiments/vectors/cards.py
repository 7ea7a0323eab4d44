"""What the measures of the study of word vectors mean, one card each."""

from __future__ import annotations

import math

from attentest.statistics.card import Card

NO_NULL = "none here: settings are compared with each other; `importance` has the nulls of agreement"
OURS = "ours: the papers use pretrained vectors and do not vary them"


def _tau(importance: str, section: str) -> Card:
    return Card(
        measure=f"Kendall's tau of attention and {importance}",
        formula=f"mean over texts of tau-b of the weights and {importance} of the units",
        range=(-1.0, 1.0),
        direction="higher: attention ranks words as the importance does",
        null=NO_NULL,
        unit="rank correlation",
        paper="jain2019attention",
        section=section,
        undefined_when="the text has one token, or one of the rankings is constant",
    )


def _norm(when: str) -> Card:
    return Card(
        measure=f"Length of the word vectors {when}",
        formula="mean over the words of the vocabulary, which are those of the training texts, of the"
        " Euclidean length of their vectors; words that a vector file lacks start at zero and count",
        range=(0.0, math.inf),
        direction="neither: a dot product grows with it",
        null="none",
        unit="Euclidean length",
        paper="jain2019attention",
        section=OURS,
        undefined_when="never",
    )


CARDS: dict[str, Card] = {
    "vectors/tau-gradient": _tau("gradient times input, attention held,", "4.1, on a sample of the texts"),
    "vectors/tau-loo": _tau("leave-one-out", "4.1, on a sample of the texts"),
    "vectors/max-weight-times-length": Card(
        measure="Largest weight times length",
        formula="mean over texts of max a * T, T being the number of units",
        range=(1.0, math.inf),
        direction="higher: attention is further from uniform",
        null="1: uniform attention",
        unit="multiples of the uniform weight",
        paper="jain2019attention",
        section=OURS,
        undefined_when="never",
    ),
    "vectors/dev-score": Card(
        measure="Dev score that selects the epoch",
        formula="ROC-AUC where there are two classes, accuracy where there are more, on the dev split, of the"
        " epoch that training kept",
        range=(0.0, 1.0),
        direction="higher is better",
        null="0.5 for ROC-AUC; for accuracy the share of dev's commonest label",
        unit="share of pairs, or of texts",
        paper="jain2019attention",
        section=OURS,
        undefined_when="all labels of dev are alike, or an output is not a number",
    ),
    "vectors/dev-accuracy": Card(
        measure="Accuracy on dev",
        formula="share of dev texts whose predicted label is the gold label, of the epoch that training kept",
        range=(0.0, 1.0),
        direction="higher is better",
        null="the share of dev's commonest label",
        unit="share of texts",
        paper="jain2019attention",
        section=OURS,
        undefined_when="an output is not a number",
    ),
    "vectors/vector-norm-start": _norm("before training"),
    "vectors/vector-norm-trained": _norm("after training"),
}
