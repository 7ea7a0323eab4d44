"""The figures of information by rank, measured otherwise."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.information import sensitivity_taus

FIGURES: tuple[Figure, ...] = (
    Figure(
        "taus",
        "Agreement, measured otherwise",
        "One change at a time of what the paper leaves open. Where dots scatter more than intervals, the"
        " choice decides. Black bars: orders that are luck.",
        lambda rows, view, title: sensitivity_taus(view.findings, title=title, subtitle=view.subtitle),
    ),
)
