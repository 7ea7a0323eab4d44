"""What was measured on single texts, over seeds: the numbers beside the papers' pictures."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.heat_map import ABOUT
from attentest.statistics.card import Card
from attentest.statistics.finding import finding
from attentest.statistics.record import Finding, ordered

MEASURES = {
    "output": "output",
    "tau-gradient": "tau_gradient",
    "median-output-change": "median_change",
    "jsd-search": "search_jsd",
    "jsd-exact": "exact_jsd",
}


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """The mean over seeds for every text and measure; one text of one seed cannot vary, so no interval."""
    if rows.empty:
        return []
    rows = ordered(rows, ("seed", "subject", "id", "predicted", *MEASURES.values()))
    return [
        _finding(measure, str(text), of_text[column].to_numpy(dtype=float), mode)
        for text, of_text in rows.groupby("id")
        for measure, column in MEASURES.items()
    ]


def _finding(measure: str, text: str, values: np.ndarray, mode: str) -> Finding:
    defined = values[~np.isnan(values)]
    excluded = len(values) - len(defined)
    return finding(
        defined.tolist(),
        experiment="heat-map",
        measure=measure,
        group=text,
        n=len(defined),
        excluded=excluded,
        why="constant attention, or a decision that is not affine" if excluded else "",
        null=math.nan,
        mode=mode,
    )


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


CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=())
