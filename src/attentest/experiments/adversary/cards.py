"""The cards of the adversary experiment; names end in the allowed change of output, as in @0.01."""

from __future__ import annotations

import math

from attentest.statistics.card import OF_EXCHANGE, Card

PAPER = "jain2019attention"
SECTION = "4.2.2 Adversarial attention"
DIVERGENCE = (0.0, math.log(2))
UNIT = "Jensen-Shannon divergence, nats"
SHARE = (0.0, 1.0)
HIGHER = "higher: attention could have been more different at the same output; ln 2 = 0.693 is disjoint"
EMAX = "the largest JSD(alpha, a) over attentions alpha whose output is within the allowed TVD of the model's"
SHUFFLED = "the text's weights shuffled over its tokens, values kept"
NOT_AFFINE = "the text has one token, or the decision is not affine in attention"
NOT_SEARCHED = "the text has one token, or was not searched"
NO_NULL = "none searched; see the exact optimum's, which says how much of it is geometry"
SEARCHES = {
    "last": ("published search", "the published search: last iterate of five", SECTION),
    "best": ("best step of the search", "the same search: its best feasible iterate over all steps", "ours"),
    "unpaired": (
        "best step without the pair term",
        "the search that does not also keep its five candidates apart: its best feasible iterate",
        "ours",
    ),
}
MATCHED = {
    "permuted": ("permutations of the own weights", "permutations of the text's own weights; the best found"),
    "capped": ("weights no larger than the own", "weights of at most max a; the best found"),
}


def _searched(name: str) -> dict[str, Card]:
    title, meaning, section = SEARCHES[name]
    found = Card(
        measure=f"Adversarial divergence, {title}",
        formula=f"mean over texts of {EMAX}, as found by {meaning}; the original attention is a candidate",
        range=DIVERGENCE,
        direction=f"{HIGHER}. A lower bound of the optimum",
        null=NO_NULL,
        unit=UNIT,
        paper=PAPER,
        section=section,
        undefined_when=NOT_SEARCHED,
    )
    share = Card(
        measure=f"Share of texts with an adversarial divergence above 0.6, {title}",
        formula=f"share of texts where {EMAX}, as found by {meaning}, exceeds 0.6",
        range=SHARE,
        direction="higher: more texts admit nearly disjoint attention",
        null=NO_NULL,
        unit="share of texts",
        paper=PAPER,
        section="ours; the paper says it of a figure",
        undefined_when=NOT_SEARCHED,
    )
    return {f"adversary/emax-jsd-{name}": found, f"adversary/emax-jsd-{name}-share": share}


def _matched(name: str) -> dict[str, Card]:
    title, meaning = MATCHED[name]
    card = Card(
        measure=f"Adversarial divergence among {title}",
        formula=f"mean over texts of {EMAX}, where alpha is one of the {meaning}",
        range=DIVERGENCE,
        direction=f"{HIGHER}. A lower bound, for whoever finds attention on two tokens implausible",
        null="none searched",
        unit=UNIT,
        paper=PAPER,
        section="ours",
        undefined_when=NOT_SEARCHED,
    )
    return {f"adversary/emax-jsd-{name}": card}


CARDS: dict[str, Card] = {
    "adversary/emax-jsd-exact": Card(
        measure="Adversarial divergence, exact",
        formula=f"mean over texts of {EMAX}: enumerated for two classes; the best value known for more",
        range=DIVERGENCE,
        direction=HIGHER,
        null=f"the same with {SHUFFLED}. {OF_EXCHANGE} NaN at the allowed changes that only the curve has",
        unit=UNIT,
        paper=PAPER,
        section=f"{SECTION}; the optimum is ours",
        undefined_when=NOT_AFFINE,
    ),
    "adversary/emax-jsd-exact-share": Card(
        measure="Share of texts with an adversarial divergence above 0.6, exact",
        formula=f"share of texts where {EMAX} exceeds 0.6",
        range=SHARE,
        direction="higher: more texts admit nearly disjoint attention",
        null=f"the same with {SHUFFLED}. {OF_EXCHANGE}",
        unit="share of texts",
        paper=PAPER,
        section="ours; the paper says it of a figure",
        undefined_when=NOT_AFFINE,
    ),
    "adversary/emax-jsd-exact-ratio": Card(
        measure="Adversarial divergence relative to what any output would allow",
        formula=f"mean over texts of {EMAX}, divided by its maximum whatever the output: all weight on the"
        " token that has least",
        range=SHARE,
        direction="1: the output forbids nothing",
        null=f"the same with {SHUFFLED}. {OF_EXCHANGE}",
        unit="share of the attainable divergence",
        paper=PAPER,
        section="ours",
        undefined_when=NOT_AFFINE,
    ),
    "adversary/emax-jsd-exact-excess": Card(
        measure="Adversarial divergence beyond its null",
        formula=f"mean over texts of {EMAX}, minus the same with {SHUFFLED}",
        range=(-math.log(2), math.log(2)),
        direction="below 0: where the weights stand makes attention harder to replace than chance would",
        null="0",
        unit=f"difference of {UNIT}",
        paper=PAPER,
        section="ours",
        undefined_when=NOT_AFFINE,
    ),
    "adversary/emax-jsd-swapped": Card(
        measure="Adversarial divergence from another text's weights",
        formula=f"mean over texts of {EMAX}, where a are the weights of another text of the same length (else"
        " of the nearest longer, cut and renormalised) and the output is that under them: it has the shape"
        " of attention without its match with these words",
        range=DIVERGENCE,
        direction=HIGHER,
        null="none: it is itself a point of comparison for the exact optimum",
        unit=UNIT,
        paper=PAPER,
        section="ours",
        undefined_when=NOT_AFFINE,
    ),
    "adversary/bound-gap": Card(
        measure="What is not proven of the adversarial divergence",
        formula="mean over texts of an upper bound of the optimum minus the value called exact",
        range=DIVERGENCE,
        direction="0: the value is the optimum",
        null="0: two classes, where the optimum is enumerated",
        unit=UNIT,
        paper=PAPER,
        section="ours",
        undefined_when=NOT_AFFINE,
    ),
    "adversary/search-shortfall": Card(
        measure="What the searches miss of the adversarial divergence",
        formula="mean over texts of the exact optimum minus the best that any of the searches found",
        range=(-math.log(2), math.log(2)),
        direction="higher: the searches miss more; below 0 only where the optimum is not proven",
        null="0",
        unit=UNIT,
        paper=PAPER,
        section="ours",
        undefined_when="the text has one token, was not searched, or the decision is not affine in attention",
    ),
    **_searched("last"),
    **_searched("best"),
    **_searched("unpaired"),
    **_matched("permuted"),
    **_matched("capped"),
}
