"""The figures of agreement with importance."""

from __future__ import annotations

from attentest.charts.curves import tau_by_length
from attentest.charts.figure import Figure
from attentest.charts.histograms import tau_differences, tau_histogram

FIGURES: tuple[Figure, ...] = (
    Figure(
        "tau-gradient",
        "Attention and gradients",
        "Rank agreement, text by text. Attention is a factor of the gradient, so even values at random"
        " places (dashed) agree with it: what counts is the distance between the two.",
        lambda rows, view, title: tau_histogram(
            rows, "gradient", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-1: histograms of Kendall's tau of attention and gradients, by class",
    ),
    Figure(
        "tau-loo",
        "Attention and leaving words out",
        "The same against the change of output when a word is left out.",
        lambda rows, view, title: tau_histogram(
            rows, "loo", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-2: the same for leave-one-out",
    ),
    Figure(
        "tau-length-gradient",
        "Gradients, by length of text",
        "Means by length: a correlation over few words is noisy, over many small.",
        lambda rows, view, title: tau_by_length(rows, "gradient", title=title, subtitle=view.subtitle),
    ),
    Figure(
        "tau-length-loo",
        "Leaving words out, by length of text",
        "The same for leave-one-out importance.",
        lambda rows, view, title: tau_by_length(rows, "loo", title=title, subtitle=view.subtitle),
    ),
    Figure(
        "tau-differences",
        "Do the two importances agree better with each other?",
        "Right of zero, gradients and leaving words out agree more with each other than one of them does"
        " with attention.",
        lambda rows, view, title: tau_differences(rows, title=title, subtitle=view.subtitle),
        redraws="JW-3: densities of differences, drawn by the published code only",
    ),
)
