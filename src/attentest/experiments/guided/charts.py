"""The figures of guided by others' weights."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.points import guide_gains, guide_scores

FIGURES: tuple[Figure, ...] = (
    Figure(
        "scores",
        "An MLP under others' weights",
        "A model that sees one token at a time, its words weighed by each guide in turn. Black bars: the"
        " best answer that never looks at the text.",
        lambda rows, view, title: guide_scores(view.findings, title=title, subtitle=view.subtitle),
    ),
    Figure(
        "gains",
        "What each guide is worth",
        "Right of zero, its weights say more about the words than uniform ones. Black bars: the weights"
        " of an untrained model.",
        lambda rows, view, title: guide_gains(view.findings, title=title, subtitle=view.subtitle),
    ),
)
