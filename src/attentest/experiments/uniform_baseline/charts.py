"""The figures of uniform attention."""

from __future__ import annotations

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.points import CONTROLS, points


def uniform_scores(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """How well the model does with its attention, and trained anew with all weights alike (WP-1)."""
    groups = {"trained": "its own attention", "uniform": "uniform attention", **CONTROLS}
    scores = {"f1": "F1", "accuracy": "accuracy", "auc": "ROC-AUC"}
    return points(findings, scores, groups, "score, the higher the better", title, subtitle)


def uniform_losses(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """What uniform attention costs, beside what another seed would (WP-1)."""
    lost = {"f1-lost": "F1", "accuracy-lost": "accuracy", "auc-lost": "ROC-AUC"}
    axis = "score lost, right of zero: attention was needed"
    return points(findings, lost, {"overall": "own less uniform"}, axis, title, subtitle, (0.0,))


FIGURES: tuple[Figure, ...] = (
    Figure(
        "scores",
        "With attention and without",
        "The model as it is, and trained anew with all weights alike. Black bars: the best answer that"
        " never looks at the text.",
        lambda rows, view, title: uniform_scores(view.findings, title=title, subtitle=view.subtitle),
    ),
    Figure(
        "lost",
        "What uniform attention costs",
        "Right of the upright bar, the loss is more than two seeds of one model differ by: the task needs"
        " attention. Elsewhere the task says little about it.",
        lambda rows, view, title: uniform_losses(view.findings, title=title, subtitle=view.subtitle),
    ),
)
