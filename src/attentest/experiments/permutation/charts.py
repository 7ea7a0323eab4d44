"""The figures of permutation."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.violins import permutation_violins

FIGURES: tuple[Figure, ...] = (
    Figure(
        "permutation",
        "Shuffled attention",
        "How far the output moves, by the largest weight. Peaked attention whose output stays at zero"
        " does not matter.",
        lambda rows, view, title: permutation_violins(
            rows, title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-4: violins of the median output change by largest weight",
    ),
)
