"""The figures of adversarial attention."""

from __future__ import annotations

from attentest.charts.curves import epsilon_curve, search_against_exact
from attentest.charts.figure import Figure
from attentest.charts.histograms import jsd_histogram
from attentest.charts.violins import adversary_violins

FIGURES: tuple[Figure, ...] = (
    Figure(
        "jsd",
        "How far attention can move at the same output",
        "0 is the model's own attention, ln 2 = 0.69 one that shares no word with it. Dashed, where the"
        " optimum is known: the same with the weights on other words.",
        lambda rows, view, title: jsd_histogram(
            rows, view.opponent, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-5: histograms of the ε-max JSD, by class",
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
        redraws="JW-5: violins of the ε-max JSD by largest weight",
    ),
    Figure(
        "search",
        "What the published search finds",
        "Each dot a text; below the diagonal the search stopped short of the optimum.",
        lambda rows, view, title: search_against_exact(
            rows, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
        ),
    ),
)
