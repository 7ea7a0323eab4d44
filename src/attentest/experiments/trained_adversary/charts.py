"""The figures of trained adversaries."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.plane import adversary_plane
from attentest.experiments.seed_variance.charts import apart_scatter, apart_violins

FIGURES: tuple[Figure, ...] = (
    Figure(
        "plane",
        "What it costs to look elsewhere",
        "Adversaries trained with more and more reward for attending elsewhere. Points below the curve"
        " move attention as far at less cost: adversaries made text by text are no model.",
        lambda rows, view, title: adversary_plane(rows, view.findings, title=title, subtitle=view.subtitle),
        redraws="WP-4: output TVD against attention JSD over lambda",
    ),
    Figure(
        "exact",
        "Exact adversaries, text by text",
        "How far they move attention at the same output, by the base's largest weight.",
        lambda rows, view, title: apart_violins(
            rows, "exact", title=title, subtitle=view.subtitle, **view.by_class
        ),
    ),
    Figure(
        "search",
        "Searched adversaries, text by text",
        "The same of the published search, for the texts it was run on.",
        lambda rows, view, title: apart_violins(
            rows, "search", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="WP-2: the violins with the search's adversaries in place of seeds",
    ),
    Figure(
        "search-output",
        "And the output under them",
        "To be read beside that of other seeds: an adversary may not move the output by more than ε, and"
        " so lies at the bottom.",
        lambda rows, view, title: apart_scatter(
            rows, "search", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="WP-2: the scatter with the search's adversaries",
    ),
)
