"""The figures of deception."""

from __future__ import annotations

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.points import CONTROLS, points
from attentest.experiments.deception.conclude import PENALISED
from attentest.experiments.shared.numbered import number_in, numbered


def deception_scores(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Attention on the impermissible words, and answers with and without it, by penalty (PR)."""
    asked = {
        "mass": "attention on the impermissible words",
        "accuracy": "accuracy",
        "accuracy-zeroed": "accuracy, that attention zeroed",
        "accuracy-renormalised": "accuracy, zeroed and renormalised",
    }
    by_penalty = numbered(findings.get("group", ()), PENALISED)
    groups = {
        "overall": "no penalty",
        **{group: f"penalty λ = {number_in(group, PENALISED):g}" for group in by_penalty},
        "anonymised": "without the words",
        **CONTROLS,
    }
    return points(findings, asked, groups, "share", title, subtitle, (0.0, 1.0))


FIGURES: tuple[Figure, ...] = (
    Figure(
        "penalties",
        "Attention that hides what is used",
        "A model deceives where its attention on the impermissible words (first dot) is next to nothing"
        " and its accuracy stays far above that without the words. If it stays up even when that"
        " attention is zeroed, the words speak through other tokens. Black bars: uniform attention, and"
        " the commonest answer.",
        lambda rows, view, title: deception_scores(view.findings, title=title, subtitle=view.subtitle),
    ),
)
