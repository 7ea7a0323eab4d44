"""What was measured on single texts, over seeds: the numbers beside the papers' pictures."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.heat_map import ABOUT
from attentest.experiments.heat_map.cards import CARDS
from attentest.statistics.interval import over_seeds
from attentest.statistics.record import Finding, ordered, seeds_as_json

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
    estimate, seed_std = over_seeds(defined.tolist())
    excluded = len(values) - len(defined)
    return Finding(
        experiment="heat-map",
        measure=measure,
        group=text,
        estimate=estimate,
        std=math.nan,
        seed_std=seed_std,
        low=math.nan,
        high=math.nan,
        interval="none",
        n=len(defined),
        seeds=len(defined),
        excluded=excluded,
        why="constant attention, or a decision that is not affine" if excluded else "",
        null=math.nan,
        mode=mode,
        by_seed=seeds_as_json(defined.tolist()),
    )


CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=())
