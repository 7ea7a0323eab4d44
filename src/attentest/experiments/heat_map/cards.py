"""Cards of the numbers beside single texts."""

from __future__ import annotations

import math

from attentest.statistics.card import Card


def _card(measure: str, formula: str, top: float, unit: str, undefined: str, low: float = 0.0) -> Card:
    return Card(
        measure=measure,
        formula=f"{formula}, on one text; the mean over seeds",
        range=(low, top),
        direction="for looking at one text: no test of anything",
        null="none: one text shows what can happen, not how often",
        unit=unit,
        paper="jain2019attention",
        section="Figure 1 and Appendix C",
        undefined_when=undefined,
    )


CARDS: dict[str, Card] = {
    "heat-map/output": _card(
        "Output",
        "probability of class 1, of several classes that of the predicted",
        1.0,
        "probability",
        "never",
    ),
    "heat-map/tau-gradient": _card(
        "Agreement of attention and gradient",
        "Kendall's tau-b of attention and gradient importance",
        1.0,
        "rank correlation",
        "the text has one token, or attention is constant",
        low=-1.0,
    ),
    "heat-map/median-output-change": _card(
        "Median output change",
        "median total variation between the output and that of 100 permutations of attention",
        1.0,
        "total variation distance",
        "never",
    ),
    "heat-map/jsd-search": _card(
        "Divergence of the searched attention",
        "Jensen-Shannon divergence of the published search's best attention within the tolerance",
        math.log(2),
        "nats",
        "never",
    ),
    "heat-map/jsd-exact": _card(
        "Divergence of the furthest attention",
        "Jensen-Shannon divergence of the strongest adversary within the tolerance",
        math.log(2),
        "nats",
        "the decision is not affine in attention",
    ),
}
