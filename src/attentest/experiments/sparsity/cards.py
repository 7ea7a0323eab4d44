"""The cards of the sparsity experiment: what becomes of importance as attention is made sparser."""

from __future__ import annotations

import math

from attentest.evidence.importances.names import IN_ROWS, IN_WORDS
from attentest.experiments.dispersion.cards import (
    CORRELATION,
    ENTROPY,
    HELD,
    LARGER,
    OVER,
    PAPER,
    SHARE,
    UNSPREAD,
    WIDER,
)
from attentest.experiments.shared.attention_rate import rate_card
from attentest.statistics.card import OF_UNTRAINED, Card

MODELS = (
    "; a group is a model: the trained one (overall), softmax, sparsegen by its lambda (0 is sparsemax), and"
    " the controls"
)
TWIN = f"the same of the untrained model with the same projection, which has none. {OF_UNTRAINED}"
NO_NULL = "none: given weights have no scores of their own to be computed again; see tau-loo-held"
OURS = "ours: scores have a free scale, so lambda does not tell how sparse attention is"
GRADIENT = "||df / dx_i||_2, attention not held, f the probability of class 1, or of the likeliest of several"
LOO = "TVD(y without token i, y)"
IMPORTANCE = {name: (IN_WORDS[name], formula) for name, formula in zip(IN_ROWS, (GRADIENT, LOO), strict=True)}


def _mean(
    measure: str,
    formula: str,
    direction: str,
    *,
    unit: str,
    undefined: str,
    section: str = OURS,
    range: tuple[float, float] = SHARE,
    null: str = TWIN,
) -> Card:
    return Card(
        measure=measure,
        formula=f"mean over texts of {formula}{MODELS}",
        range=range,
        direction=direction,
        null=null,
        unit=unit,
        paper=PAPER,
        section=section,
        undefined_when=undefined,
    )


NO_CHOICE = "the text has one token, or attention is not a number"
SPARSITY = {
    "sparsity/max-attention": _mean(
        "Largest weight",
        "max_i a_i",
        "higher: attention rests more on one token",
        unit="attention",
        undefined=NO_CHOICE,
    ),
    "sparsity/support": _mean(
        "Support of attention",
        "the number of tokens with a_i > 0",
        "lower: sparser attention",
        unit="tokens",
        undefined=NO_CHOICE,
        range=(0.0, math.inf),
    ),
    "sparsity/support-share": _mean(
        "Share of tokens in the support of attention",
        "the number of tokens with a_i > 0, divided by that of all",
        "lower: sparser attention",
        unit="share of tokens",
        undefined=NO_CHOICE,
    ),
    "sparsity/entropy-attention": _mean(
        "Normalised entropy of attention",
        f"{ENTROPY}, p being attention",
        WIDER,
        unit="share of the largest entropy",
        undefined=UNSPREAD,
    ),
}


def _entropy(name: str) -> Card:
    title, formula = IMPORTANCE[name]
    return _mean(
        f"Normalised entropy of {title}",
        f"{ENTROPY}, p being {formula}, made to sum to 1",
        WIDER,
        unit="share of the largest entropy",
        undefined=UNSPREAD,
        section="Figure 2",
    )


def _tau(name: str, where: str) -> dict[str, Card]:
    (title, formula), (short, over, undefined) = IMPORTANCE[name], OVER[where]
    section = "the figure of correlation against lambda" if not where else "ours: without ties of zeros"

    def card(held: str, null: str, section: str) -> Card:
        return _mean(
            f"Kendall's tau-b of attention and {title}{held}{short}",
            f"tau-b between attention and {formula}{held}, {over}",
            "higher: attention ranks more as this importance does",
            unit="rank correlation",
            undefined=undefined,
            section=section,
            range=CORRELATION,
            null=null,
        )

    if name == "gradient":
        return {f"sparsity/tau-{name}{where}": card("", TWIN, section)}
    return {
        f"sparsity/tau-{name}{where}": card("", NO_NULL, section),
        f"sparsity/tau-{name}-held{where}": card(HELD, f"mean tau: {LARGER}", "ours"),
        f"sparsity/tau-{name}{where}-excess": _mean(
            f"Agreement of attention and {title} beyond its null{short}",
            f"tau-b between attention and {formula}{HELD}, {over}, minus the mean tau: {LARGER}",
            "higher: attention ranks more as this importance does than its shape alone would",
            unit="difference of rank correlations",
            undefined=f"{undefined}; or no other text is as long, where the swapped null is the larger",
            section="ours",
            range=(-2.0, 2.0),
            null="0",
        ),
    }


SPARSER = {
    "lambda": ("lambda", "below 0: as lambda grows, which is sparser, it falls"),
    "support": (
        "the share of tokens with weight",
        "above 0: with sparser attention, of less support, it falls",
    ),
    "attention-entropy": (
        "the entropy of attention",
        "above 0: with sparser attention, of less entropy, it falls",
    ),
}
OUTCOMES = {
    **{f"entropy-{name}": f"the entropy of {title}" for name, (title, _) in IMPORTANCE.items()},
    **{
        f"tau-{name}{where}": f"attention's agreement with {title}{short}"
        for name, (title, _) in IMPORTANCE.items()
        for where, (short, _, _) in OVER.items()
    },
}


def _correlation(against: str, outcome: str) -> Card:
    (sparser, direction), came = SPARSER[against], OUTCOMES[outcome]
    signed = against == "lambda" and outcome.startswith("entropy")
    table = "Table 2; the text says the opposite of its sign (A8)"
    return Card(
        measure=f"Kendall's tau-b of {sparser} and {came}",
        formula=f"Kendall's tau-b between {sparser} and {came}, each the mean over texts of one model with"
        " sparsegen(lambda), over the lambdas of a seed, then the mean over seeds",
        range=CORRELATION,
        direction=direction,
        null="the same over untrained models: what the projection brings about by itself",
        unit="rank correlation over models",
        paper=PAPER,
        section=table if signed else "ours, beside Table 2",
        undefined_when="fewer than two models have a value, or all have the same",
    )


CARDS: dict[str, Card] = {
    "sparsity/attention-rate": rate_card(PAPER),
    **SPARSITY,
    **{f"sparsity/entropy-{name}": _entropy(name) for name in IMPORTANCE},
    **{key: card for name in IMPORTANCE for where in OVER for key, card in _tau(name, where).items()},
    **{
        f"sparsity/kendall-{against}-{outcome}": _correlation(against, outcome)
        for against in SPARSER
        for outcome in OUTCOMES
    },
}
