"""What an audit asks beside the studies, from rows to findings.

Agreement with more explainers, erasing words, other attentions, and words that people marked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from attentest.evidence.importances.names import GRADIENT, further
from attentest.statistics.group_means import Means, Measure, of_controls, reasons
from attentest.statistics.record import Finding, ordered

WHO = ("seed", "subject", "id", "length")
EXPLAINERS = further((GRADIENT,))  # see importance
# Of a text: parts that were drawn, what is left of the error, places on the way, and units that were ranked.
DRAWN = ("pairs", "error", "steps", "units")
ERASED = ("comprehensiveness", "sufficiency")
MARKED = ("token-f1", "iou-f1", "auprc")
ABLATED = ("uniform-output-change", "frozen-output-change")
NO_TWIN = "no untrained twin"
NOT_WORDS = "units are not the marked words, or all are marked"


def conclude_agreement(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Tau-b with each explainer, beside the untrained twin's; without a twin beside 0, as if unrelated."""
    nulls = dict.fromkeys(EXPLAINERS, 0.0)
    return _beside_twin("agreement", nulls, "constant or NaN vector", rows, mode, rng)


def conclude_erasure(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Areas over both curves, beside random rankings of the same texts, and what goes beyond those."""
    return _beside_null("erasure", ERASED, "not a number", rows, mode, rng)


def conclude_plausibility(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """How well attention finds the marked words, beside random rankings, and what goes beyond those."""
    return _beside_null("plausibility", MARKED, NOT_WORDS, rows, mode, rng)


def conclude_ablation(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """How far the output moves under weights that know nothing of the text, beside the untrained twin's."""
    return _beside_twin("ablation", dict.fromkeys(ABLATED, math.nan), NO_TWIN, rows, mode, rng)


def _beside_twin(
    experiment: str,
    nulls: Mapping[str, float],
    otherwise: str,
    rows: pd.DataFrame,
    mode: str,
    rng: np.random.Generator,
) -> list[Finding]:
    """Means over texts; the null is the twin's mean, or the one given where the twin has none."""
    rows = ordered(rows, (*WHO, *nulls))
    means = Means(experiment=experiment, rows=rows, mode=mode, rng=rng)
    before, why = rows[rows["subject"] == "untrained"].index, reasons(rows, otherwise)
    own, of_twin = [], []
    for name, unrelated in nulls.items():
        values = rows[name].astype(np.float64)
        beside = means.mean(values.loc[before])
        null = unrelated if math.isnan(beside) else beside
        own.append(Measure(name=name, values=values, null=null, why=why))
        if not math.isnan(beside):
            of_twin.append(Measure(name=name, values=values, null=unrelated, why=why))
    trained = rows[rows["subject"] == "trained"]
    return [*means.of(own, [("overall", trained)]), *means.of(of_twin, of_controls(rows))]


def _beside_null(
    experiment: str,
    names: tuple[str, ...],
    otherwise: str,
    rows: pd.DataFrame,
    mode: str,
    rng: np.random.Generator,
) -> list[Finding]:
    rows = ordered(rows, (*WHO, *names, *(f"null_{name}" for name in names)))
    why = reasons(rows, otherwise)
    measures = []
    for name in names:
        own, null = (rows[column].astype(np.float64) for column in (name, f"null_{name}"))
        measures.append(Measure(name=name, values=own, null=null, why=why))
        measures.append(Measure(name=f"{name}-excess", values=own - null, null=0.0, why=why))
    means = Means(experiment=experiment, rows=rows, mode=mode, rng=rng)
    return means.of(measures, [("overall", rows[rows["subject"] == "trained"]), *of_controls(rows)])
