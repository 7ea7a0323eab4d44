"""The cards of scores wherever several models are scored: the same three, with other words for whose."""

from __future__ import annotations

from attentest.statistics.card import Card

SCORES = ("accuracy", "f1", "auc")
TITLES = {"accuracy": "Accuracy", "f1": "F1", "auc": "ROC-AUC"}
FORMULAS = {
    "accuracy": "share of texts whose predicted label is the gold label",
    "f1": "2 TP / (2 TP + FP + FN) of class 1 where there are two classes; of more, the plain mean over the"
    " classes that occur as gold or predicted label",
    "auc": "chance that a text of class 1 gets a higher probability of class 1 than a text of class 0, ties"
    " counting half; of more classes, the plain mean of one against the rest",
}
NULLS = {
    "accuracy": "the share of the majority class: what always answering it scores",
    "f1": "the best constant answer: of two classes always class 1, of more always the majority",
    "auc": "0.5: a probability that ranks at random",
}
UNITS = {
    "accuracy": "share of texts",
    "f1": "harmonic mean of precision and recall",
    "auc": "share of pairs",
}
UNDEFINED = {
    "accuracy": "there is no text, or no output is a number",
    "f1": "two classes, and class 1 is neither gold nor predicted anywhere",
    "auc": "all gold labels are alike",
}


def score_card(measure: str, *, whose: str, groups: str, paper: str, section: str) -> Card:
    """The card of a score; `groups` says what a group is."""
    return Card(
        measure=f"{TITLES[measure]} {whose}",
        formula=f"{FORMULAS[measure]}; {groups}",
        range=(0.0, 1.0),
        direction="higher is better",
        null=NULLS[measure],
        unit=UNITS[measure],
        paper=paper,
        section=section,
        undefined_when=UNDEFINED[measure],
    )
