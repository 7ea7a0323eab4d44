"""The figures of Jain & Wallace (2019): agreement, permutation, adversaries."""

from __future__ import annotations

from attentest.charts.catalogue import (
    adversary_violins,
    epsilon_curve,
    jsd_histogram,
    permutation_violins,
    search_against_exact,
    tau_by_length,
    tau_differences,
    tau_histogram,
)
from attentest.gallery.figure import Figure, Figures

JAIN_WALLACE: Figures = {
    "importance": (
        Figure(
            "tau-gradient",
            "Attention and gradients",
            "Rank agreement, text by text. Attention is a factor of the gradient, so even values at random"
            " places (dashed) agree with it: what counts is the distance between the two.",
            lambda rows, view, title: tau_histogram(
                rows, "gradient", title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "tau-loo",
            "Attention and leaving words out",
            "The same against the change of output when a word is left out.",
            lambda rows, view, title: tau_histogram(
                rows, "loo", title=title, subtitle=view.subtitle, **view.by_class
            ),
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
        ),
    ),
    "permutation": (
        Figure(
            "permutation",
            "Shuffled attention",
            "How far the output moves, by the largest weight. Peaked attention whose output stays at zero"
            " does not matter.",
            lambda rows, view, title: permutation_violins(
                rows, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
    ),
    "adversary": (
        Figure(
            "jsd",
            "How far attention can move at the same output",
            "0 is the model's own attention, ln 2 = 0.69 one that shares no word with it. Dashed, where the"
            " optimum is known: the same with the weights on other words.",
            lambda rows, view, title: jsd_histogram(
                rows, view.opponent, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "epsilon",
            "As the output may move further",
            "The mean of the optimum over the tolerance, beside models that learnt nothing.",
            lambda rows, view, title: epsilon_curve(rows, title=title, subtitle=view.subtitle),
        ),
        Figure(
            "jsd-violins",
            "By the largest weight",
            "Peaked attention leaves most room to move; where it does not, the words it is on matter.",
            lambda rows, view, title: adversary_violins(
                rows, view.opponent, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "search",
            "What the published search finds",
            "Each dot a text; below the diagonal the search stopped short of the optimum.",
            lambda rows, view, title: search_against_exact(
                rows, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
    ),
}
