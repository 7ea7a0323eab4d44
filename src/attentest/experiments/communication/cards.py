"""The cards of the communication experiment: what laypeople guess from the words that were sent."""

from __future__ import annotations

import math

from attentest.statistics.card import Card

PAPER = "treviso2020explanation"
SHARE, DIFFERENCE = (0.0, 1.0), (-1.0, 1.0)
UNDEFINED = "the classifier's output is not a number, or on no training or dev text it was one"
MODELS = (
    "; a group is a classifier: overall, the same model with another projection (softmax, entmax15,"
    " sparsemax), untrained, shuffled labels"
)
LAYPERSON = (
    "a linear model of the words' counts (Adam 1e-3, at most 10 epochs, patience 3, from zero) that learns"
    " the classifier's answers on training texts and is chosen on dev; a query is known to it"
)
RANDOM_WORDS = "random words, as many as were sent of each text"
SILENT = "what the layperson says who hears nothing but the query, if there is one"
ORDER = "of equals any; of a text shorter than k all words"
# Of each explainer: its name in a sentence, what it sends, what it is held against, where the paper has it.
EXPLAINERS = {
    "silence": (
        "silence",
        "nothing",
        "the share of the commonest answer: what always saying it scores",
        "ours",
    ),
    "whole": ("the whole text", "all words of the text", SILENT, "ours"),
    "embedded": (
        "embedded attention",
        "all words of non-zero weight; under softmax, which has no zeros, the whole text",
        RANDOM_WORDS,
        "the explainers compared there: embedded sparse attention",
    ),
    "random": ("random words", "k random words", SILENT, "the explainers compared there: random"),
    "erasure": (
        "erasure",
        f"the k words whose leaving out moves the output most, TVD(y without token t, y); {ORDER}",
        RANDOM_WORDS,
        "the explainers compared there: erasure",
    ),
    "gradient": (
        "gradients",
        f"the k words of largest |sum over dimensions of gradient x input|, attention held; {ORDER}",
        RANDOM_WORDS,
        "the explainers compared there: gradient",
    ),
    "attention": (
        "attention",
        f"the k words of largest weight, and none without weight; {ORDER}",
        RANDOM_WORDS,
        "the explainers compared there: top-k attention",
    ),
    "surrogate": (
        "a surrogate",
        "the k words that speak most for the classifier's answer in a linear model that learnt its answers"
        f" from whole texts; the classifier's inside is never looked at; {ORDER}",
        RANDOM_WORDS,
        "ours, beside the post-hoc explainer of the paper, which is trained together with the layperson",
    ),
    "joint": (
        "an explainer trained together with its layperson",
        "the k words of largest weight, and none without, of an explainer (additive, 1.5-entmax) that reads"
        " the classifier's states, knows its answer, and learnt together with a linear layperson who heard"
        f" the words so weighted; {ORDER}. Who is asked is another, who learnt from the words that are sent",
        RANDOM_WORDS,
        "the explainers compared there: trained post-hoc",
    ),
}
PAIRS = {
    "attention-minus-erasure": ("attention", "erasure"),
    "attention-minus-gradient": ("attention", "gradient"),
    "surrogate-minus-attention": ("surrogate", "attention"),
    "embedded-minus-attention": ("embedded", "attention"),
    "joint-minus-attention": ("joint", "attention"),
    "joint-minus-surrogate": ("joint", "surrogate"),
}


def _levels(explainer: str) -> dict[str, Card]:
    title, sends, null, section = EXPLAINERS[explainer]
    cards = {
        f"communication/csr-{explainer}": Card(
            measure=f"Communication success of {title} (CSR)",
            formula=f"share of texts of which the layperson says what the classifier says. Sent: {sends}."
            f" Layperson: {LAYPERSON}{MODELS}",
            range=SHARE,
            direction="higher: these words tell what the classifier says; whether it looked at them is"
            " another question",
            null=null,
            unit="share of texts",
            paper=PAPER,
            section=section,
            undefined_when=UNDEFINED,
        ),
        f"communication/accuracy-{explainer}": Card(
            measure=f"Accuracy of the layperson who hears {title} (ACC_L)",
            formula=f"share of texts whose gold label the layperson says, having learnt the classifier's"
            f" answers. Sent: {sends}{MODELS}",
            range=SHARE,
            direction="higher: these words tell what is right, not only what the classifier says",
            null=f"{null}, of the gold labels",
            unit="share of texts",
            paper=PAPER,
            section=section,
            undefined_when=UNDEFINED,
        ),
    }
    if explainer != "silence":
        cards[f"communication/csr-{explainer}-excess"] = Card(
            measure=f"Communication success of {title} beyond its null",
            formula=f"CSR minus that of its null, text by text. Sent: {sends}. Null: {null}{MODELS}",
            range=DIFFERENCE,
            direction="higher: it is the choice of words that tells, not their number",
            null="0",
            unit="share of texts",
            paper=PAPER,
            section="ours",
            undefined_when=UNDEFINED,
        )
    return cards


def _pair(one: str, other: str) -> Card:
    return Card(
        measure=f"Communication success: {EXPLAINERS[one][0]} minus {EXPLAINERS[other][0]}",
        formula=f"CSR of {EXPLAINERS[one][0]} minus CSR of {EXPLAINERS[other][0]} at the same k (embedded"
        f" attention has no k), text by text{MODELS}",
        range=DIFFERENCE,
        direction=f"higher: {EXPLAINERS[one][0]} lets the classifier be guessed better",
        null="0",
        unit="share of texts",
        paper=PAPER,
        section="the explainers compared there; the paired difference is ours",
        undefined_when=UNDEFINED,
    )


def _between(explainer: str) -> Card:
    title = EXPLAINERS[explainer][0]
    return Card(
        measure=f"Communication success of {title}, minus the trained model's",
        formula=f"CSR of {title} minus that of the model of group overall, text by text for the same seed;"
        " each layperson guesses its own classifier",
        range=DIFFERENCE,
        direction="higher: this model's attention tells more about its answers",
        null="0",
        unit="share of texts",
        paper=PAPER,
        section="the explainers compared there; the paired difference is ours",
        undefined_when="the output of either model is not a number",
    )


CARDS: dict[str, Card] = {
    "communication/classifier-accuracy": Card(
        measure="Accuracy of the classifier that is explained",
        formula=f"share of texts whose predicted label is the gold label{MODELS}",
        range=SHARE,
        direction="higher is better",
        null="the share of the commonest label",
        unit="share of texts",
        paper=PAPER,
        section="beside the explainers compared there",
        undefined_when=UNDEFINED,
    ),
    "communication/words-embedded": Card(
        measure="Words of non-zero weight",
        formula=f"mean over texts of the number of words that embedded attention sends{MODELS}",
        range=(0.0, math.inf),
        direction="lower: a shorter message",
        null="the number of words of the text",
        unit="words",
        paper=PAPER,
        section="ours",
        undefined_when=UNDEFINED,
    ),
    "communication/words-joint": Card(
        measure="Words that an explainer trained together with its layperson gives weight",
        formula=f"mean over texts of the number of words of non-zero weight{MODELS}",
        range=(0.0, math.inf),
        direction="lower: a shorter message; with one word an answer may be no more than a code for it",
        null="the number of words of the text",
        unit="words",
        paper=PAPER,
        section="ours",
        undefined_when=UNDEFINED,
    ),
    **{name: card for explainer in EXPLAINERS for name, card in _levels(explainer).items()},
    **{f"communication/csr-{name}": _pair(*pair) for name, pair in PAIRS.items()},
    **{f"communication/csr-{name}-minus-trained": _between(name) for name in ("attention", "embedded")},
}
