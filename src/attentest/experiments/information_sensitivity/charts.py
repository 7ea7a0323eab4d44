"""The figures of information by rank, measured otherwise."""

from __future__ import annotations

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.information import TAUS, other_groups
from attentest.charts.points import points


def sensitivity_taus(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Agreement of attention and information under each alternative to what the paper leaves open."""
    groups = {"overall": "as it is by default"} | other_groups(findings)
    axis = "τ of information and attention"
    return points(findings, {"tau": TAUS["tau"]}, groups, axis, title, subtitle, (0.0, 1.0))


FIGURES: tuple[Figure, ...] = (
    Figure(
        "taus",
        "Agreement, measured otherwise",
        "One change at a time of what the paper leaves open. Where dots scatter more than intervals, the"
        " choice decides. Black bars: orders that are luck.",
        lambda rows, view, title: sensitivity_taus(view.findings, title=title, subtitle=view.subtitle),
    ),
)
