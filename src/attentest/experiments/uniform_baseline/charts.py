"""The figures of uniform attention."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.points import uniform_losses, uniform_scores

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
        "Right of the black bar, the loss is more than two seeds of one model differ by: the task needs"
        " attention. Elsewhere the task says little about it.",
        lambda rows, view, title: uniform_losses(view.findings, title=title, subtitle=view.subtitle),
    ),
)
