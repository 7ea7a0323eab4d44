"""The figures of deception."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.points import deception_scores

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
